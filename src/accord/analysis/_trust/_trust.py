"""Selective prediction with risk, coverage and thresholds.

In selective prediction a rule answers only where it is certain enough: where a score reaches a
threshold. `risk_coverage` measures every threshold, `choose_threshold` guarantees one, and
`measure_trust` combines both with calibration, network health and forgetting for `accord trust`.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from accord.analysis._dynamics import Forgetting, forgetting, margin_of
from accord.analysis._network_health import NetworkHealth, chance_error, network_health
from accord.analysis._record_notes import record_notes
from accord.analysis._trust._calibration import Calibration, calibration, check_paired
from accord.analysis._trust._confidence_intervals import check_confidence, highest_share
from accord.errors import ChoiceError, PredictionError, counted
from accord.rules import ABSTAINED, Context, Prediction, Rule, resolve_rule
from accord.store import RecordReader

CHOICES: Final = 20  # coverages among which a threshold is chosen
DEFAULT_RULE: Final = "max-agreement"
RISK: Final = 0.05
CONFIDENCE: Final = 0.95
TRAINED_ON: Final = (
    "the networks were trained on these samples. They come to agree on them even while they "
    "memorise wrong labels, and the same score means less on other samples: use a record of "
    "samples that they were not trained on"
)
NO_THRESHOLD: Final = (
    "no threshold: the networks were trained on these samples, and it would keep no risk on others"
)
ORACLE: Final = (
    "is an oracle: it chose its epoch by the true labels that score it here. Its accuracy is too "
    "optimistic, its risk is guaranteed for no other sample, and it cannot be used without true "
    "labels"
)


@dataclass(frozen=True)
class RiskCoverage:
    """Risk-coverage curve of a prediction."""

    thresholds: NDArray[np.float64]  # (threshold,), distinct scores in decreasing order
    coverage: NDArray[np.float64]  # (threshold,), the share of samples that are answered
    risk: NDArray[np.float64]  # (threshold,)

    @property
    def area(self) -> float:
        """Area under the risk-coverage curve (AURC)."""
        steps = np.diff(self.coverage, prepend=0.0)
        return float(self.risk @ steps)


@dataclass(frozen=True)
class Threshold:
    """Score threshold with a guaranteed risk."""

    threshold: float
    coverage: float  # on the labelled samples
    risk: float  # on the labelled samples
    bound: float  # the true risk exceeds this with a probability of at most 1 - confidence
    confidence: float


def risk_coverage(scores: NDArray[Any], right: NDArray[np.bool_]) -> RiskCoverage:
    """Compute the risk-coverage curve of a prediction.

    Samples of equal score are answered together.

    >>> curve = risk_coverage(np.array([0.9, 0.8, 0.7]), np.array([True, False, True]))
    >>> curve.coverage.round(2), curve.risk.round(2)
    (array([0.33, 0.67, 1.  ]), array([0.  , 0.5 , 0.33]))
    """
    values, wrong = _checked(scores, right)
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    # Compared, not subtracted: infinities differ by nan.
    ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))
    answered = ends + 1
    errors = np.cumsum(wrong[order])[ends]
    return RiskCoverage(falling[ends], answered / len(values), errors / answered)


def choose_threshold(
    scores: NDArray[Any],
    right: NDArray[np.bool_],
    *,
    risk: float,
    confidence: float = CONFIDENCE,
    choices: int = CHOICES,
) -> Threshold:
    """Find the lowest threshold with a risk of at most `risk`.

    Tries `choices` equally spaced coverages and takes the largest whose risk is below the target
    by Clopper and Pearson's bound. Each bound holds with confidence
    1 - (1 - confidence) / choices, so that all hold together (Bonferroni). The guarantee is for
    samples drawn at random from the same source as the labelled ones.

    Raises:
        PredictionError: no threshold can keep the risk with so few samples or so many errors,
            or an option is out of range.

    >>> scores = np.linspace(0, 1, 1000)
    >>> chosen = choose_threshold(scores, scores > 0.3, risk=0.05)
    >>> round(chosen.coverage, 2), chosen.bound <= 0.05
    (0.7, True)
    """
    values, wrong = _checked(scores, right)
    if not 0 < risk < 1:
        raise PredictionError(f"risk must lie between 0 and 1, such as 0.02; got {risk}")
    if choices < 1:
        raise PredictionError(f"choices, of coverage, must be at least 1; got {choices}")
    each = 1 - (1 - check_confidence(confidence)) / choices
    curve = risk_coverage(values, ~wrong)
    samples = len(values)
    for wanted in range(choices, 0, -1):
        # The highest threshold with at least this coverage.
        at = int(np.searchsorted(curve.coverage, wanted / choices - 1e-12))
        answered = round(curve.coverage[at] * samples)
        errors = round(curve.risk[at] * answered)
        bound = highest_share(errors, answered, confidence=each)
        if bound <= risk:
            threshold = float(curve.thresholds[at])
            return Threshold(threshold, answered / samples, errors / answered, bound, confidence)
    labelled = counted(samples, "labelled sample")
    raise PredictionError(
        f"no threshold keeps the risk below {risk:g} with confidence {confidence:g} on "
        f"{labelled}. Label more, or allow more risk"
    )


def abstain_below(prediction: Prediction, scores: NDArray[Any], threshold: float) -> Prediction:
    """Replace labels with scores below the threshold by -1.

    Raises:
        PredictionError: there is not one score for each label, or one is nan.

    >>> sure = Prediction(np.array([3, 1]), np.array([0.9, 0.4]))
    >>> abstain_below(sure, sure.scores, 0.5).labels
    array([ 3, -1])
    """
    values = np.asarray(scores, np.float64)
    if values.shape != prediction.labels.shape or np.isnan(values).any() or np.isnan(threshold):
        raise PredictionError(
            f"expected a threshold and one score for each of the {len(prediction)} labels, none "
            f"of them nan; got shape {values.shape}"
        )
    labels = np.where(values >= threshold, prediction.labels, ABSTAINED)
    return replace(prediction, labels=labels)


def _checked(
    scores: NDArray[Any], right: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    values, wrong = np.asarray(scores, np.float64), ~np.asarray(right, bool)
    check_paired(values, wrong)
    if np.isnan(values).any():
        raise PredictionError("a score is nan, which cannot be compared with a threshold")
    return values, wrong


@dataclass(frozen=True)
class Answers:
    """Coverage and risk of the samples above a threshold."""

    target: float | None  # target risk, None for a given threshold
    threshold: float | None  # None if no threshold keeps the risk
    coverage: float = 0.0  # the share of samples that are answered
    risk: float | None = None  # the share of wrong answers, where the truth is known
    bound: float | None = None  # the true risk exceeds this with probability 1 - confidence
    confidence: float = CONFIDENCE
    reason: str = ""  # why there is no threshold


@dataclass(frozen=True)
class Trust:
    """Reliability of the labels of a rule."""

    rule: str
    prediction: Prediction
    by: Literal["margin", "score"]  # what the threshold applies to
    certainty: NDArray[np.float64]  # (sample,), that margin or score
    bins: Calibration  # accuracies are valid only with true labels
    accuracy: float | None  # if the truth is known, abstentions count as wrong
    curve: RiskCoverage | None  # of all samples, if the truth is known
    answers: Answers
    networks: tuple[NetworkHealth, ...]
    comparable: bool  # whether any two networks agree beyond chance
    forgetting: Forgetting
    rescued: int | None  # forgotten samples that the rule predicts right, if the truth is known
    notes: tuple[str, ...]

    @property
    def answered(self) -> NDArray[np.bool_]:  # (sample,)
        """Mask of the answered samples."""
        if self.answers.threshold is None:
            return np.zeros(len(self.certainty), bool)
        labelled = self.prediction.labels != ABSTAINED
        return np.asarray(labelled & (self.certainty >= self.answers.threshold))


def measure_trust(
    reader: RecordReader,
    rule: str = DEFAULT_RULE,
    *,
    risk: float = RISK,
    threshold: float | None = None,
    confidence: float = CONFIDENCE,
) -> Trust:
    """Measure the reliability of the labels of a rule.

    The certainty of max agreement is its margin, the lead of the best class over the second; that
    of another rule is its score. Without true labels, only the scores, the networks and what max
    agreement shows to be forgotten are measured.

    Args:
        reader: of a record, preferably of samples that were not trained on.
        rule: its name, or "recommended".
        risk: the largest share of wrong answers; a threshold is chosen that keeps it.
        threshold: answer from here on, instead.
        confidence: of the guarantee.

    Raises:
        ChoiceError: no rule has that name, or the risk does not lie between 0 and 1.
        PredictionError: the rule abstains on every sample.

    >>> import accord
    >>> found = measure_trust(accord.open("example://cifar10-sym40").reader, risk=0.02)
    >>> round(found.answers.coverage, 2), round(found.answers.threshold, 2)
    (0.6, 0.58)
    """
    reader.check_complete("trust")
    if not 0 < risk < 1:
        raise ChoiceError(f"a risk must lie between 0 and 1, such as 0.05; got {risk:g}")
    context = Context.of(reader)
    chosen, why = resolve_rule(rule, context)
    prediction = chosen(context).with_note(why)
    samples = _judge(context, chosen.name, prediction)
    truth = context.sample_info.truth
    forgotten = forgetting(context, judge=DEFAULT_RULE if truth is None else None)
    networks = context.once(network_health)
    return Trust(
        rule=chosen.name,
        prediction=prediction,
        by="margin" if chosen.name == DEFAULT_RULE else "score",
        certainty=samples.certainty,
        bins=calibration(prediction.scores[samples.labelled], samples.right[samples.labelled]),
        accuracy=None if truth is None else float(samples.right.mean()),
        curve=None if truth is None else samples.curve(),
        answers=_answers_at_risk(samples, risk, confidence)
        if threshold is None
        else _answers_from(samples, threshold, confidence),
        networks=networks,
        comparable=max(one.agreement for one in networks) > chance_error(context),
        forgetting=forgotten,
        rescued=None if truth is None else int(samples.right[forgotten.forgotten].sum()),
        notes=_notes(context, chosen, prediction),
    )


@dataclass(frozen=True)
class _Judged:
    """Certainty and correctness of each label."""

    certainty: NDArray[np.float64]
    labelled: NDArray[np.bool_]
    right: NDArray[np.bool_]  # all False where the truth is not known
    known: bool
    trained_on: bool

    def curve(self) -> RiskCoverage:
        found = risk_coverage(self.certainty[self.labelled], self.right[self.labelled])
        share = float(self.labelled.mean())
        return RiskCoverage(found.thresholds, found.coverage * share, found.risk)


def _judge(context: Context, rule: str, prediction: Prediction) -> _Judged:
    labelled, truth = np.asarray(prediction.labels != ABSTAINED), context.sample_info.truth
    if not labelled.any():
        raise PredictionError(f"{context.name}: {rule} abstains on every sample: nothing to trust")
    certainty = context.once(margin_of) if rule == DEFAULT_RULE else prediction.scores
    right = np.zeros(len(labelled), bool) if truth is None else prediction.labels == truth
    return _Judged(certainty, labelled, right, truth is not None, context.trained_on)


def _answers_at_risk(samples: _Judged, risk: float, confidence: float) -> Answers:
    if not samples.known:
        return Answers(risk, None, reason="a threshold for a risk requires true labels")
    if samples.trained_on:
        return Answers(risk, None, reason=NO_THRESHOLD)
    labelled = samples.labelled
    try:
        found = choose_threshold(
            samples.certainty[labelled], samples.right[labelled], risk=risk, confidence=confidence
        )
    except PredictionError as error:
        return Answers(risk, None, confidence=confidence, reason=str(error))
    coverage = found.coverage * float(labelled.mean())
    return Answers(risk, found.threshold, coverage, found.risk, found.bound, confidence)


def _answers_from(samples: _Judged, threshold: float, confidence: float) -> Answers:
    answered = samples.labelled & (samples.certainty >= threshold)
    count, coverage = int(answered.sum()), float(answered.mean())
    if not samples.known or not count or samples.trained_on:
        return Answers(None, threshold, coverage, confidence=confidence)
    wrong = int((~samples.right[answered]).sum())
    bound = highest_share(wrong, count, confidence=confidence)
    return Answers(None, threshold, coverage, wrong / count, bound, confidence)


def _notes(context: Context, rule: Rule, prediction: Prediction) -> tuple[str, ...]:
    trained_on = TRAINED_ON if context.trained_on else ""
    oracle = f"{rule.name} {ORACLE}" if rule.oracle else ""
    notes = trained_on, oracle, prediction.note, *record_notes(context)
    return tuple(note for note in notes if note)
