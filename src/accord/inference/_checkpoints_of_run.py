"""Find the checkpoints of a run."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from accord.data import InputSchema
from accord.errors import AccordError, SourceError
from accord.store import RecordReader, open_reader
from accord.training import NetworkSpec, Run
from accord.training._cross_fit import fold_path


@dataclass(frozen=True)
class RunCheckpoints:
    """Networks of a run with checkpoints and their common epochs."""

    run: Run
    networks: tuple[NetworkSpec, ...]
    epochs: tuple[int, ...]  # of training, from 0
    notes: tuple[str, ...] = ()  # on skipped networks and epochs

    @property
    def schema(self) -> InputSchema:
        return self.run.input_schema

    @property
    def numbers(self) -> tuple[int, ...]:
        """Network numbers in a record, including one for each BatchEnsemble member."""
        return tuple(number for network in self.networks for number in network.numbers)

    @property
    def voters(self) -> int:
        return len(self.numbers) * len(self.epochs)

    def record_epochs(self, epochs: Sequence[int] | None = None) -> list[int]:
        """Get the record indices of training epochs, by default of all epochs."""
        schedule = self.run.recording_schedule
        return [
            schedule.index(epoch, schedule.steps)
            for epoch in (self.epochs if epochs is None else epochs)
        ]

    def reader(self) -> RecordReader | None:
        for split in self.run.spec.record.splits:
            try:
                reader = open_reader(self.run.path / split, networks=self.numbers, common=True)
                return reader.select(epochs=self.record_epochs())
            except AccordError:  # missing, moved or incomplete: it only makes an exit faster
                continue
        return None


def checkpoints_of_run(path: str | os.PathLike[str]) -> RunCheckpoints:
    run = Run.open(path)
    written = [(network, set(run.checkpoints(network))) for network in run.networks]
    networks = tuple(network for network, epochs in written if epochs)
    if not networks:
        raise _no_checkpoints(run)
    common = sorted(set.intersection(*(epochs for _, epochs in written if epochs)))
    if not common:
        raise SourceError(
            f"{run.path}: no epoch has a checkpoint of every network. {_continue_training(run)}"
        )
    found = RunCheckpoints(run, networks, tuple(common))
    run.input_schema  # noqa: B018 -- raises now if it is missing
    return replace(found, notes=_notes(found, written))


def _no_checkpoints(run: Run) -> SourceError:
    if run.spec.is_cross_fit:
        return SourceError(
            f"{run.path}: is cross-fitted, and has the checkpoints of each fold in a run of its "
            f"own: {fold_path(run.path, 0)}, … To predict new samples, train on all samples: "
            "without --cross-fit."
        )
    if not run.spec.record.checkpoints:
        return SourceError(
            f"{run.path}: the run has no checkpoints, because its spec leaves record.checkpoints "
            'at 0. Set `checkpoints = 20` (or "all") below [record] and train it again, into '
            "another folder."
        )
    if all(network.network == "random" for network in run.networks):
        return SourceError(f"{run.path}: its networks predict at random and have no checkpoints.")
    return SourceError(f"{run.path}: holds no checkpoint yet. {_continue_training(run)}")


def _continue_training(run: Run) -> str:
    return f"To continue the training: accord train {run.path / 'spec.toml'} --out {run.path}"


def _notes(
    found: RunCheckpoints, written: Sequence[tuple[NetworkSpec, set[int]]]
) -> tuple[str, ...]:
    notes = [
        f"network {network.number} is left out: it has no checkpoint, as it "
        + ("predicts at random" if network.network == "random" else "is not trained yet")
        for network, epochs in written
        if not epochs
    ]
    more = set().union(*(epochs for _, epochs in written)) - set(found.epochs)
    if more:
        listed = _listed(found.record_epochs(sorted(more)))
        notes.append(f"left out epochs without a checkpoint of every network: after {listed}")
    recorded = len(found.run.recording_schedule)
    if len(found.epochs) < recorded:
        notes.append(
            f"checkpoints were kept at {len(found.epochs)} of {recorded} recorded epochs: after "
            f"{_listed(found.record_epochs())}"
        )
    return tuple(notes)


def _listed(epochs: Sequence[int]) -> str:
    shown = ", ".join(str(epoch + 1) for epoch in epochs[:8])
    return shown if len(epochs) <= 8 else f"{shown}, … {epochs[-1] + 1}"
