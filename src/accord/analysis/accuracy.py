"""How many predictions are right: overall, by class, and averaged over classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError
from accord.rules import ABSTAINED


@dataclass(frozen=True)
class Accuracy:
    """Shares of right predictions; an abstention counts as wrong."""

    accuracy: float
    balanced_accuracy: float  # the mean recall of the classes that occur
    recall: tuple[float, ...]  # by class; nan for a class that does not occur
    coverage: float  # the share of samples that got a label at all
    selective_accuracy: float  # among those; nan if there are none


def measure(predicted: NDArray[Any], truth: NDArray[Any], *, classes: int) -> Accuracy:
    """Compare one label per sample with the truth.

    Raises:
        PredictionError: there is not one label and one true class for every sample, no sample,
            or a true class is out of range.

    >>> measure(np.array([0, 1, 1, -1]), np.array([0, 0, 1, 1]), classes=2).accuracy
    0.5
    """
    predicted, truth = np.asarray(predicted), np.asarray(truth)
    _check(predicted, truth, classes)
    right = predicted == truth
    covered = predicted != ABSTAINED
    hits = np.bincount(truth[right], minlength=classes)
    return from_hits(
        hits,
        np.bincount(truth, minlength=classes),
        covered=int(covered.sum()),
    )


def from_hits(
    hits: NDArray[np.intp], sizes: NDArray[np.intp], *, covered: int | None = None
) -> Accuracy:
    """Turn counts of right predictions by true class, and the classes' sizes, into shares."""
    samples = int(sizes.sum())
    covered = samples if covered is None else covered
    recall = np.divide(hits, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)
    right = int(hits.sum())
    return Accuracy(
        accuracy=right / samples,
        balanced_accuracy=float(np.nanmean(recall)),
        recall=tuple(float(share) for share in recall),
        coverage=covered / samples,
        selective_accuracy=right / covered if covered else float("nan"),
    )


def _check(predicted: NDArray[Any], truth: NDArray[Any], classes: int) -> None:
    if truth.ndim != 1 or not len(truth) or predicted.shape != truth.shape:
        raise PredictionError(
            "one label and one true class per sample are wanted, for at least one sample; got "
            f"shapes {predicted.shape} and {truth.shape}"
        )
    if truth.min() < 0 or truth.max() >= classes:
        raise PredictionError(
            f"true classes must lie in 0..{classes - 1} for {classes} classes; got "
            f"{truth.min()}..{truth.max()}. Leave out samples whose class is not known"
        )
