"""The runs that a comparison looks at: the spec's own, and those that rivals train anew."""

import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from torch import nn

from accord.api import Record, open_record
from accord.errors import PredictionError, TrainingError
from accord.store.places import Folder
from accord.training.checkpoints import checkpoint_folder, checkpoints_in, load_checkpoint
from accord.training.material import Material, prepare_material
from accord.training.run import Progress, RunResult, build_network, train_run
from accord.training.settings import choose_device
from accord.training.spec import Spec, members_of
from accord.training.spec_text import dump_spec

VALIDATION: Final = 0.1  # of the training samples, held out where a method needs them
SNAPSHOTS: Final = 5  # cycles of a snapshot ensemble, as nearly as epochs divide
MEMBERS: Final = 4  # of a BatchEnsemble
RATES: Final = (0.2, 0.8, 1.4, 2.0)  # of a hyper-ensemble, times the spec's


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


def snapshot_spec(spec: Spec) -> Spec:
    """One network whose rate falls to nothing again and again, each time for whole moments."""
    apart = max(1, round(spec.record.every))
    cycle = apart * max(1, round(spec.train.epochs / SNAPSHOTS / apart))
    schedule = {"kind": "cosine", "cycle": cycle}
    return _changed(_alone(spec), train={"networks": 1, "schedule": schedule})


def elr_spec(spec: Spec) -> Spec:
    """The same networks, trained with a loss that resists wrong labels."""
    return _changed(_alone(spec), train={"loss": {"kind": "elr"}})


def batch_ensemble_spec(spec: Spec) -> Spec:
    """One network whose members share most of its weights."""
    return _changed(_alone(spec), train={"networks": 1, "batch_ensemble": MEMBERS})


def hyper_ensemble_spec(spec: Spec) -> Spec:
    """Networks with learning rates from low to high, at equal distances."""
    members = [{"lr": spec.train.optimizer.lr * rate} for rate in RATES]
    return _changed(_alone(spec), train={"networks": members})


def _alone(spec: Spec) -> Spec:
    record = {"splits": ("test",), "checkpoints": 0, "averages": ()}
    return _changed(spec, train={"batch_ensemble": None}, record=record)


def _changed(spec: Spec, **parts: dict[str, Any]) -> Spec:
    asked = spec.model_dump(exclude_defaults=True)
    for part, changes in parts.items():
        asked[part] = {**asked.get(part, {}), **changes}
    return Spec.model_validate(asked)


SPECS: Final[dict[str, Callable[[Spec], Spec]]] = {
    "shared": lambda spec: spec,
    "snapshot": snapshot_spec,
    "elr": elr_spec,
    "batch-ensemble": batch_ensemble_spec,
    "hyper-ensemble": hyper_ensemble_spec,
}


Trainer = Callable[[Spec, Path, Progress | None], RunResult]


def train_here(spec: Spec, out: Path, progress: Progress | None) -> RunResult:
    """Train on this machine."""
    return train_run(spec, out, source=dump_spec(spec), progress=progress)


def folder_of(out: Path, name: str, spec: Spec) -> Path:
    """Return where a run of a comparison lies: by its part in it, and what it asks."""
    return out / f"{name}-{spec.digest()}"


class TrainedRun:
    """One run of a comparison, finished."""

    def __init__(self, spec: Spec, out: Path) -> None:
        self.spec, self.out = spec, out
        self.device = choose_device()

    @cached_property
    def record(self) -> Record:
        """What its networks say of the test samples."""
        return open_record(self.out / "test")

    def record_of(self, name: str) -> Record:
        """Return another of its records, such as "validation" or "test-ema"."""
        return open_record(self.out / name)

    @cached_property
    def material(self) -> Material:
        """The data it was trained on."""
        return prepare_material(self.spec)

    @cached_property
    def network_bytes(self) -> int:
        """How large the weights of one network are, in the mean."""
        sizes = [
            [
                value.nbytes
                for value in build_network(self.spec, member, self.material).state_dict().values()
            ]
            for member in members_of(self.spec)
        ]
        return round(sum(map(sum, sizes)) / len(sizes))

    def networks(self) -> Sequence[nn.Module]:
        """Return every network with the weights of its last epoch, on the device."""
        return [self._load(position) for position in range(len(members_of(self.spec)))]

    def _load(self, position: int) -> nn.Module:
        member = members_of(self.spec)[position]
        network = build_network(self.spec, member, self.material)
        if not getattr(network, "trainable", True):
            raise PredictionError(
                f"network {member.number} is of kind {member.network!r}, which learns nothing: "
                "it has no features to look at."
            )
        folder = checkpoint_folder(self.out, member.number)
        weights = load_checkpoint(checkpoints_in(folder)[self.spec.train.epochs - 1])
        network.load_state_dict(weights)
        return network.to(self.device)

    def kept(self, name: str, predict: Callable[[], NDArray[np.intp]]) -> NDArray[np.intp]:
        """Return labels that were predicted before, or predict them and keep them."""
        path = self.out / "predictions" / f"{name}.npy"
        with suppress(OSError, EOFError, ValueError):  # not there, or damaged: predict again
            there: NDArray[np.intp] = np.load(path, allow_pickle=False)
            if there.shape == (self.record.samples,):
                return there
        labels = np.asarray(predict(), np.intp)
        file = io.BytesIO()
        np.save(file, labels)
        Folder(path.parent).put(path.name, file.getvalue())
        return labels


class Runs:
    """The runs of one repetition; each is trained when a method first asks for it."""

    def __init__(
        self,
        spec: Spec,
        out: Path,
        *,
        train: Trainer | None = None,
        progress: Progress | None = None,
        starting: Callable[[str], None] | None = None,
    ) -> None:
        self._spec, self._out = spec, out
        self._train_spec = train or train_here
        self._progress, self._starting = progress, starting
        self._done: dict[str, TrainedRun | TrainingError] = {}

    def __getitem__(self, name: str) -> TrainedRun:
        if name not in self._done:
            try:
                self._done[name] = self._train(name)
            except TrainingError as error:
                self._done[name] = error  # for the next who asks
        found = self._done[name]
        if isinstance(found, TrainingError):
            raise found
        return found

    def _train(self, name: str) -> TrainedRun:
        spec = SPECS[name](self._spec)
        out = folder_of(self._out, name, spec)
        if self._starting is not None:
            self._starting(f"{name} run, seed {spec.train.seed}:")
        result = self._train_spec(spec, out, self._progress)
        if result.failed:
            number, why = next(iter(result.failed.items()))
            raise TrainingError(f"{out}: network {number} was stopped: {why}")
        return TrainedRun(spec, out)
