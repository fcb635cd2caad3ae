"""Find and train the runs that a target needs."""

import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from accord._files import write_file
from accord._record import Record, open_record
from accord.errors import ChoiceError, RecordBusy, SourceError, SpecError, TrainingError, counted
from accord.experiments.comparison._runs import Trainer, run_path, shared_spec
from accord.experiments.paper._protocols import (
    SCALES,
    Cell,
    build_spec,
    check_data,
    protocols,
    resolve_data,
)
from accord.experiments.paper._results import Result, result_path
from accord.experiments.paper._targets import Target, samples_per_class
from accord.training import RecordSpec, Run, Spec, load_spec

if TYPE_CHECKING:
    from accord.training import OnProgress, Progress

COST_FILE: Final = "effort.json"


class Cost(TypedDict):
    machine: str
    seconds: float


class CostLog:
    """Progress callback that adds training time to the cost of a run.

    The file is written after every epoch: a training that cannot start leaves none, and a process
    that dies loses little.
    """

    def __init__(self, folder: Path, machine: str, progress: "OnProgress | None" = None) -> None:
        self._folder, self._progress = folder, progress
        before = cost_of(folder)
        machines = before["machine"].split(", then ") if before else []
        self._machine = ", then ".join(dict.fromkeys([*machines, machine]))
        self._seconds = before["seconds"] if before else 0.0
        self._start = time.monotonic()

    def __call__(self, event: "Progress") -> None:
        seconds = self._seconds + time.monotonic() - self._start
        cost = Cost(machine=self._machine, seconds=seconds)
        write_file(self._folder / COST_FILE, json.dumps(cost).encode(), flush=False)
        if self._progress is not None:
            self._progress(event)


def cost_of(folder: Path) -> Cost | None:
    path = folder / COST_FILE
    if not path.exists():
        return None
    try:
        cost: dict[str, Any] = json.loads(path.read_bytes())
        return Cost(machine=str(cost["machine"]), seconds=float(cost["seconds"]))
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(
            f"{path}: does not hold the machine and seconds of a training "
            f"({type(error).__name__}: {error}). Remove it; the run itself is not affected."
        ) from error


def machine_name() -> str:
    """Get the name of the GPU, or the number and kind of cores."""
    import torch

    if torch.cuda.is_available():
        return f"one {torch.cuda.get_device_name()}"
    return f"{counted(torch.get_num_threads(), 'core')}, {platform.machine()}"


def _ignore(_: str) -> None:
    pass


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


@dataclass(frozen=True)
class ReproduceContext:
    """Folders, trainer and callbacks of a reproduction."""

    out: Path  # of results, and of runs below it
    data: Path  # of data sets
    train: Trainer | None = None  # by default on this machine
    progress: "OnProgress | None" = None
    on_start: Callable[[str], None] = _ignore  # called with a description before each run
    on_cpu: bool = False  # train without a GPU at scales that require one
    has_gpu: Callable[[], bool] = _has_gpu  # of the machine that trains
    machine: str | None = None  # that trains, if not this one
    notify: Callable[[str], None] = _ignore  # called with messages for the user

    def cost_log(self, folder: Path) -> CostLog:
        """Build a progress callback that records the cost of a run."""
        return CostLog(folder, self.machine or machine_name(), self.progress)


def run_folder(out: Path, spec: Spec) -> Path:
    """Get the folder of a run, independent of the data folder."""
    return out / "runs" / run_name(spec)


def run_name(spec: Spec) -> str:
    record = RecordSpec(every=spec.record.every)
    return f"{spec.name}-{spec.model_copy(update={'record': record}).digest()}"


def settle_scale(scale: str, context: ReproduceContext) -> str:
    """Choose the training scale, replacing quick by stand-in without a GPU."""
    if not SCALES[scale].gpu or context.on_cpu or context.has_gpu():
        return scale
    if scale == "quick":
        return "stand-in"
    raise ChoiceError(
        f"the scale {scale} requires a GPU, and none was found: {SCALES[scale].description}. "
        "Use --scale stand-in, or --on-cpu to train it without one, which takes days."
    )


@dataclass(frozen=True)
class RequiredRun:
    role: str
    cell: Cell
    cell_spec: Spec  # of the cell; its paths are relative to the data folder
    run: Run  # that is trained; that of table 2 holds out samples that its methods need

    @property
    def finished(self) -> bool:
        """Whether all epochs of all networks are recorded."""
        return not self.run.missing_epochs

    def open_record(self) -> Record:
        return open_record(self.run.find_record() or self.run.path / "test")


def train_missing(required: RequiredRun, context: ReproduceContext) -> None:
    run, folder = required.run, required.run.path
    spec_path = folder / "spec.toml"
    if spec_path.exists() and (found := run_name(load_spec(spec_path))) != folder.name:
        raise SourceError(
            f"{spec_path}: is the spec of {found}, not of the run that its folder is named after. "
            "Was it edited, or copied from another run? Restore it, or remove the folder."
        )
    if required.finished:
        return
    from accord.training import train

    check_data(required.cell, required.cell_spec, context.data)
    context.on_start(f"{run.spec.name}, seed {run.spec.train.seed}:")
    spec = resolve_data(run.spec, context.data)
    try:
        result = (context.train or train)(spec, folder, progress=context.cost_log(folder))
    except RecordBusy as error:
        raise RecordBusy(
            f"{folder}: another process is training this run. Start again when it has finished; "
            "its epochs will not be trained again."
        ) from error
    for number, reason in result.failed.items():
        raise TrainingError(f"{folder}: network {number} was stopped: {reason}")


def repetitions_of(target: Target, scale: str, repetitions: int | None = None) -> int:
    """Get the number of repetitions of a target, which is 1 for figures."""
    if target.kind == "figure":
        return 1
    return SCALES[scale].repetitions if repetitions is None else repetitions


def cells_at(target: Target, scale: str) -> dict[str, Cell]:
    if target.figure == 8 and scale == "stand-in":
        data = next(iter(target.cells.values())).data
        return samples_per_class(data, protocols()["figure8"][scale])
    return dict(target.cells)


def run_names(target: Target, scale: str, repetitions: int) -> dict[str, list[str]]:
    """List the names of the runs of a target by role and repetition."""
    return {
        role: [run_name(build_spec(cell, scale, seed=seed)) for seed in range(repetitions)]
        for role, cell in cells_at(target, scale).items()
    }


def required_runs(
    target: Target, scale: str, repetitions: int, *, out: Path, data: Path
) -> list[RequiredRun]:
    runs = []
    for role, cell in cells_at(target, scale).items():
        for seed in range(repetitions):
            spec = cell_spec = build_spec(cell, scale, seed=seed)
            folder = run_folder(out, spec)
            if target.kind == "post-processing":
                # These methods need samples that no network was trained on.
                spec = shared_spec(resolve_data(cell_spec, data), validation=True)
                folder = run_path(folder, "shared", spec)
            runs.append(RequiredRun(role, cell, cell_spec, Run(folder, spec)))
    return runs


def check_same_runs(known: Result, runs: Mapping[str, list[str]], out: Path) -> None:
    """Check that a stored result was measured on the same runs."""
    for role, names in runs.items():
        stored = list(known.runs.get(role, []))
        shared = min(len(stored), len(names))
        if stored[:shared] != names[:shared] or not shared:
            path = result_path(out, known.target, known.scale).with_suffix(".json")
            raise SpecError(
                f"{path}: holds a result of other runs, {', '.join(stored) or 'none'}; expected "
                f"{', '.join(names)}. Was it written by another version of Accord, or has the "
                "protocol changed? Remove it, or give another --out."
            )


@dataclass(frozen=True)
class TargetPlan:
    target: Target
    scale: str  # that this machine can train
    repetitions: int
    runs: Sequence[RequiredRun]
    known: Result | None  # the stored result
    keep_known: bool  # its records are gone, or measuring it requires training
