"""How far a target is: done, partly, data missing, or not run."""

from dataclasses import dataclass
from pathlib import Path

from accord.errors import AccordError, ChoiceError
from accord.experiments.paper.protocols import missing_data, sources
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
    except AccordError as error:
        return Status("partly", str(error))
    if any(find_record(one.folder) for one in trainings):
        return Status("partly", "trained in part, or not measured yet")
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


def _of_data(trainings: list[Training], data: Path) -> Status:
    for one in trainings:
        missing = missing_data(one.asked, data)
        if missing is not None:
            note = f"put it at {data / missing}"
            path = one.asked.data.path
            if path is not None and (missing == path or missing.startswith(f"{path}/")):
                note += f"; it comes from {sources()[one.cell.data].comes_from}"
            return Status("data missing", note)
    return Status("not run")
