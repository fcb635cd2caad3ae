"""The learning rate at any moment of training."""

import math
from collections.abc import Callable

from accord.training.spec import ScheduleSpec


def rate_at(progress: float, *, schedule: ScheduleSpec, lr: float, epochs: int) -> float:
    """Return the learning rate after `progress` epochs of `epochs`.

    A cosine falls from epoch to epoch, as the paper's code steps it, and with a `cycle` starts
    anew after so many; a warm-up and a line change with every step.

    >>> cosine = ScheduleSpec(kind="cosine")
    >>> [round(rate_at(p, schedule=cosine, lr=0.1, epochs=4), 3) for p in (0, 2, 4)]
    [0.1, 0.05, 0.0]
    """
    if progress < schedule.warmup:
        return lr * progress / schedule.warmup
    return lr * SCHEDULES[schedule.kind](progress, schedule, epochs)


def _cosine(progress: float, schedule: ScheduleSpec, epochs: int) -> float:
    whole = math.floor(progress - schedule.warmup)
    period = schedule.cycle or max(epochs - schedule.warmup, 1e-9)
    share = whole % period / period if schedule.cycle else whole / period
    return (1 + math.cos(math.pi * share)) / 2


def _linear(progress: float, schedule: ScheduleSpec, epochs: int) -> float:
    return 1 - _share(progress, schedule, epochs)


def _constant(progress: float, schedule: ScheduleSpec, epochs: int) -> float:  # noqa: ARG001
    return 1.0


def _step(progress: float, schedule: ScheduleSpec, epochs: int) -> float:  # noqa: ARG001
    return schedule.factor ** sum(progress >= milestone for milestone in schedule.milestones)


def _share(progress: float, schedule: ScheduleSpec, epochs: int) -> float:
    """Return how much of the time after the warm-up has passed."""
    return (progress - schedule.warmup) / max(epochs - schedule.warmup, 1e-9)


SCHEDULES: dict[str, Callable[[float, ScheduleSpec, int], float]] = {
    "cosine": _cosine,
    "constant": _constant,
    "step": _step,
    "linear": _linear,
}
