"""Calibration of confidences."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError
from accord.kernels._checks import checked_classes
from accord.rules import ABSTAINED, Prediction


@dataclass(frozen=True)
class Isotonic:
    """Isotonic calibration of scores."""

    scores: NDArray[np.float64]  # (step,), start of each step in increasing order
    shares: NDArray[np.float64]  # (step,), never falling

    def __call__(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Compute the calibrated confidence of each score.

        Scores below the first step get the confidence of the first step.

        Raises:
            PredictionError: a score is nan.
        """
        if np.isnan(scores).any():
            raise PredictionError("a score is nan, which no confidence can be assigned to")
        step = np.searchsorted(self.scores, scores, side="right") - 1
        return np.asarray(self.shares[np.maximum(step, 0)])


def fit_isotonic(scores: NDArray[Any], right: NDArray[Any]) -> Isotonic:
    """Fit an isotonic calibration to labelled samples.

    Pools adjacent violators: where a higher score was right less often, both become one step.
    Equal scores always share a step. Evaluate on other samples than these: the steps follow them
    closely.

    Args:
        scores: (sample,), such as margins or shares of votes.
        right: (sample,), whether the label is right, or any other number to fit.

    Raises:
        PredictionError: shapes differ, there is no sample, or a number is not finite.

    >>> fitted = fit_isotonic(np.array([0.2, 0.4, 0.6, 0.8]), np.array([0, 1, 0, 1]))
    >>> fitted(np.array([0.3, 0.5, 0.9]))
    array([0. , 0.5, 1. ])
    """
    scores, right = np.asarray(scores, np.float64), np.asarray(right, np.float64)
    check_paired(scores, right)
    if not (np.isfinite(scores).all() and np.isfinite(right).all()):
        raise PredictionError("scores and right-or-wrong must be finite; some are nan or infinite")
    distinct, places = np.unique(scores, return_inverse=True)
    counts = np.bincount(places)
    sums = np.asarray(np.bincount(places, weights=right), np.float64)
    starts, shares = _pool(sums, counts)
    return Isotonic(distinct[starts], shares)


def check_paired(scores: NDArray[Any], right: NDArray[Any], *, kind: str = "score") -> None:
    """Check that scores and outcomes have the same length."""
    if scores.shape != right.shape or scores.ndim != 1 or not len(scores):
        raise PredictionError(
            f"expected one {kind} and one right-or-wrong per sample, for at least one labelled "
            f"sample; got shapes {scores.shape} and {right.shape}"
        )


def _pool(
    sums: NDArray[np.float64], counts: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    # A step is its first score, the sum and the number of its samples.
    steps: list[tuple[int, float, int]] = []
    for start, (total, count) in enumerate(zip(sums.tolist(), counts.tolist(), strict=True)):
        step = start, total, count
        while steps and steps[-1][1] * step[2] >= step[1] * steps[-1][2]:  # no higher: one step
            before = steps.pop()
            step = before[0], before[1] + step[1], before[2] + step[2]
        steps.append(step)
    starts = np.array([start for start, _, _ in steps])
    return starts, np.array([total / count for _, total, count in steps])


COLDEST, HOTTEST = 0.01, 100.0
ROUNDS: Final = 60  # of golden-section search, for twelve digits
GOLDEN: Final = (5**0.5 - 1) / 2

Shares = NDArray[np.float64]  # (sample, class), rows sum to 1


@dataclass(frozen=True)
class Temperature:
    """Temperature scaling of shares of votes."""

    value: float  # sharpens below 1, flattens above 1
    voters: int  # a class without votes counts as if it had half a vote

    def __call__(self, agreement: NDArray[Any]) -> Shares:
        """Compute the calibrated class probabilities."""
        powers = _log_shares(agreement, self.voters) / self.value
        powers = np.exp(powers - powers.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def fit_temperature(agreement: NDArray[Any], labels: NDArray[Any], *, voters: int) -> Temperature:
    """Fit the temperature to labelled samples by maximum likelihood.

    A few hundred labelled samples suffice, as one number is fitted.

    Args:
        agreement: (sample, class), as `Record.agreement` returns.
        labels: (sample,), the true classes.
        voters: votes for each sample: networks × epochs.

    Raises:
        PredictionError: shapes differ, a share is not finite, or a label is out of range.

    Unanimous votes that are right for three of four samples:

    >>> votes = np.repeat([[1.0, 0.0]], 4, axis=0)
    >>> fitted = fit_temperature(votes, np.array([0, 0, 0, 1]), voters=10)
    >>> fitted(votes)[0].round(2)
    array([0.75, 0.25])
    """
    agreement, labels = np.asarray(agreement, np.float64), np.asarray(labels)
    _check(agreement, labels, voters)
    labels = checked_classes(labels, classes=agreement.shape[1])
    logs = _log_shares(agreement, voters)
    own = logs[np.arange(len(labels)), labels]
    low, high = np.log(COLDEST), np.log(HOTTEST)
    # The loss is convex in 1 / temperature, so it has one minimum along the logarithm, too.
    for _ in range(ROUNDS):
        step = GOLDEN * (high - low)
        if _loss(logs, own, np.exp(high - step)) <= _loss(logs, own, np.exp(low + step)):
            high = low + step
        else:
            low = high - step
    return Temperature(float(np.exp((low + high) / 2)), voters)


def _check(agreement: NDArray[Any], labels: NDArray[Any], voters: int) -> None:
    if agreement.ndim != 2 or labels.shape != agreement.shape[:1] or not len(labels):
        raise PredictionError(
            "expected agreement (sample, class) and one label for each of its samples, at least "
            f"one; got shapes {agreement.shape} and {labels.shape}"
        )
    if not np.isfinite(agreement).all():
        raise PredictionError("agreement must be shares of votes, in 0..1; some are not finite")
    if voters < 1:
        raise PredictionError(f"voters, networks × epochs, must be at least 1; got {voters}")


def _log_shares(agreement: NDArray[Any], voters: int) -> Shares:
    return np.asarray(np.log(np.maximum(agreement, 0.5 / voters)))


def _loss(logs: Shares, own: NDArray[np.float64], temperature: float) -> float:
    powers = logs / temperature
    top = powers.max(axis=1)
    total = np.log(np.exp(powers - top[:, None]).sum(axis=1)) + top
    return float((total - own / temperature).mean())


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

    Args:
        confidence: (sample,), in 0..1.
        right: (sample,), whether the label is right.
        bins: number of bins of equal width, from 0 to 1.

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
    """Validate confidences and convert them to floats."""
    values = np.asarray(confidence, np.float64)
    check_paired(values, np.asarray(right), kind="confidence")
    if not (values.min() >= 0 and values.max() <= 1):  # nan fails, too
        raise PredictionError(
            f"confidences must lie in 0..1; got {values.min():g}..{values.max():g}. "
            "Are these logits, or percent?"
        )
    return values
