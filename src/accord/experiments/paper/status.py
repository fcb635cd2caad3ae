"""How far a target is: done, partly, data missing, or not run."""

from dataclasses import dataclass
from pathlib import Path

from accord.errors import AccordError, ChoiceError
from accord.experiments.paper.protocols import SCALES, build_spec, missing_data, sources
from accord.experiments.paper.results import THOUGHT, load_result
from accord.experiments.paper.runner import THOUGHTS, cells_at, check_same, runs_of
from accord.experiments.paper.runs import find_record
from accord.experiments.paper.targets import Target


@dataclass(frozen=True)
class Status:
    """How far a target is at one scale, and what to do about it."""

    word: str  # "done", "partly", "data missing", "not run" or "none"
    note: str = ""


def status_of(target: Target, scale: str, *, out: Path, data: Path) -> Status:
    """Tell how far a target is at a scale, without training anything.

    "none" means that there is no such scale of this target.
    """
    if target.kind in THOUGHTS:
        done = load_result(out, target.name, THOUGHT) is not None
        return Status("done" if done else "not run")
    try:
        runs = runs_of(target, scale, SCALES[scale].repetitions)
    except ChoiceError as error:
        return Status("none", str(error))
    try:
        known = load_result(out, target.name, scale)
        if known is not None:
            check_same(known, runs, out)
    except AccordError as error:
        return Status("partly", str(error))
    wanted = 1 if target.kind == "figure" else SCALES[scale].repetitions
    if known is not None:
        if known.repetitions >= wanted:
            return Status("done")
        return Status("partly", f"{known.repetitions} of {wanted} repetitions")
    if any(find_record(out / "runs" / name) for names in runs.values() for name in names):
        return Status("partly", "trained in part, or not measured yet")
    return _without_results(target, scale, data)


def _without_results(target: Target, scale: str, data: Path) -> Status:
    for cell in cells_at(target, scale).values():
        spec = build_spec(cell, scale)
        missing = missing_data(spec, data)
        if missing is not None:
            note = f"put it at {data / missing}"
            if missing == spec.data.path:
                note += f"; it comes from {sources()[cell.data].comes_from}"
            return Status("data missing", note)
    return Status("not run")
