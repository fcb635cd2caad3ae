"""Where labels go when their wanted places are too close."""

from collections.abc import Sequence

import numpy as np


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Move positions apart until none are closer than `gap`, each as little as possible.

    >>> spread([5.0, 5.0, 40.0], gap=10, low=0, high=50)
    [0.0, 10.0, 40.0]
    """
    order = np.argsort(np.array(wanted), kind="stable")
    groups: list[list[float]] = []  # of positions less their rank, which must not decrease
    for rank, index in enumerate(order):
        groups.append([wanted[index] - rank * gap])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    moved = [float(np.mean(group)) for group in groups for _ in group]
    ceiling = high - gap * (len(wanted) - 1)
    placed = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        placed[index] = float(max(low, min(moved[rank], ceiling)) + rank * gap)
    return placed
