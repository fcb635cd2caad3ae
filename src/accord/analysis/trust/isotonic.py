"""Isotonic regression: the rising steps closest to what was seen."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError


@dataclass(frozen=True)
class Isotonic:
    """Turns a score into the share of labels that were right at scores like it."""

    scores: NDArray[np.float64]  # (step,), rising: where each step begins
    shares: NDArray[np.float64]  # (step,), never falling

    def __call__(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return the calibrated confidence of each score.

        Below the first score that was seen, that of the first step.

        Raises:
            PredictionError: a score is nan.
        """
        if np.isnan(scores).any():
            raise PredictionError("a score is nan, which is neither high nor low")
        step = np.searchsorted(self.scores, scores, side="right") - 1
        return np.asarray(self.shares[np.maximum(step, 0)])


def fit_isotonic(scores: NDArray[Any], right: NDArray[Any]) -> Isotonic:
    """Fit confidence to labelled samples, on the promise that a higher score is no worse.

    Pools adjacent violators: wherever a higher score was right less often, both become one
    step. Equal scores are always one step. Fit on labelled samples that you do not
    evaluate on: the steps follow them closely.

    Args:
        scores: (sample,), such as margins or shares of votes.
        right: (sample,), whether the label is right; or any numbers.

    Raises:
        PredictionError: shapes differ, there is no sample, or a number is not finite.

    >>> fitted = fit_isotonic(np.array([0.2, 0.4, 0.6, 0.8]), np.array([0, 1, 0, 1]))
    >>> fitted(np.array([0.3, 0.5, 0.9]))
    array([0. , 0.5, 1. ])
    """
    scores, right = np.asarray(scores, np.float64), np.asarray(right, np.float64)
    if scores.shape != right.shape or scores.ndim != 1 or not len(scores):
        raise PredictionError(
            "one score and one right-or-wrong per sample are wanted, for at least one labelled "
            f"sample; got shapes {scores.shape} and {right.shape}"
        )
    if not (np.isfinite(scores).all() and np.isfinite(right).all()):
        raise PredictionError("scores and right-or-wrong must be finite; some are nan or infinite")
    distinct, places = np.unique(scores, return_inverse=True)
    counts = np.bincount(places)
    sums = np.asarray(np.bincount(places, weights=right), np.float64)
    starts, shares = _pool(sums, counts)
    return Isotonic(distinct[starts], shares)


def _pool(
    sums: NDArray[np.float64], counts: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    # Each step: where it starts, the sum and the number of its samples.
    steps: list[tuple[int, float, int]] = []
    for start, (total, count) in enumerate(zip(sums.tolist(), counts.tolist(), strict=True)):
        step = start, total, count
        while steps and steps[-1][1] * step[2] >= step[1] * steps[-1][2]:  # no higher: one step
            before = steps.pop()
            step = before[0], before[1] + step[1], before[2] + step[2]
        steps.append(step)
    starts = np.array([start for start, _, _ in steps])
    return starts, np.array([total / count for _, total, count in steps])
