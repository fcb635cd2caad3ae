"""The runs of a comparison: the shared one, and those that baselines train separately."""

import io
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from torch import nn

from accord._files import write_file
from accord._record import Record, open_record
from accord.errors import ChoiceError, PredictionError, TrainingError
from accord.training import (
    NetworkSpec,
    OnProgress,
    Run,
    RunResult,
    Spec,
    dump_spec,
    network_specs,
    train,
)
from accord.training._batches import Batches
from accord.training._build import build_network
from accord.training._checkpoints import checkpoint_folder, checkpoints_in, load_checkpoint
from accord.training._hardware import choose_device
from accord.training._prepared_data import PreparedData, prepare_data
from accord.training._spec import SEEDS_APART

SHARED: Final = "shared"  # the run of the spec itself
VALIDATION: Final = 0.1  # share of the training samples, held out if a method needs them
SNAPSHOTS: Final = 5  # cycles of a snapshot ensemble, if the epochs divide evenly
MEMBERS: Final = 4  # of a BatchEnsemble
RATES: Final = (0.2, 0.8, 1.4, 2.0)  # of a hyper-ensemble, relative to the spec's


def shared_spec(spec: Spec, *, validation: bool) -> Spec:
    """Return the spec of the networks that most methods share."""
    held_out = spec.data.validation or (VALIDATION if validation else 0.0)
    splits = ("test", "validation") if held_out else ("test",)
    return _changed(
        spec,
        data={"validation": held_out},
        record={
            "splits": splits,
            "probabilities": True,
            "checkpoints": 1,
            "averages": () if spec.train.batch_ensemble else ("ema", "swa"),
        },
    )


def repeated_spec(spec: Spec, repetition: int) -> Spec:
    """Return the spec of one repetition, with other seeds."""
    changes: dict[str, Any] = {"seed": spec.train.seed + repetition}
    if isinstance(spec.train.networks, tuple):
        offset = repetition * SEEDS_APART
        changes["networks"] = tuple(
            one if one.seed is None else one.model_copy(update={"seed": one.seed + offset})
            for one in spec.train.networks
        )
    return spec.model_copy(update={"train": spec.train.model_copy(update=changes)})


def snapshot_spec(spec: Spec) -> Spec:
    """Return the spec of one network with a cyclic learning rate.

    A cycle is a whole number of recorded epochs, so that its end is recorded.
    """
    every = min(max(1, round(spec.record.every)), spec.train.epochs)  # the last is recorded too
    cycle = every * max(1, round(spec.train.epochs / SNAPSHOTS / every))
    schedule = {"kind": "cosine", "cycle": cycle}
    train = {**_of_first(spec), "networks": 1, "schedule": schedule}
    return _changed(_without_extras(spec), train=train)


def elr_spec(spec: Spec) -> Spec:
    """Return the spec of the same networks, trained with early-learning regularisation."""
    loss = spec.train.loss
    train: dict[str, Any] = {"loss": loss.model_dump() if loss.kind == "elr" else {"kind": "elr"}}
    if isinstance(spec.train.networks, tuple):
        plain = [one.model_copy(update={"loss": None}) for one in spec.train.networks]
        train["networks"] = [one.model_dump(exclude_none=True) for one in plain]
    return _changed(_without_extras(spec), train=train)


def batch_ensemble_spec(spec: Spec) -> Spec:
    """Return the spec of one network whose members share most of its weights."""
    train = {**_of_first(spec), "networks": 1, "batch_ensemble": MEMBERS}
    return _changed(_without_extras(spec), train=train)


def hyper_ensemble_spec(spec: Spec) -> Spec:
    """Return the spec of networks with equally spaced learning rates."""
    networks = [{"lr": network_specs(spec)[0].optimizer.lr * rate} for rate in RATES]
    return _changed(_without_extras(spec), train={**_of_first(spec), "networks": networks})


def _of_first(spec: Spec) -> dict[str, Any]:
    """Return the settings of the first network, if networks have their own."""
    if not isinstance(spec.train.networks, tuple):
        return {}
    settings = spec.train.networks[0].model_dump(exclude_none=True, exclude={"lr", "seed"})
    return {**settings, "optimizer": network_specs(spec)[0].optimizer.model_dump()}


def _without_extras(spec: Spec) -> Spec:
    record = {"splits": ("test",), "checkpoints": 0, "averages": ()}
    return _changed(spec, train={"batch_ensemble": None}, record=record)


def _changed(spec: Spec, **parts: dict[str, Any]) -> Spec:
    values = spec.model_dump(exclude_defaults=True)
    for part, changes in parts.items():
        values[part] = {**values.get(part, {}), **changes}
    return Spec.model_validate(values)


SPECS: Final[dict[str, Callable[[Spec], Spec]]] = {
    SHARED: lambda spec: spec,
    "snapshot": snapshot_spec,
    "elr": elr_spec,
    "batch-ensemble": batch_ensemble_spec,
    "hyper-ensemble": hyper_ensemble_spec,
}


Trainer = Callable[[Spec, Path, OnProgress | None], RunResult]


def train_here(spec: Spec, out: Path, progress: OnProgress | None) -> RunResult:
    """Train on this machine."""
    return train(spec, out, source=dump_spec(spec), progress=progress)


def run_path(out: Path, name: str, spec: Spec) -> Path:
    """Return the folder of a run, named after its role and its spec's digest."""
    return out / f"{name}-{spec.digest()}"


class FinishedRun:
    """One finished run of a comparison."""

    def __init__(self, spec: Spec, out: Path) -> None:
        self.spec, self.out = spec, out
        self.device = choose_device()

    @cached_property
    def record(self) -> Record:
        """The record of the test split."""
        return self.open("test")

    def open(self, name: str) -> Record:
        """Open one of the records, such as "validation" or "test-ema"."""
        return open_record(self.out / name)

    @cached_property
    def data(self) -> PreparedData:
        """The data that the networks were trained on."""
        return prepare_data(self.spec)

    def batches(self, split: str, network: NetworkSpec) -> Batches:
        """Return a split's samples in the form that a network takes."""
        return Run(self.out, self.spec).batches(split, network)

    @cached_property
    def network_bytes(self) -> int:
        """The size of the weights of one network; the mean over networks."""
        sizes: list[int] = [
            sum(value.nbytes for value in self._build(network).state_dict().values())
            for network in network_specs(self.spec)
        ]
        return round(sum(sizes) / len(sizes))

    def load_networks(self) -> list[nn.Module]:
        """Return the networks with the weights of their last epoch, on the device."""
        return [self._load(network) for network in network_specs(self.spec)]

    def _build(self, network: NetworkSpec) -> nn.Module:
        return build_network(self.spec, network, self.data)

    def _load(self, spec: NetworkSpec) -> nn.Module:
        network = self._build(spec)
        if not getattr(network, "trainable", True):
            raise PredictionError(
                f"network {spec.number} of kind {spec.network!r} is not trained and has no features"
            )
        folder, last = checkpoint_folder(self.out, spec.number), self.spec.train.epochs - 1
        checkpoints = checkpoints_in(folder)
        if last not in checkpoints:
            raise PredictionError(
                f"{folder}: checkpoint of epoch {last} is missing. Remove {self.out} to train its "
                "networks again."
            )
        network.load_state_dict(load_checkpoint(checkpoints[last]))
        return network.to(self.device)

    def cached_labels(self, name: str, predict: Callable[[], NDArray[np.intp]]) -> NDArray[np.intp]:
        """Return the stored labels of a method, or predict and store them."""
        path = self.out / "predictions" / f"{name}.npy"
        with suppress(OSError, EOFError, ValueError):  # missing or damaged: predict again
            stored: NDArray[np.intp] = np.load(path, allow_pickle=False)
            if stored.shape == (self.record.samples,):
                return stored
        labels = np.asarray(predict(), np.intp)
        file = io.BytesIO()
        np.save(file, labels)
        write_file(path, file.getvalue())
        return labels


class RunsOfRepetition:
    """The runs of one repetition by name, each trained when a method first needs it."""

    def __init__(
        self,
        spec: Spec,
        out: Path,
        train_spec: Trainer = train_here,
        progress: OnProgress | None = None,
        on_start: Callable[[str], None] | None = None,
    ) -> None:
        self._spec, self._out, self._train_spec = spec, out, train_spec
        self._progress, self._on_start = progress, on_start
        self._runs: dict[str, FinishedRun | TrainingError] = {}
        self.notes: list[str] = []  # from training
        self.stopped: list[str] = []  # runs that could not be trained, with the reason

    def __getitem__(self, name: str) -> FinishedRun:
        if name not in self._runs:
            try:
                spec = SPECS[name](self._spec)
                out = run_path(self._out, name, spec)
                if self._on_start is not None:
                    self._on_start(f"{name} run, seed {spec.train.seed}:")
                result = self._train_spec(spec, out, self._progress)
                self.notes += result.notes
                _check_result(result, out)
                self._runs[name] = FinishedRun(spec, out)
            except TrainingError as error:
                self._runs[name] = error  # raised again for the next method
                self.stopped.append(str(error))
            except ChoiceError as error:
                if name == SHARED:  # the user's spec is at fault
                    raise
                self._runs[name] = TrainingError(str(error))
        found = self._runs[name]
        if isinstance(found, TrainingError):
            raise found
        return found


def _check_result(result: RunResult, out: Path) -> None:
    if result.failed:
        numbers, count = ", ".join(map(str, result.failed)), len(result.failed)
        which = f"network {numbers} was" if count == 1 else f"networks {numbers} were"
        reason = next(iter(result.failed.values()))
        raise TrainingError(f"{out}: {which} stopped: {reason}")
