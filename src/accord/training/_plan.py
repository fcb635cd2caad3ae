"""What a run would do, and what of it is already there."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from accord.errors import counted
from accord.training._build import check_networks, choose_networks
from accord.training._loop import count_recorded_epochs
from accord.training._network_run import epochs_in_record
from accord.training._prepared_data import prepare_data
from accord.training._settings import choose_device, recipe_for
from accord.training.networks import warn_once
from accord.training.run import check_same_spec
from accord.training.spec import NetworkSpec, Spec, network_specs


@dataclass(frozen=True)
class Plan:
    """What a run would do, and what of it is already there."""

    members: tuple[NetworkSpec, ...]
    moments: int  # to be recorded for each network
    samples: dict[str, int]  # split -> how many
    classes: int
    done: dict[int, int]  # network -> moments recorded
    record_bytes: int  # about, before packing
    device: str
    notes: tuple[str, ...] = ()  # for people to read


@warn_once()
def plan_run(spec: Spec, out: Path, *, networks: Sequence[int] | None = None) -> Plan:
    """Say what training this spec into `out` would do; nothing is trained or written.

    Args:
        spec: what to train.
        out: the run's folder.
        networks: train these alone, by number.

    Raises:
        SourceError, ChoiceError, SpecError: it cannot be trained, as `train` would say.
    """
    members = tuple(choose_networks(spec, networks))
    check_same_spec(spec, out)
    material = prepare_data(spec)
    check_networks(spec, material)
    recipe = recipe_for(spec, network_specs(spec)[0], torch.device("cpu"))
    moments = count_recorded_epochs(recipe, len(material.splits["train"]))
    sizes: dict[str, int] = {one: len(material.splits[one]) for one in spec.record.splits}
    recorded = sum(member.members for member in members)
    cell = 1 + 2 * material.classes * spec.record.probabilities
    return Plan(
        members=members,
        moments=moments,
        samples=sizes,
        classes=material.classes,
        done=epochs_in_record(out / spec.record.splits[0]),
        record_bytes=recorded * moments * sum(sizes.values()) * cell,
        device=str(choose_device()),
        notes=material.notes,
    )


def plan_json(spec: Spec, plan: Plan, out: Path) -> dict[str, Any]:
    """Return a plan in the form that `accord train --plan --json` prints."""
    return {
        "run": str(out),
        "name": spec.name,
        "networks": [json.loads(member.model_dump_json()) for member in plan.members],
        "epochs": spec.train.epochs,
        "moments": plan.moments,
        "samples": plan.samples,
        "classes": plan.classes,
        "done": {str(number): moments for number, moments in plan.done.items()},
        "record_bytes": plan.record_bytes,
        "device": plan.device,
        "notes": list(plan.notes),
    }


def plan_text(spec: Spec, plan: Plan, out: Path) -> str:
    """Describe a plan in a few lines."""
    sizes = ", ".join(f"{size:,} {split} samples" for split, size in plan.samples.items())
    lines = [
        f"{spec.name}, into {out}, on {plan.device}",
        f"  {counted(len(plan.members), 'network')}, {counted(spec.train.epochs, 'epoch')}, "
        f"{counted(plan.classes, 'class')}",
        f"  {counted(plan.moments, 'moment')} each, of {sizes}: about "
        f"{size_text(plan.record_bytes)}, less once compressed",
    ]
    for member in plan.members:
        there = plan.done.get(member.number, 0)
        of_members = f" with {member.members} members" if member.members > 1 else ""
        lines.append(
            f"  network {member.number}: {member.network}{of_members}, {member.optimizer.kind} "
            f"{member.optimizer.lr:g}, {member.loss.kind}, seed {member.seed}: "
            f"{there} of {plan.moments} recorded"
        )
    return "\n".join(lines)


def size_text(size: int) -> str:
    """Return a number of bytes as people read it.

    >>> size_text(24_300), size_text(44_700_000)
    ('24.3 KB', '44.7 MB')
    """
    return f"{size / 1e3:.1f} KB" if size < 1e6 else f"{size / 1e6:.1f} MB"
