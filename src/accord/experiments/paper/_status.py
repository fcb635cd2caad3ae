"""List targets with their status at each scale."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from accord.errors import AccordError, ChoiceError, counted
from accord.experiments.paper._protocols import SCALES, missing_data, protocols, weights_origin
from accord.experiments.paper._required_runs import (
    RequiredRun,
    check_same_runs,
    repetitions_of,
    required_runs,
    run_names,
)
from accord.experiments.paper._results import NO_SCALE, STAND_IN, load_result
from accord.experiments.paper._targets import ANALYTIC, Target

DATA_MISSING: Final = "data missing"
RANK: Final = {"done": 0, "partly": 1, "not run": 2, DATA_MISSING: 3, "none": 4}


@dataclass(frozen=True)
class TargetStatus:
    word: str  # a key of RANK; "none": the target has no such scale
    note: str = ""  # the reason, or the next step


def status_of(target: Target, scale: str, *, out: Path, data: Path) -> TargetStatus:
    """Find the status of a target at a scale, with a note on damaged results."""
    try:
        if target.kind in ANALYTIC:
            known = load_result(out, target.name, NO_SCALE)
            return TargetStatus("not run" if known is None else "done")
        wanted = repetitions_of(target, scale)
        try:
            runs = required_runs(target, scale, wanted, out=out, data=data)
        except ChoiceError as error:
            return TargetStatus("none", str(error))
        known = load_result(out, target.name, scale)
        if known is not None:
            check_same_runs(known, run_names(target, scale, wanted), out)
            if known.repetitions >= wanted:
                return TargetStatus("done")
            return TargetStatus("partly", f"{known.repetitions} of {wanted} repetitions")
        return _status_of_runs(runs, data)
    except AccordError as error:
        return TargetStatus("partly", str(error))


def _status_of_runs(runs: Sequence[RequiredRun], data: Path) -> TargetStatus:
    if any(required.run.find_record() for required in runs):
        finished = sum(required.finished for required in runs)
        if finished == len(runs):
            return TargetStatus("partly", "trained, not measured yet")
        return TargetStatus("partly", f"{finished} of {len(runs)} runs trained")
    for required in runs:
        missing = missing_data(required.cell_spec, data)
        if missing is not None:
            return TargetStatus(DATA_MISSING, _instructions(missing, required, data))
    return TargetStatus("not run")


def _instructions(missing: str, required: RequiredRun, data: Path) -> str:
    source, path = protocols()["data"][required.cell.data], required.cell_spec.data.path
    what, origin = source["name"], source["from"]
    if missing != path and missing.startswith(f"{path}/"):
        what = f"this part of {what}"
    elif missing != path:
        what, origin = "these weights", weights_origin(missing)
    return f"put {what} at {data / missing}; source: {origin}"


def list_targets(
    targets: Sequence[Target], scale: str | None, *, out: Path, data: Path
) -> list[dict[str, Any]]:
    """Convert the targets to JSON, as printed by `accord reproduce --list --json`.

    Without a scale, the status shown is the best of all scales, preferably not of the stand-in.
    """
    items = []
    for target in targets:
        found = {
            one: status_of(target, one, out=out, data=data)
            for one in ([scale] if scale else SCALES)
        }
        best = min(found, key=lambda one: (one == STAND_IN, RANK[found[one].word]))
        items.append(
            {
                "name": target.name,
                "status": found[best].word,
                "scale": NO_SCALE if target.kind in ANALYTIC else best,
                "says": target.description,
                "note": found[best].note,
                "scales": {one: status.word for one, status in found.items()},
            }
        )
    return items


def targets_text(items: Sequence[dict[str, Any]]) -> str:
    """Format listed targets as text, with the locations for missing data."""
    width = max(len(item["name"]) for item in items)
    lines = []
    for item in items:
        status = item["status"] if item["status"] != DATA_MISSING else "not run"
        if status in ("done", "partly") and item["scale"] in item["scales"]:
            status += f" ({item['scale']})"
        note = f"; {item['note']}" if item["note"] and item["status"] != DATA_MISSING else ""
        if item["status"] != "done" and item["scales"].get(STAND_IN) == "done":
            note += "; done with digits instead"
        lines.append(f"{item['name'].ljust(width)}  {status.ljust(18)}  {item['says']}{note}")
    missing = [item for item in items if item["status"] == DATA_MISSING]
    if missing:
        lines += ["", f"{DATA_MISSING}, for {len(missing)} of {counted(len(items), 'target')}:"]
        targets = Counter(item["note"] for item in missing)
        lines += [f"  {note} ({counted(number, 'target')})" for note, number in targets.items()]
    without = [item["name"] for item in missing if item["scales"].get(STAND_IN, "none") == "none"]
    if len(without) < len(missing):
        rest = f" (all but {' and '.join(without)})" if without else ""
        lines.append(f"to use the embedded digits instead{rest}: --scale stand-in")
    return "\n".join(lines)
