"""Calibration of confidences."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError
from accord.rules import ABSTAINED, Prediction

BINS: Final = 15

Confidence = NDArray[np.float64]  # (sample,), 0..1


@dataclass(frozen=True)
class Calibration:
    """Reliability curve of a prediction.

    Bins have equal width and include their lower edge. A confidence of exactly 1, that of
    unanimous votes, has an additional last bin. Empty bins hold nan.
    """

    edges: NDArray[np.float64]  # (bin,), lower edges, the last is 1
    counts: NDArray[np.intp]  # (bin,)
    confidence: NDArray[np.float64]  # (bin,)
    accuracy: NDArray[np.float64]  # (bin,)

    @property
    def error(self) -> float:
        """Expected calibration error."""
        return float(np.nansum(self._gaps * self.counts) / self.counts.sum())

    @property
    def largest_error(self) -> float:
        """Maximum calibration error."""
        return float(np.nanmax(self._gaps))

    @property
    def _gaps(self) -> NDArray[np.float64]:
        return np.asarray(np.abs(self.accuracy - self.confidence))


def calibration(
    confidence: NDArray[Any], right: NDArray[np.bool_], *, bins: int = BINS
) -> Calibration:
    """Compute the reliability curve of confidences.

    They are (sample,) in 0..1; `right` is whether each label is right; bins have equal width.

    Raises:
        PredictionError: shapes differ, there is no sample, or a confidence is out of range.

    Two samples of confidence 0.8, one of them right:

    >>> round(calibration(np.array([0.8, 0.8]), np.array([True, False])).error, 3)
    0.3
    """
    confidence = checked_confidence(confidence, right)
    if bins < 1:
        raise PredictionError(f"bins must be at least 1; got {bins}")
    # Not linspace, whose sums round: a share of 3 of 5 votes must equal its edge.
    edges = np.arange(bins + 1) / bins
    places = np.searchsorted(edges, confidence, side="right") - 1
    counts = np.bincount(places, minlength=bins + 1)

    def mean(values: NDArray[Any]) -> NDArray[np.float64]:
        sums = np.bincount(places, weights=values, minlength=bins + 1)
        empty = np.full(bins + 1, np.nan)
        return np.asarray(np.divide(sums, counts, out=empty, where=counts > 0))

    return Calibration(edges, counts, mean(confidence), mean(right))


def calibration_of(prediction: Prediction, truth: NDArray[Any], *, bins: int = BINS) -> Calibration:
    """Compute the reliability curve of a prediction.

    The score of max agreement is its label's share of the votes. Samples on which the rule
    abstains are left out.
    """
    labelled = prediction.labels != ABSTAINED
    right = prediction.labels[labelled] == truth[labelled]
    return calibration(prediction.scores[labelled], right, bins=bins)


def checked_confidence(confidence: NDArray[Any], right: NDArray[Any]) -> Confidence:
    values = np.asarray(confidence, np.float64)
    check_paired(values, np.asarray(right), kind="confidence")
    if not (values.min() >= 0 and values.max() <= 1):  # nan fails, too
        raise PredictionError(
            f"confidences must lie in 0..1; got {values.min():g}..{values.max():g}. "
            "Are these logits, or percent?"
        )
    return values


def check_paired(scores: NDArray[Any], right: NDArray[Any], *, kind: str = "score") -> None:
    if scores.shape != right.shape or scores.ndim != 1 or not len(scores):
        raise PredictionError(
            f"expected one {kind} and one right-or-wrong per sample, for at least one labelled "
            f"sample; got shapes {scores.shape} and {right.shape}"
        )
