"""What one rule turns right and turns wrong against another, and whether that is chance."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError
from accord.rules import Rule, find_rule
from accord.store import Rows

LARGE_BITS: Final = 512  # half of what a double's exponent holds
LARGE: Final = 2.0**LARGE_BITS


@dataclass(frozen=True)
class Changes:
    """Two rules on the same samples, pair by pair."""

    turned_right: int  # wrong with the first rule, right with the second
    turned_wrong: int  # right with the first rule, wrong with the second
    samples: int
    p_value: float  # exact McNemar test: chance of so uneven a split if both were equally good
    low: float  # confidence interval of the difference in accuracy, second minus first
    high: float
    confidence: float

    @property
    def difference(self) -> float:
        """The second rule's accuracy minus the first's."""
        return (self.turned_right - self.turned_wrong) / self.samples


def changes(
    rows: Rows, first: str | Rule, second: str | Rule, *, confidence: float = 0.95
) -> Changes:
    """Compare two rules on one record, sample by sample; `single` is the first network."""
    before, after = (find_rule(rule)(rows).labels for rule in (first, second))
    return paired_changes(before, after, rows.truth(), confidence=confidence)


def paired_changes(
    first: NDArray[Any], second: NDArray[Any], truth: NDArray[Any], *, confidence: float = 0.95
) -> Changes:
    """Compare two sets of labels for the same samples.

    The interval is Agresti and Min's: half an observation is added to each of the four cells
    before the normal approximation, which keeps its promise for small counts too.

    Raises:
        PredictionError: there is not one label of each for every sample, or no sample.

    >>> truth = np.zeros(10, int)
    >>> worse, better = np.array([1] * 6 + [0] * 4), truth
    >>> paired_changes(worse, better, truth).turned_right
    6
    """
    if not 0 < confidence < 1:
        raise PredictionError(f"confidence must lie between 0 and 1; got {confidence}")
    first, second, truth = np.asarray(first), np.asarray(second), np.asarray(truth)
    if truth.ndim != 1 or not len(truth) or not first.shape == second.shape == truth.shape:
        raise PredictionError(
            "two labels and a true one per sample are wanted, for at least one sample; got shapes "
            f"{first.shape}, {second.shape} and {truth.shape}"
        )
    was_right, is_right = first == truth, second == truth
    gained = int((~was_right & is_right).sum())
    lost = int((was_right & ~is_right).sum())
    low, high = _interval(gained, lost, len(truth), confidence)
    p_value = mcnemar(gained, lost)
    return Changes(gained, lost, len(truth), p_value, low, high, confidence)


def mcnemar(gained: int, lost: int) -> float:
    """Return the exact two-sided p-value of McNemar's test.

    >>> mcnemar(6, 0)
    0.03125
    """
    pairs = gained + lost
    ways = tail = 1.0  # to choose none of the pairs, times 2 ** (halvings - pairs)
    halvings = pairs
    for chosen in range(min(gained, lost)):
        ways = ways * (pairs - chosen) / (chosen + 1)  # not rounded below 2**53
        tail += ways
        if tail > LARGE:  # it would overflow; by a power of 2, nothing is rounded
            ways, tail, halvings = ways / LARGE, tail / LARGE, halvings - LARGE_BITS
    return min(1.0, math.ldexp(2 * tail, -halvings))


def _interval(gained: int, lost: int, samples: int, confidence: float) -> tuple[float, float]:
    b, c, n = gained + 0.5, lost + 0.5, samples + 2
    half = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(b + c - (b - c) ** 2 / n) / n
    middle = (b - c) / n
    return max(-1.0, middle - half), min(1.0, middle + half)
