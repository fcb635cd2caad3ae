"""The checkpoints of a run that can be evaluated: its networks and their common epochs."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from accord._recorders.schedule import RecordedEpochs
from accord.data import InputSchema
from accord.errors import AccordError, SourceError
from accord.store import RecordReader, open_reader
from accord.training import NetworkSpec, Spec, load_spec, network_specs
from accord.training._checkpoints import checkpoint_folder, checkpoints_in
from accord.training._input_schema import SCHEMA_FILE, load_input_schema, measure_input_schema
from accord.training._prepared_data import prepare_data


@dataclass(frozen=True)
class RunCheckpoints:
    """The networks of a run with checkpoints, and the epochs at which all of them have one."""

    folder: Path
    spec: Spec
    schema: InputSchema
    networks: tuple[NetworkSpec, ...]
    epochs: tuple[int, ...]  # of training, from 0
    notes: tuple[str, ...] = ()  # what was left out

    @property
    def numbers(self) -> tuple[int, ...]:
        """The networks' numbers in a record; every member of a BatchEnsemble has one."""
        return tuple(one.number + at for one in self.networks for at in range(one.members))

    @property
    def voters(self) -> int:
        """The number of votes on a sample."""
        return len(self.numbers) * len(self.epochs)

    @property
    def recorded(self) -> int:
        """The number of epochs that training recorded."""
        return len(self._schedule)

    def record_epochs(self, epochs: Sequence[int] | None = None) -> list[int]:
        """Return the indices in the run's record of epochs of training, by default of all."""
        schedule = self._schedule
        epochs = self.epochs if epochs is None else epochs
        return [schedule.index(epoch, schedule.steps) for epoch in epochs]

    @property
    def _schedule(self) -> RecordedEpochs:
        train, every = self.spec.train, self.spec.record.every
        return RecordedEpochs.of_training(
            train.epochs, every, batch=train.batch, samples=self.schema.samples
        )

    def path(self, network: NetworkSpec, epoch: int) -> Path:
        """Return the file of a network's weights after an epoch."""
        return checkpoints_in(checkpoint_folder(self.folder, network.number))[epoch]

    def reader(self) -> RecordReader | None:
        """Return a reader of the run's own record, of these networks and epochs, if it exists."""
        for split in self.spec.record.splits:
            try:
                reader = open_reader(self.folder / split, networks=self.numbers, common=True)
                return reader.select(epochs=self.record_epochs())
            except AccordError:  # missing, moved or incomplete: it only makes an exit faster
                continue
        return None

    def last_epoch(self) -> "RunCheckpoints":
        """Return the checkpoints of the last epoch alone."""
        return replace(self, epochs=self.epochs[-1:])


def checkpoints_of_run(path: str | os.PathLike[str]) -> RunCheckpoints:
    """Find the checkpoints of a run that `accord train` wrote.

    Raises:
        SourceError: there is no run, it has no checkpoints, or the schema of its samples is
            missing and cannot be measured again.
    """
    folder = Path(path).expanduser()
    spec = _load_spec(folder)
    written = [
        (network, set(checkpoints_in(checkpoint_folder(folder, network.number))))
        for network in network_specs(spec)
    ]
    networks = tuple(network for network, epochs in written if epochs)
    if not networks:
        raise _no_checkpoints(folder, spec)
    common = sorted(set.intersection(*(epochs for _, epochs in written if epochs)))
    if not common:
        raise SourceError(
            f"{folder}: no epoch has a checkpoint of every network. "
            f"Finish the training: accord train {folder / 'spec.toml'} --out {folder}"
        )
    run = RunCheckpoints(folder, spec, _schema_of(folder, spec), networks, tuple(common))
    return replace(run, notes=_notes(run, written))


def _load_spec(folder: Path) -> Spec:
    if not folder.exists():
        raise SourceError(f"{folder}: no such folder. `accord train` writes runs.")
    if (folder / "spec.toml").is_file():
        return load_spec(folder / "spec.toml")
    cure = "Name the folder that holds spec.toml and checkpoints."
    if (folder / "zarr.json").is_file():
        raise SourceError(f"{folder}: is a record of predictions, not a run. {cure}")
    raise SourceError(f"{folder}: holds no spec.toml, so it is not a run. {cure}")


def _no_checkpoints(folder: Path, spec: Spec) -> SourceError:
    if not spec.record.checkpoints:
        return SourceError(
            f"{folder}: the run has no checkpoints, because its spec leaves record.checkpoints "
            'at 0. Set `checkpoints = 20` (or "all") below [record] and train it again, into '
            "another folder."
        )
    if all(network.network == "random" for network in network_specs(spec)):
        return SourceError(f"{folder}: its networks predict at random and have no checkpoints.")
    return SourceError(
        f"{folder}: holds no checkpoint yet. To continue the training: "
        f"accord train {folder / 'spec.toml'} --out {folder}"
    )


def _schema_of(folder: Path, spec: Spec) -> InputSchema:
    schema = load_input_schema(folder)
    if schema is not None:
        return schema
    try:
        return measure_input_schema(prepare_data(spec))
    except AccordError as error:
        raise SourceError(
            f"{folder}: has no {SCHEMA_FILE}, like runs of early versions, and the training data "
            f"cannot be measured again: {error}"
        ) from error


def _notes(run: RunCheckpoints, written: Sequence[tuple[NetworkSpec, set[int]]]) -> tuple[str, ...]:
    notes = [
        f"network {network.number} is left out: it has no checkpoint, as it "
        + ("predicts at random" if network.network == "random" else "is not trained yet")
        for network, epochs in written
        if not epochs
    ]
    more = set().union(*(epochs for _, epochs in written)) - set(run.epochs)
    if more:
        listed = _listed(run.record_epochs(sorted(more)))
        notes.append(f"left out epochs without a checkpoint of every network: {listed}")
    if len(run.epochs) < run.recorded:
        notes.append(
            f"checkpoints were kept at {len(run.epochs)} of {run.recorded} recorded epochs: "
            f"{_listed(run.record_epochs())}"
        )
    return tuple(notes)


def _listed(epochs: Sequence[int]) -> str:
    shown = ", ".join(map(str, epochs[:8]))
    return shown if len(epochs) <= 8 else f"{shown}, … {epochs[-1]}"
