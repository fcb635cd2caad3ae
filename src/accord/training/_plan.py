"""Plan the training of a spec."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from accord._recorders.schedule import RecordedEpochs
from accord.errors import counted
from accord.training._build_networks import (
    build_network,
    check_networks,
    choose_networks,
    loss_for,
    recipe_for,
)
from accord.training._hardware import count_processes, count_threads, multiply_adds, torch_threads
from accord.training._loop import train_loop
from accord.training._run_folder import Run, is_trainable
from accord.training._spec import NetworkSpec, Spec
from accord.training.networks import is_user_code, warn_once

STEPS_MEASURED: Final = 3


@dataclass(frozen=True)
class Plan:
    networks: tuple[NetworkSpec, ...]
    epochs: int  # to be recorded for each network
    samples: dict[str, int]  # split -> number of samples
    classes: int
    recorded: dict[int, int]  # network -> epochs recorded
    record_bytes: int  # estimate, before packing
    device: str
    seconds: float | None = None  # estimate of what remains; None if networks are user code
    notes: tuple[str, ...] = ()  # messages for the user


@warn_once()
def plan_run(spec: Spec, out: Path, *, networks: Sequence[int] | None = None) -> Plan:
    """Plan the training of a spec without writing anything.

    The time is estimated from a few steps of each kind of network. Networks from user code are
    neither imported nor built.

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
    check_networks(spec, data, user_code=False)
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
    recorded = {number: n for number, n in run.recorded_epochs().items() if n}
    evaluated = epochs * sum(samples.values())
    own = [one.network for one in chosen if is_user_code(one.network)]
    notes = [f"network {one!r} is not imported, so that its time is unknown" for one in own]
    seconds = None if own else _estimate_seconds(run, chosen, recorded, epochs, evaluated)
    return Plan(
        networks=chosen,
        epochs=epochs,
        samples=samples,
        classes=data.classes,
        recorded=recorded,
        record_bytes=rows * sum(samples.values()) * bytes_per_sample,
        device=str(run.device),
        seconds=seconds,
        notes=(*data.notes, *dict.fromkeys(notes)),
    )


def _estimate_seconds(
    run: Run, networks: Sequence[NetworkSpec], recorded: dict[int, int], epochs: int, evaluated: int
) -> float:
    spec, measured, total = run.spec, dict[str, float](), 0.0
    trained = spec.train.epochs * len(run.data.splits["train"])
    if spec.is_cross_fit:
        trained *= (spec.data.cross_fit or 0) - 1  # in each of the folds, all but one
    sizes = []
    for network in networks:
        built = build_network(spec, network, run.data)
        sizes.append(multiply_adds(built, spec, run.data))
        left = 1 - recorded.get(network.number, 0) / epochs
        key = repr((network.network, network.options, network.members, network.loss))
        if left and is_trainable(built):
            if key not in measured:
                measured[key] = _measure_step(run, network, built)
            # An evaluation takes the forward pass, about a third of a step.
            total += left * measured[key] * (trained + evaluated / 3) / spec.train.batch
    processes = 1 if run.device.type != "cpu" else count_processes(sizes, spec, run.data)
    return total / processes


def _measure_step(run: Run, network: NetworkSpec, built: torch.nn.Module) -> float:
    """Measure the seconds of a training step, without the first one."""
    data = run.data.first(run.spec.train.batch)
    samples = data.batches(
        "train",
        device=run.device,
        augment=run.spec.train.augment,
        network=run.spec.resolve_network(network.network),
        length=run.spec.train.length,
    )
    labels = torch.from_numpy(data.splits["train"].labels.astype(np.int64))
    recipe = replace(
        recipe_for(run.spec, network, run.device),
        epochs=STEPS_MEASURED + 1,
        every=1,
        optimizer=network.optimizer.model_copy(update={"lr": 1e-9}),  # no rate diverges here
    )
    with torch_threads(count_threads(built, run.spec, run.data)):
        steps = train_loop(
            built, loss_for(network, data), samples, labels, recipe=recipe, seed=network.seed
        )
        next(steps)
        start = time.perf_counter()
        taken = sum(1 for _ in steps)
    share = len(labels) / run.spec.train.batch  # of a batch that the samples fill
    return (time.perf_counter() - start) / taken / share


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
        "seconds": plan.seconds,
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
    if plan.seconds is not None:
        lines.append(f"  about {duration_text(plan.seconds)} of training, measured by a few steps")
    for network in plan.networks:
        members = f" with {network.members} members" if network.members > 1 else ""
        lines.append(
            f"  network {network.number}: {network.network}{members}, {network.optimizer.kind} "
            f"{network.optimizer.lr:g}, {network.loss.kind}, seed {network.seed}: "
            f"{plan.recorded.get(network.number, 0)} of {plan.epochs} recorded"
        )
    return "\n".join(lines)


def duration_text(seconds: float) -> str:
    """Format a duration in the largest unit that it fills.

    >>> duration_text(0.2), duration_text(100), duration_text(5400)
    ('1 s', '2 min', '1.5 h')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def size_text(size: int) -> str:
    """Format a number of bytes in human-readable units.

    >>> size_text(24_300), size_text(44_700_000)
    ('24.3 KB', '44.7 MB')
    """
    return f"{size / 1e3:.1f} KB" if size < 1e6 else f"{size / 1e6:.1f} MB"
