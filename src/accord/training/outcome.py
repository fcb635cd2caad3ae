"""What became of a run: how far its networks came, and where their records lie."""

from pathlib import Path
from typing import Any

from accord.errors import NotARecord
from accord.training.keeping import recorded_moments
from accord.training.run import RunResult
from accord.training.spec import Spec, members_of


def recorded_epochs(spec: Spec, out: Path) -> dict[int, int]:
    """Return how many epochs are recorded of each network of a spec, none being 0."""
    try:
        there = recorded_moments(out / spec.record.splits[0])
    except NotARecord:  # a worker died while it began one
        there = {}
    return {
        number: there.get(number, 0)
        for member in members_of(spec)
        for number in range(member.number, member.number + member.members)
    }


def trained_networks(spec: Spec, result: RunResult) -> list[int]:
    """Return the networks of a run that recorded something and were not stopped."""
    stopped = {
        number
        for member in members_of(spec)
        if member.number in result.failed
        for number in range(member.number, member.number + member.members)
    }
    epochs = recorded_epochs(spec, result.out)
    return [number for number in epochs if epochs[number] and number not in stopped]


def records_of_run(spec: Spec, out: Path) -> dict[str, Path]:
    """Return where a run's records lie, by split; with averages, `test-ema` and the like."""
    names = [*spec.record.splits, *(f"test-{average}" for average in spec.record.averages)]
    return {name: out / name for name in names}


def outcome_json(spec: Spec, result: RunResult, *, seconds: float) -> dict[str, Any]:
    """Return what became of a run in the form that `accord train --json` prints."""
    epochs = recorded_epochs(spec, result.out)
    return {
        "run": str(result.out),
        "name": spec.name,
        "networks": len(epochs),
        "epochs": {str(number): recorded for number, recorded in epochs.items()},
        "failed": {str(number): why for number, why in result.failed.items()},
        "records": {name: str(path) for name, path in records_of_run(spec, result.out).items()},
        "notes": list(result.notes),
        "seconds": seconds,
    }
