"""The runs that a comparison looks at: the spec's own, and those that rivals train anew."""

import io
from collections.abc import Callable, Mapping, Sequence
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
from accord.training._batches import Batches
from accord.training._build import build_network
from accord.training._checkpoints import checkpoint_folder, checkpoints_in, load_checkpoint
from accord.training._network_run import Run
from accord.training._prepared_data import PreparedData, prepare_data
from accord.training._settings import choose_device
from accord.training._spec_toml import dump_spec
from accord.training.run import Progress, RunResult, train
from accord.training.spec import SEEDS_APART, NetworkSpec, Spec, network_specs

SHARED: Final = "shared"  # the run of the spec itself
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


def repeated_spec(spec: Spec, repetition: int) -> Spec:
    """Return the spec of one repetition, all its networks with seeds of their own."""
    changes: dict[str, Any] = {"seed": spec.train.seed + repetition}
    if isinstance(spec.train.networks, tuple):
        apart = repetition * SEEDS_APART
        changes["networks"] = tuple(
            one if one.seed is None else one.model_copy(update={"seed": one.seed + apart})
            for one in spec.train.networks
        )
    return spec.model_copy(update={"train": spec.train.model_copy(update=changes)})


def snapshot_spec(spec: Spec) -> Spec:
    """One network whose rate falls to nothing again and again, each time for whole moments."""
    apart = min(max(1, round(spec.record.every)), spec.train.epochs)  # the last is a moment too
    cycle = apart * max(1, round(spec.train.epochs / SNAPSHOTS / apart))
    schedule = {"kind": "cosine", "cycle": cycle}
    train = {**_of_first(spec), "networks": 1, "schedule": schedule}
    return _changed(_alone(spec), train=train)


def elr_spec(spec: Spec) -> Spec:
    """The same networks, trained with a loss that resists wrong labels."""
    asked = spec.train.loss
    train: dict[str, Any] = {"loss": asked.model_dump() if asked.kind == "elr" else {"kind": "elr"}}
    if isinstance(spec.train.networks, tuple):
        plain = [one.model_copy(update={"loss": None}) for one in spec.train.networks]
        train["networks"] = [one.model_dump(exclude_none=True) for one in plain]
    return _changed(_alone(spec), train=train)


def batch_ensemble_spec(spec: Spec) -> Spec:
    """One network whose members share most of its weights."""
    train = {**_of_first(spec), "networks": 1, "batch_ensemble": MEMBERS}
    return _changed(_alone(spec), train=train)


def hyper_ensemble_spec(spec: Spec) -> Spec:
    """Networks with learning rates from low to high, at equal distances."""
    members = [{"lr": network_specs(spec)[0].optimizer.lr * rate} for rate in RATES]
    return _changed(_alone(spec), train={**_of_first(spec), "networks": members})


def _of_first(spec: Spec) -> dict[str, Any]:
    """Return what the first network is trained with, where each says so for itself."""
    if not isinstance(spec.train.networks, tuple):
        return {}
    said = spec.train.networks[0].model_dump(exclude_none=True, exclude={"lr", "seed"})
    return {**said, "optimizer": network_specs(spec)[0].optimizer.model_dump()}


def _alone(spec: Spec) -> Spec:
    record = {"splits": ("test",), "checkpoints": 0, "averages": ()}
    return _changed(spec, train={"batch_ensemble": None}, record=record)


def _changed(spec: Spec, **parts: dict[str, Any]) -> Spec:
    asked = spec.model_dump(exclude_defaults=True)
    for part, changes in parts.items():
        asked[part] = {**asked.get(part, {}), **changes}
    return Spec.model_validate(asked)


SPECS: Final[dict[str, Callable[[Spec], Spec]]] = {
    SHARED: lambda spec: spec,
    "snapshot": snapshot_spec,
    "elr": elr_spec,
    "batch-ensemble": batch_ensemble_spec,
    "hyper-ensemble": hyper_ensemble_spec,
}


Trainer = Callable[[Spec, Path, Progress | None], RunResult]


def train_here(spec: Spec, out: Path, progress: Progress | None) -> RunResult:
    """Train on this machine."""
    return train(spec, out, source=dump_spec(spec), progress=progress)


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
    def material(self) -> PreparedData:
        """The data it was trained on."""
        return prepare_data(self.spec)

    def batches(self, split: str, member: NetworkSpec) -> Batches:
        """Return a split's samples as one network sees them."""
        return Run(self.spec, self.material, self.out, self.device).batches(split, member)

    @cached_property
    def network_bytes(self) -> int:
        """How large the weights of one network are, in the mean."""
        sizes = [
            [
                value.nbytes
                for value in build_network(self.spec, member, self.material).state_dict().values()
            ]
            for member in network_specs(self.spec)
        ]
        return round(sum(map(sum, sizes)) / len(sizes))

    def networks(self) -> Sequence[nn.Module]:
        """Return every network with the weights of its last epoch, on the device."""
        return [self._load(position) for position in range(len(network_specs(self.spec)))]

    def _load(self, position: int) -> nn.Module:
        member = network_specs(self.spec)[position]
        network = build_network(self.spec, member, self.material)
        if not getattr(network, "trainable", True):
            raise PredictionError(
                f"network {member.number} is of kind {member.network!r}, which learns nothing: "
                "it has no features to look at."
            )
        folder = checkpoint_folder(self.out, member.number)
        last = self.spec.train.epochs - 1
        there = checkpoints_in(folder)
        if last not in there:
            raise PredictionError(
                f"{folder}: holds no checkpoint of epoch {last}. Remove {self.out}, and its "
                "networks are trained anew."
            )
        weights = load_checkpoint(there[last])
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
        write_file(path, file.getvalue())
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
        self.notes: list[str] = []  # from training, for people to read
        self.stopped: list[str] = []  # which runs could not be trained, and why

    def __getitem__(self, name: str) -> TrainedRun:
        if name not in self._done:
            try:
                self._done[name] = self._train(name)
            except TrainingError as error:
                self._done[name] = error  # for the next who asks
                self.stopped.append(str(error))
            except ChoiceError as error:
                if name == SHARED:  # the spec itself is at fault
                    raise
                self._done[name] = TrainingError(str(error))
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
        self.notes += result.notes
        if result.failed:
            raise TrainingError(f"{out}: {_stopped(result.failed)}")
        return TrainedRun(spec, out)


def _stopped(failed: Mapping[int, str]) -> str:
    """Name all networks that were stopped, and why the first of them was."""
    numbers = ", ".join(map(str, failed))
    those = f"network {numbers} was" if len(failed) == 1 else f"networks {numbers} were"
    return f"{those} stopped: {next(iter(failed.values()))}"
