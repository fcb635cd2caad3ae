"""Accuracy estimates from noisy labels."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._trust._confidence_intervals import check_confidence, mean_interval
from accord.errors import PredictionError
from accord.kernels import check_class_range

MOST_CONDITION: Final = 1e6  # condition number above which the estimate is meaningless

Confusion = NDArray[np.float64]  # (class, given label), rows sum to 1


@dataclass(frozen=True)
class Estimate:
    """Estimate with a confidence interval."""

    value: float
    low: float
    high: float
    confidence: float
    error: float  # the standard error


def symmetric_confusion(rate: float, *, classes: int) -> Confusion:
    """Build the confusion matrix of symmetric label noise.

    A share `rate` of each class is spread evenly over the others.

    >>> symmetric_confusion(0.4, classes=3)
    array([[0.6, 0.2, 0.2],
           [0.2, 0.6, 0.2],
           [0.2, 0.2, 0.6]])
    """
    if not 0 <= rate <= 1 or classes < 2:
        raise PredictionError(
            f"expected a rate in 0..1 and at least two classes; got {rate:g} and {classes}"
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
    """Estimate the true accuracy from noisy labels.

    Assumes that a given label depends on the true class alone, through `confusion`, and not on
    the prediction: the samples were not used for training, and samples that are hard for networks
    are not also those that people mislabel. The accuracy is then the mean of the entries
    (given, predicted) of the inverse of `confusion`; it may lie outside 0..1. `confusion` is taken
    as known: if it is estimated itself, the interval is too narrow. Otherwise the interval holds
    for few samples, too; under symmetric noise it is Clopper and Pearson's.

    Args:
        predicted: (sample,).
        given: (sample,), labels that may be wrong.
        confusion: (class, given label), rows sum to 1; see `symmetric_confusion`.
        confidence: of the interval.

    Raises:
        PredictionError: labels or confusion have the wrong shape or range, or the confusion
            does not distinguish some classes.
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
    """Estimate the difference in accuracy between two predictions.

    Makes the assumptions of `corrected_accuracy`. For significance under symmetric noise, prefer
    the exact paired test (`paired_changes` against the given labels); this estimates the size.
    """
    weights = _weights(confusion)
    first, second, given = _checked_labels(weights, first, second, given)
    span = float(weights.max() - weights.min())
    return _mean(weights[given, second] - weights[given, first], -span, span, confidence)


def _weights(confusion: NDArray[Any]) -> NDArray[np.float64]:  # (given, predicted)
    matrix = np.asarray(confusion, np.float64)
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    if not square or matrix.min() < 0 or not np.allclose(matrix.sum(axis=1), 1, atol=1e-6):
        expected = "confusion must be (class, given label) with rows that sum to 1"
        raise PredictionError(f"{expected}; got shape {matrix.shape}")
    if np.linalg.cond(matrix) > MOST_CONDITION:
        raise PredictionError(
            "the confusion matrix is singular: some classes have the same given labels, so the "
            "accuracy cannot be estimated. Verify some labels instead"
        )
    return np.asarray(np.linalg.inv(matrix))


def _checked_labels(
    weights: NDArray[np.float64], *labels: NDArray[Any]
) -> tuple[NDArray[np.intp], ...]:
    found = [np.asarray(one) for one in labels]
    if len({one.shape for one in found}) > 1 or found[0].ndim != 1 or not len(found[0]):
        raise PredictionError(
            "expected one predicted and one given label per sample, for at least one sample; "
            f"got shapes {', '.join(str(one.shape) for one in found)}"
        )
    for one in found:
        if one.dtype.kind not in "iu":
            raise PredictionError(
                f"labels must be whole numbers; got {one.dtype}. Convert them: labels.astype(int)"
            )
        check_class_range(one, classes=len(weights))
    return tuple(one.astype(np.intp) for one in found)


def _mean(values: NDArray[np.float64], least: float, most: float, confidence: float) -> Estimate:
    if most <= least:  # one class: every label is right
        value = float(values.mean())
        return Estimate(value, value, value, check_confidence(confidence), 0.0)
    shares = (values - least) / (most - least)
    smoothed, spread = smooth_moments(shares)
    mean, variance = float(shares.mean()), spread / len(shares)
    low, high = mean_interval(mean, smoothed, variance, confidence=confidence)
    value, low, high = (least + (most - least) * share for share in (mean, low, high))
    return Estimate(value, low, high, confidence, (most - least) * math.sqrt(variance))


def smooth_moments(shares: NDArray[np.float64]) -> tuple[float, float]:
    """Compute the smoothed mean and variance of values in 0..1.

    Adds half a 0 and half a 1, which keeps the variance of equal values above 0. For
    values of 0 and 1 this is Jeffreys' prior.

    >>> smooth_moments(np.ones(3))
    (0.875, 0.109375)
    """
    count = len(shares) + 1
    mean = (float(shares.sum()) + 0.5) / count
    squares = (float((shares**2).sum()) + 0.5) / count
    return mean, max(squares - mean**2, 0.0)
