"""Confidence bounds of a share, exact for any number of samples."""

import math

import numpy as np

from accord.errors import PredictionError

HALVINGS = 60


def share_interval(hits: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a share.

    It covers the true share at least as often as it says, for any number of trials.

    >>> low, high = share_interval(9, 10)
    >>> round(low, 4), round(high, 4)
    (0.555, 0.9975)
    """
    each = (1 + check_confidence(confidence)) / 2
    return 1 - highest_share(trials - hits, trials, confidence=each), highest_share(
        hits, trials, confidence=each
    )


def highest_share(hits: int, trials: int, *, confidence: float = 0.95) -> float:
    """Return the bound that the true share exceeds with a chance of at most 1 - confidence.

    No hit in 100 trials, the rule of three:

    >>> round(highest_share(0, 100), 3)
    0.03
    """
    check_confidence(confidence)
    if not 0 <= hits <= trials or trials < 1:
        raise PredictionError(f"hits must lie in 0..trials, of at least 1; got {hits} of {trials}")
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


def check_confidence(confidence: float) -> float:
    """Return a confidence that lies between 0 and 1, or raise."""
    if not 0 < confidence < 1:
        raise PredictionError(f"confidence must lie between 0 and 1; got {confidence}")
    return confidence


def _at_most(hits: int, trials: int, share: float) -> float:
    """Return the chance of at most so many hits."""
    if share >= 1:
        return 0.0
    # In logarithms: each term follows from the one before.
    steps = np.arange(1, hits + 1)
    growth = np.log(trials - steps + 1) - np.log(steps) + math.log(share) - math.log1p(-share)
    terms = trials * math.log1p(-share) + np.concatenate([[0.0], np.cumsum(growth)])
    top = terms.max()
    return float(np.exp(top) * np.exp(terms - top).sum())
