"""Selective prediction: answer only where the score is high, and know the risk of it."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._trust._intervals import check_confidence, highest_share
from accord.errors import PredictionError, counted
from accord.rules import ABSTAINED, Prediction

CHOICES: Final = 20  # of coverage among which a threshold is chosen


@dataclass(frozen=True)
class RiskCoverage:
    """The share of wrong labels among the samples that score at least so much."""

    thresholds: NDArray[np.float64]  # (threshold,), falling: every score that occurs
    coverage: NDArray[np.float64]  # (threshold,), the share of samples that are answered
    risk: NDArray[np.float64]  # (threshold,)

    @property
    def area(self) -> float:
        """The area under the curve (AURC): the mean risk over samples, each at its own score."""
        steps = np.diff(self.coverage, prepend=0.0)
        return float(self.risk @ steps)


@dataclass(frozen=True)
class Threshold:
    """A score from which on to answer, and what was promised of it."""

    threshold: float
    coverage: float  # on the labelled samples
    risk: float  # on the labelled samples
    bound: float  # the true risk exceeds this with a chance of at most 1 - confidence
    confidence: float


def risk_coverage(scores: NDArray[Any], right: NDArray[np.bool_]) -> RiskCoverage:
    """Compute the risk for every threshold; samples of equal score are answered together.

    >>> curve = risk_coverage(np.array([0.9, 0.8, 0.7]), np.array([True, False, True]))
    >>> curve.coverage.round(2), curve.risk.round(2)
    (array([0.33, 0.67, 1.  ]), array([0.  , 0.5 , 0.33]))
    """
    values, wrong = _checked(scores, right)
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))  # infinities differ by nan
    answered = ends + 1
    errors = np.cumsum(wrong[order])[ends]
    return RiskCoverage(falling[ends], answered / len(values), errors / answered)


def choose_threshold(
    scores: NDArray[Any],
    right: NDArray[np.bool_],
    *,
    risk: float,
    confidence: float = 0.95,
    choices: int = CHOICES,
) -> Threshold:
    """Choose the lowest score from which on at most a share `risk` of labels is wrong.

    Of `choices` equally spaced coverages, fixed beforehand, the largest whose risk is
    below the target by Clopper and Pearson's bound. Each bound holds with confidence
    1 - (1 - confidence) / choices, so that all hold together (Bonferroni). The promise is for
    samples like the labelled ones: drawn from the same source, by chance.

    Raises:
        PredictionError: no threshold can keep the promise with so few samples or so many errors,
            or an option is out of range.

    >>> scores = np.linspace(0, 1, 1000)
    >>> chosen = choose_threshold(scores, scores > 0.3, risk=0.05)
    >>> round(chosen.coverage, 2), chosen.bound <= 0.05
    (0.7, True)
    """
    values, wrong = _checked(scores, right)
    if not 0 < risk < 1:
        raise PredictionError(f"risk must lie between 0 and 1, as 0.02 does; got {risk}")
    if choices < 1:
        raise PredictionError(f"choices, of coverage, must be at least 1; got {choices}")
    each = 1 - (1 - check_confidence(confidence)) / choices
    curve = risk_coverage(values, ~wrong)
    samples = len(values)
    for wanted in range(choices, 0, -1):
        # The first threshold that answers at least so many.
        at = int(np.searchsorted(curve.coverage, wanted / choices - 1e-12))
        answered = round(curve.coverage[at] * samples)
        errors = round(curve.risk[at] * answered)
        bound = highest_share(errors, answered, confidence=each)
        if bound <= risk:
            return Threshold(
                float(curve.thresholds[at]),
                answered / samples,
                errors / answered,
                bound,
                confidence,
            )
    labelled = counted(samples, "labelled sample")
    raise PredictionError(
        f"no threshold keeps the risk below {risk:g} with confidence {confidence:g} on "
        f"{labelled}. Label more, or allow more risk"
    )


def abstain_below(prediction: Prediction, scores: NDArray[Any], threshold: float) -> Prediction:
    """Return a prediction with -1 wherever the score is below the threshold.

    Raises:
        PredictionError: there is not one score for each label, or one is nan.

    >>> sure = Prediction(np.array([3, 1]), np.array([0.9, 0.4]))
    >>> abstain_below(sure, sure.scores, 0.5).labels
    array([ 3, -1])
    """
    values = np.asarray(scores, np.float64)
    if values.shape != prediction.labels.shape or np.isnan(values).any() or np.isnan(threshold):
        raise PredictionError(
            f"one score for each of the {len(prediction)} labels and a threshold are wanted, none "
            f"of them nan; got shape {values.shape}"
        )
    labels = np.where(values >= threshold, prediction.labels, ABSTAINED)
    return replace(prediction, labels=labels)


def _checked(
    scores: NDArray[Any], right: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    values, wrong = np.asarray(scores, np.float64), ~np.asarray(right, bool)
    if values.shape != wrong.shape or values.ndim != 1 or not len(values):
        raise PredictionError(
            "one score and one right-or-wrong per sample are wanted, for at least one labelled "
            f"sample; got shapes {values.shape} and {wrong.shape}"
        )
    if np.isnan(values).any():
        raise PredictionError("a score is nan, which is neither high nor low")
    return values, wrong
