"""A run on disk: which of its networks can be asked, and at which epochs."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from accord.data import InputSchema
from accord.errors import AccordError, SourceError
from accord.store import RecordReader, open_reader
from accord.training._checkpoints import checkpoint_folder, checkpoints_in
from accord.training._input_schema import FILE, find_input_schema, load_input_schema
from accord.training._loop import Recipe, count_recorded_epochs, epoch_index, recorded_steps
from accord.training._prepared_data import prepare_data
from accord.training._settings import recipe_for
from accord.training.spec import NetworkSpec, Spec, load_spec, network_specs


@dataclass(frozen=True)
class SavedRun:
    """A run whose networks can be asked again."""

    folder: Path
    spec: Spec
    traits: InputSchema
    members: tuple[NetworkSpec, ...]  # those with checkpoints
    epochs: tuple[int, ...]  # at which all of them have one, counted from 0
    notes: tuple[str, ...] = ()  # what cannot be asked, for people to read

    @property
    def networks(self) -> tuple[int, ...]:
        """The networks' numbers; each member of a BatchEnsemble is one."""
        return tuple(one.number + at for one in self.members for at in range(one.members))

    @property
    def voters(self) -> int:
        """How many votes there are on a sample."""
        return len(self.networks) * len(self.epochs)

    @property
    def recorded(self) -> int:
        """How many moments of its training were recorded."""
        return count_recorded_epochs(self._recipe, self.traits.samples)

    @property
    def positions(self) -> list[int]:
        """Where the epochs stand among the moments that were recorded."""
        return self.positions_of(self.epochs)

    def positions_of(self, epochs: Sequence[int]) -> list[int]:
        """Return where epochs of training end among the moments that were recorded."""
        steps = math.ceil(self.traits.samples / self._recipe.batch)
        marks = recorded_steps(self._recipe, steps)
        return [epoch_index(epoch, steps, marks) for epoch in epochs]

    @property
    def _recipe(self) -> Recipe:
        return recipe_for(self.spec, self.members[0], torch.device("cpu"))

    def checkpoint(self, member: NetworkSpec, epoch: int) -> Path:
        """Return the file of a network's weights after an epoch."""
        return checkpoints_in(checkpoint_folder(self.folder, member.number))[epoch]

    def rows(self) -> RecordReader | None:
        """Return what the same networks said at the same epochs in training, if it is there."""
        for split in self.spec.record.splits:
            try:
                rows = open_reader(self.folder / split, networks=self.networks, common=True)
                return rows.select(epochs=self.positions)
            except AccordError:  # not there, packed elsewhere, or cut off: nothing depends on it
                continue
        return None

    def last_epoch(self) -> "SavedRun":
        """Return the same run with its last epoch alone."""
        return replace(self, epochs=self.epochs[-1:])


def open_run(path: str | os.PathLike[str]) -> SavedRun:
    """Open a run that `accord train` wrote.

    Raises:
        SourceError: there is no run, it kept no checkpoints, or nothing tells what its samples
            were like.
    """
    folder = Path(path).expanduser()
    spec = _spec_in(folder)
    kept = [
        (member, set(checkpoints_in(checkpoint_folder(folder, member.number))))
        for member in network_specs(spec)
    ]
    members = tuple(member for member, epochs in kept if epochs)
    if not members:
        raise _nothing_kept(folder, spec)
    epochs = sorted(set.intersection(*(there for _, there in kept if there)))
    if not epochs:
        raise SourceError(
            f"{folder}: its networks have no epoch in common at which each has a checkpoint. "
            f"Train it to its end: accord train {folder / 'spec.toml'} --out {folder}"
        )
    run = SavedRun(folder, spec, _traits_of(folder, spec), members, tuple(epochs))
    return replace(run, notes=_notes(run, kept))


def _spec_in(folder: Path) -> Spec:
    if not folder.exists():
        raise SourceError(f"{folder}: no such folder. A run is what `accord train` wrote.")
    if (folder / "spec.toml").is_file():
        return load_spec(folder / "spec.toml")
    cure = "Name the folder that holds it, spec.toml and checkpoints."
    if (folder / "zarr.json").is_file():
        raise SourceError(f"{folder}: is a record of predictions, not a run. {cure}")
    raise SourceError(f"{folder}: holds no spec.toml, so it is no run of `accord train`. {cure}")


def _nothing_kept(folder: Path, spec: Spec) -> SourceError:
    if not spec.record.checkpoints:
        return SourceError(
            f"{folder}: no checkpoints were kept, so there is no network to ask: its spec leaves "
            'record.checkpoints at 0. Write `checkpoints = 20` (or "all") below [record] and '
            "train it again, into another folder."
        )
    if all(member.network == "random" for member in network_specs(spec)):
        return SourceError(f"{folder}: its networks only guess, and have no checkpoints.")
    return SourceError(
        f"{folder}: holds no checkpoint yet. To go on with its training: "
        f"accord train {folder / 'spec.toml'} --out {folder}"
    )


def _traits_of(folder: Path, spec: Spec) -> InputSchema:
    found = load_input_schema(folder)
    if found is not None:
        return found
    try:
        return find_input_schema(prepare_data(spec))
    except AccordError as error:
        raise SourceError(
            f"{folder}: has no {FILE}, as older runs, and what its samples were like cannot be "
            f"measured again: {error}"
        ) from error


def _notes(run: SavedRun, kept: list[tuple[NetworkSpec, set[int]]]) -> tuple[str, ...]:
    notes = [_left_out(member) for member, epochs in kept if not epochs]
    more = run.positions_of(sorted(set.union(*(epochs for _, epochs in kept)) - set(run.epochs)))
    if more:
        notes.append(f"left out epochs that not all networks have: {_listed(more)}")
    if len(run.epochs) < run.recorded:
        notes.append(
            f"checkpoints were kept at {len(run.epochs)} of {run.recorded} recorded epochs: "
            f"{_listed(run.positions)}"
        )
    return tuple(notes)


def _left_out(member: NetworkSpec) -> str:
    why = "only guesses" if member.network == "random" else "was stopped, or not trained yet"
    return f"network {member.number} has no checkpoint and is left out: it {why}"


def _listed(epochs: Sequence[int]) -> str:
    shown = ", ".join(map(str, epochs[:8]))
    return shown if len(epochs) <= 8 else f"{shown}, … {epochs[-1]}"
