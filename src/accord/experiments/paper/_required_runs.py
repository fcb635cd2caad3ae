"""How far a target is: done, partly, data missing, or not run."""

import functools
import json
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypedDict

import torch

from accord._record import Record, open_record
from accord.errors import (
    AccordError,
    ChoiceError,
    RecordBusy,
    SourceError,
    SpecError,
    TrainingError,
    counted,
)
from accord.experiments.comparison._runs import Trainer, folder_of, shared_spec, train_here
from accord.experiments.paper._analytic import THOUGHTS
from accord.experiments.paper._protocols import (
    SCALES,
    Cell,
    build_spec,
    check_data,
    missing_data,
    place_spec,
    protocols,
    sources,
    weights_from,
)
from accord.experiments.paper._results import THOUGHT, Result, load_result, result_path
from accord.experiments.paper._targets import Target
from accord.store._storage import Folder
from accord.training._input_schema import load_input_schema
from accord.training._loop import count_recorded_epochs
from accord.training._network_run import epochs_in_record
from accord.training._settings import recipe_for
from accord.training._spec_toml import dump_spec
from accord.training.run import Progress, RunResult
from accord.training.spec import RecordSpec, Spec, load_spec, network_specs

EFFORT: Final = "effort.json"


class Effort(TypedDict):
    """What a run has cost."""

    machine: str
    seconds: float


class Stopwatch:
    """Adds the time of a training to what the run has cost before.

    Nothing is written before some training is recorded: what cannot begin leaves nothing. From
    then on it is written at every moment, so that a process that dies loses little.

    Args:
        folder: the run's.
        machine: who trains.
        progress: told of each moment too.

    Raises:
        SourceError: what is kept of earlier training cannot be read.
    """

    def __init__(self, folder: Path, machine: str, progress: Progress | None = None) -> None:
        self._folder, self._progress = folder, progress
        before = effort_of(folder)
        self._machine = _together(before["machine"], machine) if before else machine
        self._seconds = before["seconds"] if before else 0.0
        self._start = time.monotonic()

    def moment(
        self, network: int, networks: int, progress: float, epochs: int, loss: float
    ) -> None:
        """Keep the time until this moment of training."""
        seconds = self._seconds + time.monotonic() - self._start
        effort = Effort(machine=self._machine, seconds=seconds)
        Folder(self._folder).put(EFFORT, json.dumps(effort).encode(), flush=False)
        if self._progress is not None:
            self._progress(network, networks, progress, epochs, loss)


def _together(before: str, machine: str) -> str:
    known = machine in before.split(", then ")
    return before if known else f"{before}, then {machine}"


def effort_of(folder: Path) -> Effort | None:
    """Return what a run has cost, or None if that is not known.

    Raises:
        SourceError: the file is damaged.
    """
    data = Folder(folder).get(EFFORT)
    if data is None:
        return None
    try:
        facts: dict[str, Any] = json.loads(data)
        return Effort(machine=str(facts["machine"]), seconds=float(facts["seconds"]))
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(
            f"{folder / EFFORT}: does not say who trained the run and for how long "
            f"({type(error).__name__}: {error}). Remove it; the run itself is not affected."
        ) from error


def machine_name() -> str:
    """Return the GPU's name, or the processor's kind."""
    if torch.cuda.is_available():
        return f"one {torch.cuda.get_device_name()}"
    cores = torch.get_num_threads()
    return f"{counted(cores, 'core')}, {platform.machine()}"


def train_with_ray(address: str, *, gpus: float | None = None) -> Trainer:
    """Return what trains over a Ray cluster, a task for each network.

    Args:
        address: as `train_remotely` takes it.
        gpus: for each network; by default so that all train at once.
    """
    from accord.experiments.cluster import train_remotely

    def train(spec: Spec, out: Path, progress: Progress | None) -> RunResult:
        return train_remotely(
            spec, out, source=dump_spec(spec), address=address, gpus=gpus, progress=progress
        )

    return train


def gpus_of_cluster(address: str) -> Callable[[], bool]:
    """Return what tells whether a Ray cluster has a GPU, asking it once."""
    from accord.experiments.cluster import has_gpus

    return functools.cache(lambda: has_gpus(address))


def _has_gpu() -> bool:
    return torch.cuda.is_available()


@dataclass(frozen=True)
class ReproduceContext:
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
    networks = sum(member.members for member in network_specs(spec))
    traits = load_input_schema(folder)  # none of a run that has not begun
    recipe = recipe_for(spec, network_specs(spec)[0], torch.device("cpu"))
    moments = count_recorded_epochs(recipe, None if traits is None else traits.samples)
    there = {} if record is None else epochs_in_record(record)
    return max(0, networks * moments - sum(there.values()))


def settle_scale(scale: str, workshop: ReproduceContext) -> str:
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
    cells: dict[str, Cell], scale: str, seed: int, workshop: ReproduceContext
) -> tuple[dict[str, Record], dict[str, Spec]]:
    """Return the record of each cell, trained if need be, and what was asked."""
    specs = {role: build_spec(cell, scale, seed=seed) for role, cell in cells.items()}
    return {role: _record(cells[role], specs[role], workshop) for role in cells}, specs


def _record(cell: Cell, spec: Spec, workshop: ReproduceContext) -> Record:
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


def _train(spec: Spec, folder: Path, workshop: ReproduceContext) -> None:
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


@dataclass(frozen=True)
class Training:
    """One run that a target needs."""

    cell: Cell
    asked: Spec  # what the cell asks for; its paths are inside the folder of the data
    spec: Spec  # what is trained for it
    folder: Path

    @property
    def finished(self) -> bool:
        """Whether every moment of every network is recorded."""
        return not moments_left(self.spec, self.folder)


def repetitions_of(target: Target, scale: str, asked: int | None = None) -> int:
    """Return how often a target is trained; a figure shows one run."""
    if target.kind == "figure":
        return 1
    return SCALES[scale].repetitions if asked is None else asked


def cells_at(target: Target, scale: str) -> dict[str, Cell]:
    """Return what a target trains at a scale; a stand-in has fewer samples of each class."""
    if target.figure == 8 and scale == "stand-in":
        first = next(iter(target.cells.values()))
        sizes = protocols()["figure8"]["stand-in"]
        return {str(size): Cell(first.data, "clean", 0, per_class=size) for size in sizes}
    return dict(target.cells)


def runs_of(target: Target, scale: str, repetitions: int) -> dict[str, list[str]]:
    """Return the names of the runs that a target needs at a scale, by role and repetition.

    Raises:
        ChoiceError: the target cannot be had at that scale.
    """
    return {
        role: [run_name(build_spec(cell, scale, seed=seed)) for seed in range(repetitions)]
        for role, cell in cells_at(target, scale).items()
    }


def trainings_of(
    target: Target, scale: str, repetitions: int, *, out: Path, data: Path
) -> list[Training]:
    """Return every run that a target needs at a scale.

    Table 2 trains networks of its own: its methods need some samples that no network has seen.
    """
    return [
        _training(target, cell, build_spec(cell, scale, seed=seed), out, data)
        for cell in cells_at(target, scale).values()
        for seed in range(repetitions)
    ]


def _training(target: Target, cell: Cell, asked: Spec, out: Path, data: Path) -> Training:
    folder = run_folder(out, asked)
    if target.kind != "post-processing":
        return Training(cell, asked, asked, folder)
    spec = shared_spec(place_spec(asked, data), validation=True)
    return Training(cell, asked, spec, folder_of(folder, "shared", spec))


def check_same(known: Result, runs: Mapping[str, list[str]], out: Path) -> None:
    """Refuse to take a result for another one of the same name.

    Raises:
        SpecError: it was trained otherwise.
    """
    for role, names in runs.items():
        there = known.runs.get(role, [])
        shared = min(len(there), len(names))
        if list(there)[:shared] != names[:shared] or not shared:
            path = result_path(out, known.target, known.scale).with_suffix(".json")
            was = ", ".join(there) or "nothing"
            raise SpecError(
                f"{path}: holds a result of other runs, {was}; now it would be "
                f"{', '.join(names)}. Another Accord wrote it, or the protocol has changed. "
                "Remove it, or give another --out."
            )


@dataclass(frozen=True)
class Status:
    """How far a target is at one scale, and what to do about it."""

    word: str  # "done", "partly", "data missing", "not run" or "none"
    note: str = ""


def status_of(target: Target, scale: str, *, out: Path, data: Path) -> Status:
    """Tell how far a target is at a scale, without training anything.

    "none" means that there is no such scale of this target. A damaged result is named in the note.
    """
    if target.kind in THOUGHTS:
        return _of_thought(target, out)
    wanted = repetitions_of(target, scale)
    try:
        trainings = trainings_of(target, scale, wanted, out=out, data=data)
    except ChoiceError as error:
        return Status("none", str(error))
    try:
        known = load_result(out, target.name, scale)
        if known is not None:
            check_same(known, runs_of(target, scale, wanted), out)
            return _of_result(known, wanted)
        if any(find_record(one.folder) for one in trainings):
            return _of_runs(trainings)
    except AccordError as error:
        return Status("partly", str(error))
    return _of_data(trainings, data)


def _of_thought(target: Target, out: Path) -> Status:
    try:
        return Status("not run" if load_result(out, target.name, THOUGHT) is None else "done")
    except AccordError as error:
        return Status("partly", str(error))


def _of_result(known: Result, wanted: int) -> Status:
    if known.repetitions >= wanted:
        return Status("done")
    return Status("partly", f"{known.repetitions} of {wanted} repetitions")


def _of_runs(trainings: list[Training]) -> Status:
    finished = sum(one.finished for one in trainings)
    if finished == len(trainings):
        return Status("partly", "trained, and not measured yet")
    return Status("partly", f"{finished} of {len(trainings)} runs trained")


def _of_data(trainings: list[Training], data: Path) -> Status:
    for one in trainings:
        missing = missing_data(one.asked, data)
        if missing is not None:
            return Status("data missing", _where_to_put(missing, one, data))
    return Status("not run")


def _where_to_put(missing: str, training: Training, data: Path) -> str:
    source, path = sources()[training.cell.data], training.asked.data.path
    if missing == path:
        what = source.name
    elif missing.startswith(f"{path}/"):
        what = f"this part of {source.name}"
    else:
        return f"put these weights at {data / missing}; they come from {weights_from(missing)}"
    return f"put {what} at {data / missing}; it comes from {source.comes_from}"
