"""Accuracy on samples whose labels are partly wrong, corrected by how they came to be wrong."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._trust._intervals import check_confidence, mean_interval
from accord.errors import PredictionError
from accord.kernels._checks import checked_classes

MOST_BLURRED: Final = 1e6  # condition number above which nothing can be told

Confusion = NDArray[np.float64]  # (class, given label), each row adding up to 1


@dataclass(frozen=True)
class Estimate:
    """A number that was estimated from samples, with its confidence interval."""

    value: float
    low: float
    high: float
    confidence: float
    error: float  # the standard error


def symmetric_confusion(rate: float, *, classes: int) -> Confusion:
    """Return how labels turn if a share `rate` of them moves to another class, any alike.

    >>> symmetric_confusion(0.4, classes=3)
    array([[0.6, 0.2, 0.2],
           [0.2, 0.6, 0.2],
           [0.2, 0.2, 0.6]])
    """
    if not 0 <= rate <= 1 or classes < 2:
        raise PredictionError(
            f"a rate in 0..1 and at least two classes are wanted; got {rate:g} and {classes}"
        )
    confusion = np.full((classes, classes), rate / (classes - 1))
    np.fill_diagonal(confusion, 1 - rate)
    return confusion


def corrected_accuracy(
    predicted: NDArray[Any],
    given: NDArray[Any],
    confusion: NDArray[Any],
    *,
    confidence: float = 0.95,
) -> Estimate:
    """Estimate the accuracy against the true labels from given ones that are partly wrong.

    Assumes that a given label depends on the true class alone, as `confusion` says, and not on
    what was predicted: the samples were not used for training, and those that are hard for
    networks are not also those that people got wrong. Then each sample counts as the entry
    (given, predicted) of the inverse of `confusion`, whose mean is the accuracy; it can lie
    outside 0..1. `confusion` is taken as known: if it is itself estimated, the interval is
    too narrow. Given that, it holds for few samples too; under symmetric noise it is Clopper and
    Pearson's.

    Args:
        predicted: (sample,).
        given: (sample,), labels that may be wrong.
        confusion: (class, given label), each row adding up to 1; see `symmetric_confusion`.
        confidence: of the interval.

    Raises:
        PredictionError: labels or confusion are out of shape or range, or the confusion leaves
            nothing to tell the classes by.
    """
    weights = _weights(confusion)
    predicted, given = _checked_labels(weights, predicted, given)
    values = weights[given, predicted]
    return _mean(values, float(weights.min()), float(weights.max()), confidence)


def corrected_difference(
    first: NDArray[Any],
    second: NDArray[Any],
    given: NDArray[Any],
    confusion: NDArray[Any],
    *,
    confidence: float = 0.95,
) -> Estimate:
    """Estimate how much more accurate the second labels are than the first, pair by pair.

    Assumes what `corrected_accuracy` does. Under symmetric noise the exact paired test
    (`paired_changes` against the given labels) stays valid and has more to say about
    significance; this estimates the size.
    """
    weights = _weights(confusion)
    first, second, given = _checked_labels(weights, first, second, given)
    span = float(weights.max() - weights.min())
    return _mean(weights[given, second] - weights[given, first], -span, span, confidence)


def _weights(confusion: NDArray[Any]) -> NDArray[np.float64]:  # (given, predicted)
    matrix = np.asarray(confusion, np.float64)
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    if not square or matrix.min() < 0 or not np.allclose(matrix.sum(axis=1), 1, atol=1e-6):
        raise PredictionError(
            "confusion must be (class, given label) with rows that add up to 1; got shape "
            f"{matrix.shape}"
        )
    if np.linalg.cond(matrix) > MOST_BLURRED:
        raise PredictionError(
            "the confusion blurs some classes into each other: their given labels are alike, "
            "and no accuracy can be told. Verify some labels instead"
        )
    return np.asarray(np.linalg.inv(matrix))


def _checked_labels(
    weights: NDArray[np.float64], *labels: NDArray[Any]
) -> tuple[NDArray[np.intp], ...]:
    found = [np.asarray(one) for one in labels]
    if len({one.shape for one in found}) > 1 or found[0].ndim != 1 or not len(found[0]):
        raise PredictionError(
            "one predicted and one given label per sample are wanted, for at least one sample; "
            f"got shapes {', '.join(str(one.shape) for one in found)}"
        )
    return tuple(checked_classes(one, classes=len(weights)) for one in found)


def _mean(values: NDArray[np.float64], least: float, most: float, confidence: float) -> Estimate:
    """Estimate the mean of values that lie in least..most, whatever was drawn."""
    if most <= least:  # one class: there is nothing to be wrong about
        value = float(values.mean())
        return Estimate(value, value, value, check_confidence(confidence), 0.0)
    shares = (values - least) / (most - least)
    smoothed, spread = smooth_moments(shares)
    mean, variance = float(shares.mean()), spread / len(shares)
    low, high = mean_interval(mean, smoothed, variance, confidence=confidence)
    value, low, high = (least + (most - least) * share for share in (mean, low, high))
    return Estimate(value, low, high, confidence, (most - least) * math.sqrt(variance))


def smooth_moments(shares: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and variance of values in 0..1, as if half a 0 and half a 1 had been seen too.

    However alike the values are, there is some doubt; of 0s and 1s, these are Jeffreys' counts.

    >>> smooth_moments(np.ones(3))
    (0.875, 0.109375)
    """
    count = len(shares) + 1
    mean = (float(shares.sum()) + 0.5) / count
    squares = (float((shares**2).sum()) + 0.5) / count
    return mean, max(squares - mean**2, 0.0)
