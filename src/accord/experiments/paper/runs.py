"""The runs of targets: one folder each, shared by all targets that train the same."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from accord.api import Record, open_record
from accord.errors import ChoiceError, RecordBusy, SourceError, TrainingError
from accord.experiments.comparison.runs import Trainer, train_here
from accord.experiments.paper.effort import Stopwatch, machine_name
from accord.experiments.paper.protocols import (
    SCALES,
    Cell,
    build_spec,
    check_data,
    place_spec,
)
from accord.training.keeping import recorded_moments
from accord.training.loop import moments_of
from accord.training.run import Progress, RunResult
from accord.training.settings import recipe_for
from accord.training.spec import RecordSpec, Spec, load_spec, members_of
from accord.training.spec_text import dump_spec
from accord.training.traits import load_traits


def train_with_ray(address: str, *, gpus: float | None = None) -> Trainer:
    """Return what trains over a Ray cluster, a task for each network.

    Args:
        address: as `train_remotely` takes it.
        gpus: for each network; by default so that all train at once.
    """
    from accord.experiments.remote import train_remotely

    def train(spec: Spec, out: Path, progress: Progress | None) -> RunResult:
        return train_remotely(
            spec, out, source=dump_spec(spec), address=address, gpus=gpus, progress=progress
        )

    return train


def gpus_of_cluster(address: str) -> Callable[[], bool]:
    """Return what tells whether a Ray cluster has a GPU, asking it once."""
    from accord.experiments.remote import has_gpus

    return functools.cache(lambda: has_gpus(address))


def _has_gpu() -> bool:
    return torch.cuda.is_available()


@dataclass(frozen=True)
class Workshop:
    """Where targets are reproduced, and by what means."""

    out: Path  # results, and runs below
    data: Path  # the folder of the data
    train: Trainer = train_here
    progress: Progress | None = None
    starting: Callable[[str], None] | None = None  # told a few words before each run
    on_cpu: bool = False  # train without a GPU what wants one
    has_gpu: Callable[[], bool] = _has_gpu  # tells of whoever trains
    machine: str | None = None  # who trains, where it is not this machine
    say: Callable[[str], None] | None = None  # told a line for people to read

    def tell(self, text: str) -> None:
        """Say something, where someone listens."""
        if self.say is not None:
            self.say(text)

    def stopwatch(self, folder: Path) -> Stopwatch:
        """Return what keeps the time that a run's training takes."""
        return Stopwatch(folder, self.machine or machine_name(), self.progress)


def run_folder(out: Path, spec: Spec) -> Path:
    """Return where a run lies: by what it asks, wherever its data are."""
    return out / "runs" / run_name(spec)


def run_name(spec: Spec) -> str:
    """Return a run's name: its spec's, and a digest of all that its labels follow from."""
    record = RecordSpec(every=spec.record.every)
    return f"{spec.name}-{spec.model_copy(update={'record': record}).digest()}"


def find_record(folder: Path, split: str = "test") -> Path | None:
    """Return a run's record, as it was recorded or packed."""
    for name in (split, f"{split}.zip"):
        if (folder / name).exists():
            return folder / name
    return None


def moments_left(spec: Spec, folder: Path) -> int:
    """Return how many moments of a run are not recorded yet, over all its networks."""
    record = find_record(folder)
    networks = sum(member.members for member in members_of(spec))
    traits = load_traits(folder)  # none of a run that has not begun
    recipe = recipe_for(spec, members_of(spec)[0], torch.device("cpu"))
    moments = moments_of(recipe, None if traits is None else traits.samples)
    there = {} if record is None else recorded_moments(record)
    return max(0, networks * moments - sum(there.values()))


def settle_scale(scale: str, workshop: Workshop) -> str:
    """Return the scale that can be trained there: without a GPU, quick becomes a stand-in.

    Raises:
        ChoiceError: the scale wants a GPU, and there is none.
        ClusterError: a cluster trains, and does not answer.
    """
    if not SCALES[scale].gpu or workshop.on_cpu or workshop.has_gpu():
        return scale
    if scale == "quick":
        return "stand-in"
    raise ChoiceError(
        f"the scale {scale} wants a GPU, and there is none: {SCALES[scale].says}. "
        "Without one there is --scale stand-in; --on-cpu trains it here all the same, for days."
    )


def records_of(
    cells: dict[str, Cell], scale: str, seed: int, workshop: Workshop
) -> tuple[dict[str, Record], dict[str, Spec]]:
    """Return the record of each cell, trained if need be, and what was asked."""
    specs = {role: build_spec(cell, scale, seed=seed) for role, cell in cells.items()}
    return {role: _record(cells[role], specs[role], workshop) for role in cells}, specs


def _record(cell: Cell, spec: Spec, workshop: Workshop) -> Record:
    folder = run_folder(workshop.out, spec)
    _check_run(folder)
    if moments_left(spec, folder):
        check_data(cell, spec, workshop.data)
        if workshop.starting is not None:
            workshop.starting(f"{spec.name}, seed {spec.train.seed}:")
        _train(place_spec(spec, workshop.data), folder, workshop)
    return open_record(find_record(folder) or folder / "test")


def _check_run(folder: Path) -> None:
    """Refuse a folder whose own spec says that something else was trained there."""
    path = folder / "spec.toml"
    if path.exists() and (there := run_name(load_spec(path))) != folder.name:
        raise SourceError(
            f"{path}: is the spec of {there}, which is not what this folder's name says. Was it "
            "edited, or copied from another run? Put it back, or remove the folder."
        )


def _train(spec: Spec, folder: Path, workshop: Workshop) -> None:
    try:
        result = workshop.train(spec, folder, workshop.stopwatch(folder).moment)
    except RecordBusy as error:
        raise RecordBusy(
            f"{folder}: another process is training this run. Start again when it has ended; "
            "what it trained will be there."
        ) from error
    if result.failed:
        number, why = next(iter(result.failed.items()))
        raise TrainingError(f"{folder}: network {number} was stopped: {why}")
