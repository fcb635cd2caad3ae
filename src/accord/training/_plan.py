"""Plan the training of a spec."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accord._recorders.schedule import RecordedEpochs
from accord.errors import counted
from accord.training._build_networks import check_networks, choose_networks
from accord.training._run import Run
from accord.training._spec import NetworkSpec, Spec
from accord.training.networks import warn_once


@dataclass(frozen=True)
class Plan:
    """Training plan of a run and its progress."""

    networks: tuple[NetworkSpec, ...]
    epochs: int  # to be recorded for each network
    samples: dict[str, int]  # split -> number of samples
    classes: int
    recorded: dict[int, int]  # network -> epochs recorded
    record_bytes: int  # estimate, before packing
    device: str
    notes: tuple[str, ...] = ()  # messages for the user


@warn_once()
def plan_run(spec: Spec, out: Path, *, networks: Sequence[int] | None = None) -> Plan:
    """Plan the training of a spec without training or writing anything.

    Args:
        spec: what to train.
        out: the run folder.
        networks: plan only these, by number.

    Raises:
        SourceError, ChoiceError, SpecError: as `train` raises them.
    """
    chosen = tuple(choose_networks(spec, networks))
    run = Run(out, spec)
    run.check_spec()
    data = run.data
    check_networks(spec, data)
    epochs = len(
        RecordedEpochs.of_training(
            spec.train.epochs,
            spec.record.every,
            batch=spec.train.batch,
            samples=len(data.splits["train"]),
        )
    )
    samples: dict[str, int] = {split: len(data.splits[split]) for split in spec.record.splits}
    rows = epochs * sum(network.members for network in chosen)
    bytes_per_sample = 1 + 2 * data.classes * spec.record.probabilities
    return Plan(
        networks=chosen,
        epochs=epochs,
        samples=samples,
        classes=data.classes,
        recorded={number: n for number, n in run.recorded_epochs().items() if n},
        record_bytes=rows * sum(samples.values()) * bytes_per_sample,
        device=str(run.device),
        notes=data.notes,
    )


def plan_json(spec: Spec, plan: Plan, out: Path) -> dict[str, Any]:
    """Convert a plan to JSON, as printed by `accord train --plan --json`."""
    return {
        "run": str(out),
        "name": spec.name,
        "networks": [json.loads(network.model_dump_json()) for network in plan.networks],
        "epochs": spec.train.epochs,
        "moments": plan.epochs,
        "samples": plan.samples,
        "classes": plan.classes,
        "done": {str(number): epochs for number, epochs in plan.recorded.items()},
        "record_bytes": plan.record_bytes,
        "device": plan.device,
        "notes": list(plan.notes),
    }


def plan_text(spec: Spec, plan: Plan, out: Path) -> str:
    sizes = ", ".join(f"{size:,} {split} samples" for split, size in plan.samples.items())
    lines = [
        f"{spec.name}, into {out}, on {plan.device}",
        f"  {counted(len(plan.networks), 'network')}, {counted(spec.train.epochs, 'epoch')}, "
        f"{counted(plan.classes, 'class')}",
        f"  {counted(plan.epochs, 'evaluation')} per network, of {sizes}: about "
        f"{size_text(plan.record_bytes)} before compression",
    ]
    for network in plan.networks:
        members = f" with {network.members} members" if network.members > 1 else ""
        lines.append(
            f"  network {network.number}: {network.network}{members}, {network.optimizer.kind} "
            f"{network.optimizer.lr:g}, {network.loss.kind}, seed {network.seed}: "
            f"{plan.recorded.get(network.number, 0)} of {plan.epochs} recorded"
        )
    return "\n".join(lines)


def size_text(size: int) -> str:
    """Format a number of bytes in human-readable units.

    >>> size_text(24_300), size_text(44_700_000)
    ('24.3 KB', '44.7 MB')
    """
    return f"{size / 1e3:.1f} KB" if size < 1e6 else f"{size / 1e6:.1f} MB"
