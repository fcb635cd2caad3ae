"""Exact confidence intervals for proportions.

Clopper and Pearson's bounds in numpy, so that reading a record needs no scipy.
"""

import math
from statistics import NormalDist

import numpy as np

from accord.errors import PredictionError

HALVINGS = 60
MANY = 10**5  # trials above which the normal approximation is used
ROUNDING = 1e-9  # tolerance for integers


def share_interval(hits: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Compute the Clopper-Pearson confidence interval of a proportion.

    Its coverage is at least `confidence`, for any number of trials.

    >>> low, high = share_interval(9, 10)
    >>> round(low, 4), round(high, 4)
    (0.555, 0.9975)
    """
    _check_hits(hits, trials)
    each = (1 + check_confidence(confidence)) / 2
    return 1 - highest_share(trials - hits, trials, confidence=each), highest_share(
        hits, trials, confidence=each
    )


def highest_share(hits: int, trials: int, *, confidence: float = 0.95) -> float:
    check_confidence(confidence)
    _check_hits(hits, trials)
    if hits == trials:
        return 1.0
    low, high = hits / trials, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _at_most(hits, trials, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def mean_interval(
    mean: float, smoothed: float, variance: float, *, confidence: float
) -> tuple[float, float]:
    """Compute a confidence interval for the mean of values in 0..1.

    Uses Clopper and Pearson's interval with the number of trials that has the same variance
    (Korn and Graubard), so that it does not vanish where all values are equal. Trials are rounded
    in the direction that widens it. `smoothed` and `variance` are of the estimate after smoothing,
    which keeps it from being 0 or 1; the variance is 0 if it is exact.
    """
    each = (1 + check_confidence(confidence)) / 2
    if variance <= 0:
        return mean, mean
    trials = smoothed * (1 - smoothed) / variance
    if trials > MANY:
        half = NormalDist().inv_cdf(each) * math.sqrt(variance)
        return max(0.0, mean - half), min(1.0, mean + half)
    whole = max(1, math.floor(trials + ROUNDING))
    hits = mean * whole
    fewest, most = math.floor(hits + ROUNDING), min(whole, math.ceil(hits - ROUNDING))
    return (
        1 - highest_share(whole - fewest, whole, confidence=each),
        highest_share(most, whole, confidence=each),
    )


def check_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise PredictionError(f"confidence must lie between 0 and 1; got {confidence}")
    return confidence


def _check_hits(hits: int, trials: int) -> None:
    if not 0 <= hits <= trials or trials < 1:
        raise PredictionError(f"hits must lie in 0..trials, of at least 1; got {hits} of {trials}")


def _at_most(hits: int, trials: int, share: float) -> float:
    if share >= 1:
        return 0.0
    # Logarithms of the terms, each from the one before.
    steps = np.arange(1, hits + 1)
    growth = np.log(trials - steps + 1) - np.log(steps) + math.log(share) - math.log1p(-share)
    terms = trials * math.log1p(-share) + np.concatenate([[0.0], np.cumsum(growth)])
    top = terms.max()
    return float(np.exp(top) * np.exp(terms - top).sum())
