"""Run folder of a spec.

A run's spec, records and progress are read without torch, which is imported where it is used.
"""

import contextlib
import difflib
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from accord._files import csv_text, write_file
from accord._recorders.schedule import RecordedEpochs
from accord.data import InputSchema
from accord.errors import (
    AccordError,
    NotARecord,
    RecordMismatch,
    SourceError,
    SpecError,
    StorageError,
)
from accord.kernels import equally_spaced
from accord.store import Folder, describe, open_reader, open_storage
from accord.store._record_format import checkpoint_folder
from accord.store._removal import hold_networks
from accord.store._unpacked_reader import network_numbers
from accord.training._input_schema_file import (
    SCHEMA_FILE,
    load_input_schema,
    measure_input_schema,
    save_input_schema,
)
from accord.training._spec import DIGEST_EXCLUDES, NetworkSpec, Spec, network_specs
from accord.training._spec_toml import dump_spec, load_spec

if TYPE_CHECKING:
    import torch

    from accord.training._batches import Batches
    from accord.training._prepared_data import PreparedData

SPEC_FILE: Final = "spec.toml"
FOLDS: Final = "folds"  # of a cross-fitted run
TARGETS_FILE: Final = "targets.npy"
RUN_FILES: Final = ("checkpoints", "metrics.csv", "logs", SCHEMA_FILE, TARGETS_FILE)  # and records


class Run:
    """Folder with the spec, records and checkpoints of a run.

    Data and files are read when they are first used. The folder need not exist before training.

    Args:
        path: the folder.
        spec: what the run trains.
    """

    def __init__(self, path: str | os.PathLike[str], spec: Spec) -> None:
        self.path = Path(path).expanduser()
        self.spec = spec
        self.networks: tuple[NetworkSpec, ...] = network_specs(spec)
        self._batches: dict[tuple[str, str], Batches] = {}

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Run":
        """Open an existing run.

        Raises:
            SourceError: the folder does not exist, or holds no run.
        """
        folder = Path(path).expanduser()
        if not folder.exists():
            raise SourceError(f"{folder}: no such folder. `accord train` writes runs.")
        if (folder / SPEC_FILE).is_file():
            return cls(folder, load_spec(folder / SPEC_FILE))
        cure = "Name the folder that holds spec.toml and checkpoints."
        if (folder / "zarr.json").is_file():
            raise SourceError(f"{folder}: is a record of predictions, not a run. {cure}")
        raise SourceError(f"{folder}: holds no {SPEC_FILE}, so it is not a run. {cure}")

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        spec: Spec,
        *,
        source: str | None = None,
        overwrite: bool = False,
    ) -> "Run":
        """Prepare a folder for training a spec.

        A run of the same spec is continued. Nothing is written before everything is checked.

        Args:
            path: the folder.
            spec: what to train.
            source: the text of the spec, kept unchanged; by default the spec is written anew.
            overwrite: remove an existing run first, of whatever spec.

        Raises:
            SpecError: the folder holds a run of another spec.
            SourceError: the data cannot be read, or differ from those the run began with.
            ChoiceError: a network or loss cannot be built.
            RecordBusy: a network of the run to overwrite is being trained.
        """
        from accord.training._build_networks import check_networks

        run = cls(path, spec)
        if overwrite and run.path.exists() and any(run.path.iterdir()):
            cls.open(path)  # raises if the folder holds anything but a run
        else:
            overwrite = False
            run.check_spec()
        schema = measure_input_schema(run.data)
        if overwrite or not (run.path / SPEC_FILE).exists():
            check_networks(spec, run.data)
        if overwrite:
            cls.open(path).remove()
        text = dump_spec(spec) if source is None else source
        if not Folder(run.path).create(SPEC_FILE, text.encode()):
            run.check_spec()  # another process may have been faster
        save_input_schema(run.path, schema)
        run.check_labels()
        return run

    def check_spec(self) -> None:
        """Check that the folder does not contain a run of another spec.

        Raises:
            SpecError: it does; the message shows the difference.
        """
        path = self.path / SPEC_FILE
        if path.exists() and (stored := load_spec(path)).digest() != self.spec.digest():
            raise SpecError(
                f"{self.path}: holds a run of another spec. The difference:\n"
                f"{_difference(stored, self.spec)}\n"
                "Name another folder with --out, restore the spec, or start anew: --overwrite."
            )

    def check_labels(self) -> None:
        """Check that the labels of the data are those that were recorded.

        Raises:
            RecordMismatch: they have changed; the numbers of the run are of other labels.
        """
        for name in self.spec.record.splits:
            path, split = self.find_record(name), self.data.splits[name]
            with contextlib.suppress(NotARecord):  # a process died while it created the record
                info = None if path is None else open_reader(path, common=True).sample_info
                before = None if info is None else info.given if info.truth is None else info.truth
                now = split.labels if info is None or info.truth is None else split.truth
                if before is None or now is None or len(before) != len(now):
                    continue  # a recorder compares the sizes
                changed = np.flatnonzero(before != now)
                if changed.size:
                    shown = "" if split.ids is None else f", the first of {split.ids[changed[0]]}"
                    raise RecordMismatch(
                        f"{path}: the run recorded other labels: {changed.size} of {len(now)} have "
                        f"changed{shown}. Name another folder with --out, or start anew: "
                        "--overwrite."
                    )

    def remove(self) -> None:
        """Remove the run: its records, checkpoints and files. Other files in its folder stay.

        The spec goes last: if the process is stopped, what remains is a run that can be removed.

        Raises:
            RecordBusy: a network is being trained; nothing is removed.
        """
        names = [entry for name in self.record_paths for entry in (name, f"{name}.zip")]
        with contextlib.ExitStack() as held:
            for path in (self.path, *self._folds()):
                for name in names if path == self.path else ["test"]:
                    if (path / name).is_dir():
                        storage = open_storage(path / name)
                        hold_networks(storage, network_numbers(storage), held)
            trash = Path(tempfile.mkdtemp(prefix=".removed-", dir=self.path))
            for name in (*names, FOLDS, *RUN_FILES, SPEC_FILE):
                if (self.path / name).exists():
                    (self.path / name).replace(trash / name)
        shutil.rmtree(trash)

    def _folds(self) -> list[Path]:
        return sorted((self.path / FOLDS).glob("*")) if self.spec.is_cross_fit else []

    @cached_property
    def device(self) -> "torch.device":
        """Device of the networks: a GPU if one is available."""
        from accord.training._hardware import choose_device

        return choose_device()

    @cached_property
    def data(self) -> "PreparedData":
        """Data of the run, with noise, splits and targets."""
        from accord.training._prepared_data import add_targets, prepare_data

        data = prepare_data(self.spec)
        if self.spec.train.targets is None:
            return data
        return add_targets(data, self.path / TARGETS_FILE, self.spec)

    @cached_property
    def stored_input_schema(self) -> InputSchema | None:
        """Input schema stored with the run, or None before training."""
        return load_input_schema(self.path)

    @cached_property
    def input_schema(self) -> InputSchema:
        """Input schema of the samples, computed from the data if it is not stored.

        Raises:
            SourceError: the file is missing or damaged, and the data cannot be read.
        """
        if self.stored_input_schema is not None:
            return self.stored_input_schema
        try:
            return measure_input_schema(self.data)
        except AccordError as error:
            raise SourceError(
                f"{self.path}: has no {SCHEMA_FILE}, like runs of early versions, and the training "
                f"data cannot be measured again: {error}"
            ) from error

    def batches(self, split: str, network: NetworkSpec) -> "Batches":
        """Load a split as batches for a network."""
        name = self.spec.resolve_network(network.network)
        key = split, name if self.data.dataset.kind == "text" else ""  # texts: a tokenizer each
        if key not in self._batches:
            self._batches[key] = self.data.batches(
                split,
                device=self.device,
                augment=self.spec.train.augment if split == "train" else (),
                network=name,
                length=self.spec.train.length,
            )
        return self._batches[key]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Network numbers in the records, including one for each BatchEnsemble member."""
        return tuple(number for network in self.networks for number in network.numbers)

    @property
    def record_paths(self) -> dict[str, Path]:
        """Paths of the records by split, including those of averaged weights such as `test-ema`."""
        averages = [f"test-{average}" for average in self.spec.record.averages]
        return {name: self.path / name for name in (*self.spec.record.splits, *averages)}

    def find_record(self, name: str = "test") -> Path | None:
        """Find the path of a packed or unpacked record if it exists."""
        for path in (self.path / name, self.path / f"{name}.zip"):
            if path.exists():
                return path
        return None

    def recorded_epochs(self, name: str | None = None) -> dict[int, int]:
        """Count the recorded epochs of each network.

        Args:
            name: the record, by default the first of the spec.
        """
        path = self.find_record(self.spec.record.splits[0] if name is None else name)
        recorded: dict[int, int] = {}
        if path is not None:
            with contextlib.suppress(NotARecord):  # a process died while it created the record
                recorded = describe(path).epochs
        return {number: recorded.get(number, 0) for number in self.numbers}

    @property
    def recording_schedule(self) -> RecordedEpochs:
        """Epochs recorded for each network."""
        schema = self.stored_input_schema
        return RecordedEpochs.of_training(
            self.spec.train.epochs,
            self.spec.record.every,
            batch=self.spec.train.batch,
            samples=None if schema is None else schema.samples,
        )

    @property
    def missing_epochs(self) -> int:
        """Total number of epochs that remain to be recorded."""
        recorded = self.recorded_epochs()
        return sum(max(0, len(self.recording_schedule) - epochs) for epochs in recorded.values())

    def unfinished(self) -> list[NetworkSpec]:
        """Find the networks that need training.

        A network is finished if every record holds all of its epochs and its last checkpoint has
        been written: a process may die between the two.
        """
        recorded = {name: self.recorded_epochs(name) for name in self.record_paths}
        wanted = {
            name: 1 if name == "test-swa" else len(self.recording_schedule) for name in recorded
        }
        return [
            network
            for network in self.networks
            if any(
                counts[number] < wanted[name]
                for name, counts in recorded.items()
                for number in network.numbers
            )
            or not self._has_last_checkpoint(network)
        ]

    def _has_last_checkpoint(self, network: NetworkSpec) -> bool:
        from accord.training._build_networks import build_network
        from accord.training._checkpoints import load_state

        last = self.spec.train.epochs - 1
        if last not in self.checkpoint_epochs or last in self.checkpoints(network):
            return True
        # The state is written after the last checkpoint: one that was deleted since stays deleted.
        state = load_state(self.checkpoint_folder(network))
        if state is not None and state.epochs == self.spec.train.epochs:
            return True
        return not is_trainable(build_network(self.spec, network, self.data))

    @cached_property
    def checkpoint_epochs(self) -> frozenset[int]:
        """Recorded epochs after which checkpoints are saved."""
        wanted, epochs = self.spec.record.checkpoints, self.spec.train.epochs
        schedule = RecordedEpochs(epochs, self.spec.record.every)
        recorded = [epoch for epoch in range(epochs) if schedule.steps_in(epoch)]
        if wanted == "all" or wanted >= len(recorded):
            return frozenset(recorded)
        if wanted == 1:
            return frozenset({epochs - 1})
        positions = equally_spaced(len(recorded), wanted) if wanted else ()
        return frozenset(recorded[position] for position in positions)

    def checkpoint_folder(self, network: NetworkSpec) -> Path:
        """Get the folder with the checkpoints and training state of a network."""
        return checkpoint_folder(self.path, network.number)

    def checkpoints(self, network: NetworkSpec) -> dict[int, Path]:
        """Find the checkpoints of a network by epoch."""
        from accord.training._checkpoints import checkpoints_in

        return checkpoints_in(self.checkpoint_folder(network))

    def last_loss(self, network: NetworkSpec) -> float:
        """Get the last recorded loss of a network, or 0 if none is recorded."""
        path = self.find_record(self.spec.record.splits[0])
        if path is None:
            return 0.0
        (info,) = open_reader(path, networks=[network.number]).networks_info()
        return float(info.metrics[-1].get("loss", 0.0))

    def write_metrics(self) -> None:
        """Write the loss and learning rate of each recorded epoch to `metrics.csv`."""
        with contextlib.suppress(StorageError, NotARecord):  # the record holds the same numbers
            text = csv_text(["network", "progress", "loss", "lr", "time"], self._metrics())
            write_file(self.path / "metrics.csv", text.encode())

    def _metrics(self) -> Iterator[list[Any]]:
        path = self.find_record(self.spec.record.splits[0])
        epochs = {} if path is None else describe(path).epochs
        for number in (number for number, recorded in epochs.items() if recorded):
            (info,) = open_reader(path, networks=[number]).networks_info()  # type: ignore[arg-type]
            for progress, metrics, when in zip(
                info.progress, info.metrics, info.times, strict=True
            ):
                yield [number, progress, metrics.get("loss"), metrics.get("lr"), when]


def is_trainable(network: "torch.nn.Module") -> bool:
    return bool(getattr(network, "trainable", True))


def _difference(stored: Spec, spec: Spec) -> str:
    before, after = (
        one.model_dump_json(indent=1, exclude=DIGEST_EXCLUDES).splitlines()
        for one in (stored, spec)
    )
    lines = difflib.unified_diff(before, after, lineterm="", n=0)
    return "\n".join(line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---"))
