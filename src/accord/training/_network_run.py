"""What a run keeps of its networks: predictions, weights, states and metrics."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from accord._files import csv_text, write_file
from accord._recorder import Recorder
from accord.errors import StorageError
from accord.kernels import equally_spaced
from accord.store import describe, open_reader
from accord.training._batches import Batches
from accord.training._checkpoints import (
    State,
    checkpoint_folder,
    checkpoints_in,
    load_state,
    save_checkpoint,
    save_state,
)
from accord.training._loop import EpochResult, Recipe, predict_probabilities, recorded_steps
from accord.training._prepared_data import PreparedData
from accord.training._weight_averages import AveragedNetwork, recompute_batch_norm, unwrap_average
from accord.training.spec import NetworkSpec, Spec

STATE_SECONDS: Final = 30.0  # a training state is written at most so often, and at the end


@dataclass(frozen=True, eq=False)
class Run:
    """What the networks of one run share."""

    spec: Spec
    material: PreparedData
    out: Path
    device: torch.device

    def batches(self, split: str, member: NetworkSpec, *, augment: tuple[str, ...] = ()) -> Batches:
        """Return a split's samples as one network sees them."""
        return self.material.batches(
            split,
            device=self.device,
            augment=augment,
            network=self.spec.resolve_network(member.network),
            length=self.spec.train.length,
        )


class SplitRecorder:
    """Records one split of one network, or of all members of one; a context manager.

    With an `average`, what the network would say with averaged weights: a moving average at each
    moment, a mean over epochs once, at the last one.
    """

    def __init__(
        self, split: str, member: NetworkSpec, run: Run, *, average: str | None = None
    ) -> None:
        self._average = average
        self._run, self._member = run, member
        part = run.material.splits[split]
        self._samples = run.batches(split, member)
        self._open = contextlib.ExitStack()
        with contextlib.ExitStack() as opening:
            self._recorders = [
                opening.enter_context(
                    Recorder(
                        run.out / (split if average is None else f"{split}-{average}"),
                        network=member.number + position,
                        samples=len(part),
                        classes=run.material.classes,
                        truth=part.truth,
                        given=None if split == "test" else part.labels,
                        ids=part.ids,
                        class_names=run.material.dataset.class_names,
                        split=split,
                        probabilities=run.spec.record.probabilities,
                        metadata={"spec": run.spec.digest(), **member.model_dump(mode="json")},
                    )
                )
                for position in range(member.members)
            ]
            self._open = opening.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def holds(self, moments: int, *, of: int) -> bool:
        """Tell whether all is there that so many moments, of so many in all, give to record."""
        wanted = int(moments == of) if self._average == "swa" else moments
        return min(recorder.epochs for recorder in self._recorders) >= wanted

    def keep(self, network: nn.Module, moment: EpochResult, recipe: Recipe) -> None:
        """Record what the network says now, unless it was recorded before an interruption."""
        row = moment.index
        if self._average == "swa":
            if moment.progress < recipe.epochs:
                return
            row = 0
        missing = [one for one in self._recorders if one.epochs <= row]
        if not missing:
            return
        tables = self._predict(network, recipe)
        for position, recorder in enumerate(self._recorders):
            if recorder in missing:
                recorder.record(
                    tables[position] if tables.ndim == 3 else tables,
                    epoch=row,
                    progress=moment.progress,
                    loss=moment.loss,
                    lr=moment.lr,
                )

    def _predict(self, network: nn.Module, recipe: Recipe) -> NDArray[np.float32]:
        if self._average is None or not isinstance(network, AveragedNetwork):
            return predict_probabilities(network, self._samples, bfloat16=recipe.bfloat16)
        with network.using(self._average) as averaged:
            if self._average == "swa":
                recompute_batch_norm(averaged, self._run.batches("train", self._member))
            return predict_probabilities(averaged, self._samples, bfloat16=recipe.bfloat16)


class Checkpoints:
    """Keeps one network's weights at chosen epochs, and its training state every now and then."""

    def __init__(self, member: NetworkSpec, run: Run) -> None:
        self._folder = checkpoint_folder(run.out, member.number)
        self._chosen = checkpoint_epochs(run.spec)
        self._last = run.spec.train.epochs
        self._saved = time.monotonic()

    def state(self) -> State | None:
        """Return the state to go on from, if there is one."""
        return load_state(self._folder)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to write once all is recorded.

        A process may die after the last row and before the last checkpoint. What was written and
        then removed is not made again: the state, written after it, tells.
        """
        last = self._last - 1
        if last not in self._chosen or last in checkpoints_in(self._folder):
            return True
        state = self.state()
        return state is not None and state.epochs == self._last

    def keep(self, network: nn.Module, moment: EpochResult) -> None:
        """Write what is due."""
        if moment.state is None:
            return
        epochs = moment.state.epochs
        if epochs - 1 in self._chosen:
            save_checkpoint(self._folder, epochs - 1, unwrap_average(network))
        if epochs == self._last or time.monotonic() - self._saved > STATE_SECONDS:
            save_state(self._folder, moment.state)
            self._saved = time.monotonic()


def checkpoint_epochs(spec: Spec) -> set[int]:
    """Return the epochs after which a spec wants checkpoints: of those that are recorded."""
    asked, epochs = spec.record.checkpoints, spec.train.epochs
    recorded = sorted(recorded_steps(Recipe(epochs=epochs, every=spec.record.every), 1))
    if asked == "all" or asked >= len(recorded):
        return set(recorded)
    if asked == 1:
        return {epochs - 1}
    return {recorded[at] for at in equally_spaced(len(recorded), asked)} if asked else set()


def epochs_in_record(path: Path) -> dict[int, int]:
    """Return how many moments each network of a record holds; none if there is no record."""
    return describe(path).epochs if path.exists() else {}


def last_loss(record: Path, network: int) -> float:
    """Return the loss that a network recorded last; 0 if it recorded none."""
    (told,) = open_reader(record, networks=[network]).networks_info()
    return float(told.metrics[-1].get("loss", 0.0))


def write_metrics(record: Path, out: Path) -> None:
    """Write what each network was told at each moment as one CSV file."""
    text = csv_text(["network", "progress", "loss", "lr", "time"], _metrics(record))
    with contextlib.suppress(StorageError):  # the record holds it all
        write_file(out, text.encode())


def _metrics(record: Path) -> Iterator[list[Any]]:
    for number, epochs in epochs_in_record(record).items():
        if epochs:
            (told,) = open_reader(record, networks=[number]).networks_info()
            for progress, facts, when in zip(told.progress, told.metrics, told.times, strict=True):
                yield [number, progress, facts.get("loss"), facts.get("lr"), when]
