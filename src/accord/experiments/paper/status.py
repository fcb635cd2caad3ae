"""How far a target is: done, partly, data missing, or not run."""

from dataclasses import dataclass
from pathlib import Path

from accord.errors import AccordError, ChoiceError
from accord.experiments.paper.protocols import missing_data, sources, weights_from
from accord.experiments.paper.results import THOUGHT, Result, load_result
from accord.experiments.paper.runs import find_record
from accord.experiments.paper.targets import Target
from accord.experiments.paper.thoughts import THOUGHTS
from accord.experiments.paper.trainings import (
    Training,
    check_same,
    repetitions_of,
    runs_of,
    trainings_of,
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
