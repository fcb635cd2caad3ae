"""How well a confidence says how often a label is right."""

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
    """A reliability curve: mean confidence and accuracy of samples binned by confidence.

    Bins are of equal width and hold their lower edge; a confidence of exactly 1, which unanimous
    votes have, makes a last bin of its own. Empty bins have nan.
    """

    edges: NDArray[np.float64]  # (bin,), the lower edge; the last is 1
    counts: NDArray[np.intp]  # (bin,)
    confidence: NDArray[np.float64]  # (bin,)
    accuracy: NDArray[np.float64]  # (bin,)

    @property
    def error(self) -> float:
        """The expected calibration error: the mean gap between the two, over samples."""
        return float(np.nansum(self._gaps * self.counts) / self.counts.sum())

    @property
    def largest_error(self) -> float:
        """The gap of the worst bin."""
        return float(np.nanmax(self._gaps))

    @property
    def _gaps(self) -> NDArray[np.float64]:
        return np.asarray(np.abs(self.accuracy - self.confidence))


def calibration(
    confidence: NDArray[Any], right: NDArray[np.bool_], *, bins: int = BINS
) -> Calibration:
    """Bin samples by confidence and compare it with how many are right.

    Args:
        confidence: (sample,), in 0..1.
        right: (sample,), whether the label is right.
        bins: of equal width, from 0 to 1.

    Raises:
        PredictionError: shapes differ, there is no sample, or a confidence is out of range.

    Two samples with confidence 0.8, of which one is right:

    >>> round(calibration(np.array([0.8, 0.8]), np.array([True, False])).error, 3)
    0.3
    """
    confidence = checked_confidence(confidence, right)
    if bins < 1:
        raise PredictionError(f"bins must be at least 1; got {bins}")
    # Divided, not added up as linspace does: a share of 3 of 5 votes then equals its edge.
    edges = np.arange(bins + 1) / bins
    places = np.searchsorted(edges, confidence, side="right") - 1
    counts = np.bincount(places, minlength=bins + 1)

    def mean(values: NDArray[Any]) -> NDArray[np.float64]:
        sums = np.bincount(places, weights=values, minlength=bins + 1)
        empty = np.full(bins + 1, np.nan)
        return np.asarray(np.divide(sums, counts, out=empty, where=counts > 0))

    return Calibration(edges, counts, mean(confidence), mean(right))


def calibration_of(prediction: Prediction, truth: NDArray[Any], *, bins: int = BINS) -> Calibration:
    """Compare the scores of a prediction with how often its labels are right.

    The score of max agreement is the share of votes its label has. Samples on which the rule
    abstains are left out.
    """
    labelled = prediction.labels != ABSTAINED
    right = prediction.labels[labelled] == truth[labelled]
    return calibration(prediction.scores[labelled], right, bins=bins)


def brier_score(confidence: NDArray[Any], right: NDArray[np.bool_]) -> float:
    """Return the mean squared gap between confidence and being right; 0 is perfect.

    >>> brier_score(np.array([1.0, 0.5]), np.array([True, True]))
    0.125
    """
    return float(np.mean((checked_confidence(confidence, right) - right) ** 2))


def checked_confidence(confidence: NDArray[Any], right: NDArray[Any]) -> Confidence:
    """Return confidences as numbers, or say what is wrong with them."""
    values = np.asarray(confidence, np.float64)
    if values.shape != np.shape(right) or values.ndim != 1 or not len(values):
        raise PredictionError(
            "one confidence and one right-or-wrong per sample are wanted, for at least one "
            f"sample; got shapes {values.shape} and {np.shape(right)}"
        )
    if not (values.min() >= 0 and values.max() <= 1):  # written so that nan is refused too
        raise PredictionError(
            f"confidences must lie in 0..1; got {values.min():g}..{values.max():g}. "
            "Are these logits, or percent?"
        )
    return values
