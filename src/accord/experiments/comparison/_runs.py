"""Define and train the runs of a comparison."""

import io
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord._files import write_file
from accord._record import Record, open_record
from accord.errors import ChoiceError, PredictionError, TrainingError
from accord.training import Run, Spec, network_specs
from accord.training._run_folder import is_trainable
from accord.training._spec import SEEDS_APART

if TYPE_CHECKING:
    from torch import nn

    from accord.training import OnProgress, RunResult

SHARED: Final = "shared"  # the run of the spec itself
SNAPSHOTS: Final = 5  # cycles of a snapshot ensemble, if the epochs divide evenly
MEMBERS: Final = 4  # of a BatchEnsemble
RATES: Final = (0.2, 0.8, 1.4, 2.0)  # of a hyper-ensemble, relative to the spec's


def shared_spec(spec: Spec, *, validation: bool) -> Spec:
    """Build the spec of the networks that most methods share."""
    # If a method needs samples that no network was trained on, a tenth is held out from all.
    held_out = spec.data.validation or (0.1 if validation else 0.0)
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
    changes: dict[str, Any] = {"seed": spec.train.seed + repetition}
    if isinstance(spec.train.networks, tuple):
        offset = repetition * SEEDS_APART
        changes["networks"] = tuple(
            one if one.seed is None else one.model_copy(update={"seed": one.seed + offset})
            for one in spec.train.networks
        )
    return spec.change(train=changes)


def snapshot_spec(spec: Spec) -> Spec:
    """Build the spec of a network with a cyclic learning rate.

    A cycle is an integer number of recorded epochs, so that its end is recorded.
    """
    every = min(max(1, round(spec.record.every)), spec.train.epochs)  # the last is recorded too
    cycle = every * max(1, round(spec.train.epochs / SNAPSHOTS / every))
    schedule = {"kind": "cosine", "cycle": cycle}
    train = {**_of_first(spec), "networks": 1, "schedule": schedule}
    return _changed(_without_extras(spec), train=train)


def elr_spec(spec: Spec) -> Spec:
    """Build the spec of the same networks with early-learning regularisation."""
    loss = spec.train.loss
    train: dict[str, Any] = {"loss": loss.model_dump() if loss.kind == "elr" else {"kind": "elr"}}
    if isinstance(spec.train.networks, tuple):
        plain = [one.model_copy(update={"loss": None}) for one in spec.train.networks]
        train["networks"] = [one.model_dump(exclude_none=True) for one in plain]
    return _changed(_without_extras(spec), train=train)


def batch_ensemble_spec(spec: Spec) -> Spec:
    train = {**_of_first(spec), "networks": 1, "batch_ensemble": MEMBERS}
    return _changed(_without_extras(spec), train=train)


def hyper_ensemble_spec(spec: Spec) -> Spec:
    """Build the spec of networks with equally spaced learning rates."""
    networks = [{"lr": network_specs(spec)[0].optimizer.lr * rate} for rate in RATES]
    return _changed(_without_extras(spec), train={**_of_first(spec), "networks": networks})


def _of_first(spec: Spec) -> dict[str, Any]:
    """Get the settings of the first network if networks differ."""
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


Trainer: TypeAlias = Callable[..., "RunResult"]  # called as train(spec, out, progress=…)


def run_path(out: Path, name: str, spec: Spec) -> Path:
    return out / f"{name}-{spec.digest()}"


class FinishedRun(Run):
    @cached_property
    def record(self) -> Record:
        return self.open_record("test")

    def open_record(self, name: str) -> Record:
        """Open a record such as "validation" or "test-ema"."""
        return open_record(self.path / name)

    @cached_property
    def network_bytes(self) -> int:
        """Mean size of the weights of a network in bytes."""
        from accord.training._build_networks import build_network

        sizes: list[int] = []
        for spec in self.networks:
            network = build_network(self.spec, spec, self.data)
            sizes.append(sum(value.nbytes for value in network.state_dict().values()))
        return round(sum(sizes) / len(sizes))

    def load_networks(self) -> "list[nn.Module]":
        from accord.training._build_networks import build_network
        from accord.training._checkpoints import load_checkpoint

        networks = []
        for spec in self.networks:
            network = build_network(self.spec, spec, self.data)
            if not is_trainable(network):
                raise PredictionError(
                    f"network {spec.number} of kind {spec.network!r} is not trained and has no "
                    "features"
                )
            checkpoints, last = self.checkpoints(spec), self.spec.train.epochs - 1
            if last not in checkpoints:
                raise PredictionError(
                    f"{self.checkpoint_folder(spec)}: checkpoint of epoch {last} is missing. "
                    f"Remove {self.path} to train its networks again."
                )
            network.load_state_dict(load_checkpoint(checkpoints[last]))
            networks.append(network.to(self.device))
        return networks

    def stored_labels(self, name: str, compute: Callable[[], NDArray[np.intp]]) -> NDArray[np.intp]:
        """Load the labels of a method, or compute and store them if they are missing or damaged."""
        path = self.path / "predictions" / f"{name}.npy"
        with suppress(OSError, EOFError, ValueError):
            stored: NDArray[np.intp] = np.load(path, allow_pickle=False)
            if stored.shape == (self.record.samples,):
                return stored
        labels, file = compute(), io.BytesIO()
        np.save(file, np.asarray(labels, np.intp))
        write_file(path, file.getvalue())
        return labels


class RunsOfRepetition:
    """Mapping from names to the runs of a repetition, which are trained on first access."""

    def __init__(
        self,
        spec: Spec,
        out: Path,
        trainer: Trainer | None = None,
        progress: "OnProgress | None" = None,
        on_start: Callable[[str], None] | None = None,
    ) -> None:
        self._spec, self._out, self._train = spec, out, trainer
        self._progress, self._on_start = progress, on_start
        self._runs: dict[str, FinishedRun | TrainingError] = {}
        self.notes: list[str] = []  # from training
        self.stopped: list[str] = []  # runs that could not be trained, with the reason

    def __getitem__(self, name: str) -> FinishedRun:
        from accord.training import train

        if name not in self._runs:
            try:
                spec = SPECS[name](self._spec)
                out = run_path(self._out, name, spec)
                if self._on_start is not None:
                    self._on_start(f"{name} run, seed {spec.train.seed}:")
                result = (self._train or train)(spec, out, progress=self._progress)
                self.notes += result.notes
                if result.failed:
                    numbers, count = ", ".join(map(str, result.failed)), len(result.failed)
                    which = f"network {numbers} was" if count == 1 else f"networks {numbers} were"
                    reason = next(iter(result.failed.values()))
                    raise TrainingError(f"{out}: {which} stopped: {reason}")
                self._runs[name] = FinishedRun(out, spec)
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
