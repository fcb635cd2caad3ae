"""What `accord trust` measures: how far to trust a rule, its networks, and what was forgotten."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from accord._record import Record
from accord.analysis import (
    Calibration,
    Forgetting,
    NetworkHealth,
    RiskCoverage,
    calibration,
    choose_threshold,
    risk_coverage,
)
from accord.analysis._network_health import chance_error
from accord.analysis._trust._intervals import highest_share
from accord.errors import ChoiceError, PredictionError
from accord.rules import ABSTAINED, Prediction, Rule
from accord.rules._recommend import resolve_rule

DEFAULT: Final = "max-agreement"
RISK: Final = 0.05
CONFIDENCE: Final = 0.95
TRAINED_ON: Final = (
    "the networks were trained on these samples. They come to agree on them even while they "
    "memorise wrong labels, and the same score means less on other samples: use a record of "
    "samples that they were not trained on"
)
ORACLE: Final = (
    "is an oracle: the true labels that judge it here chose its epoch too. It looks better than it "
    "is, its risk is promised for no other sample, and without true labels nobody can use it"
)


@dataclass(frozen=True)
class Answers:
    """From which sureness on labels are given, and how many of them are wrong."""

    target: float | None  # the risk that was asked for; None if a threshold was
    threshold: float | None  # None: there is none, for a reason
    coverage: float = 0.0  # the share of samples that are answered
    risk: float | None = None  # the share of the answers that is wrong, where the truth is known
    bound: float | None = None  # the true risk exceeds this with a chance of 1 - confidence
    confidence: float = CONFIDENCE
    reason: str = ""  # why there is no threshold


@dataclass(frozen=True)
class Trust:
    """How far a rule's labels can be trusted, as far as the record tells."""

    rule: str
    prediction: Prediction
    by: Literal["margin", "score"]  # what thresholds are about
    sureness: NDArray[np.float64]  # (sample,), margin or score
    bins: Calibration  # samples by score; without truth its accuracies mean nothing
    accuracy: float | None  # where the truth is known; an abstention counts as wrong
    curve: RiskCoverage | None  # where the truth is known; of all samples
    answers: Answers
    members: tuple[NetworkHealth, ...]
    comparable: bool  # whether some two networks agree, so that others can be told from them
    forgetting: Forgetting
    rescued: int | None  # forgotten samples that the rule predicts right, if the truth is known
    notes: tuple[str, ...]

    @property
    def answered(self) -> NDArray[np.bool_]:  # (sample,)
        """Which samples are answered."""
        if self.answers.threshold is None:
            return np.zeros(len(self.sureness), bool)
        return np.asarray(_labelled(self.prediction) & (self.sureness >= self.answers.threshold))


def measure_trust(
    record: Record,
    rule: str = DEFAULT,
    *,
    risk: float = RISK,
    threshold: float | None = None,
    confidence: float = CONFIDENCE,
) -> Trust:
    """Measure how far a rule's labels can be trusted.

    Max agreement is as sure as its margin, the lead of the best class over the second; another
    rule as its own score. Without true labels the scores, the networks and what max
    agreement says was forgotten are told alone.

    Args:
        record: whose samples were, at best, not trained on.
        rule: its name, or "recommended".
        risk: the largest share of wrong answers to allow; a threshold is chosen that keeps it.
        threshold: answer from here on, instead.
        confidence: of the promise.

    Raises:
        ChoiceError: no rule has that name, or the risk does not lie between 0 and 1.
        PredictionError: the rule abstains on every sample.

    >>> import accord
    >>> found = measure_trust(accord.open("example://cifar10-sym40"), risk=0.02)
    >>> round(found.answers.coverage, 2), round(found.answers.threshold, 2)
    (0.6, 0.58)
    """
    check_risk(risk)
    chosen, why = resolve_rule(rule, record.reader)
    rule, prediction = chosen.name, chosen(record.reader).with_note(why)
    seen = _see(record, rule, prediction)
    by: Literal["margin", "score"] = "margin" if rule == DEFAULT else "score"
    truth = record.truth
    forgotten = record.forgetting(DEFAULT if truth is None else None)
    gone, found = forgotten.forgotten, record.network_health()
    return Trust(
        rule=rule,
        prediction=prediction,
        by=by,
        sureness=seen.sureness,
        bins=calibration(prediction.scores[seen.labelled], seen.right[seen.labelled]),
        accuracy=float(seen.right.mean()) if seen.known else None,
        curve=seen.curve() if seen.known else None,
        answers=_keeping(seen, risk, confidence)
        if threshold is None
        else _from(seen, threshold, confidence),
        members=found,
        comparable=max(one.agreement for one in found) > chance_error(record.reader),
        forgetting=forgotten,
        rescued=int(seen.right[gone].sum()) if seen.known else None,
        notes=_notes(record, chosen, prediction),
    )


def check_risk(risk: float) -> None:
    """Refuse a risk that nobody can mean."""
    if not 0 < risk < 1:
        raise ChoiceError(f"a risk must lie between 0 and 1, as 0.05 does; got {risk:g}")


@dataclass(frozen=True)
class _Seen:
    """Each sample: how sure its label is, whether it has one, whether that is right."""

    sureness: NDArray[np.float64]
    labelled: NDArray[np.bool_]
    right: NDArray[np.bool_]  # all wrong where the truth is not known
    known: bool

    def curve(self) -> RiskCoverage:
        """Return the risk by coverage of all samples, those without a label among them."""
        found = risk_coverage(self.sureness[self.labelled], self.right[self.labelled])
        share = float(self.labelled.mean())
        return RiskCoverage(found.thresholds, found.coverage * share, found.risk)


def _see(record: Record, rule: str, prediction: Prediction) -> _Seen:
    labelled, truth = _labelled(prediction), record.truth
    if not labelled.any():
        raise PredictionError(f"{record.path}: {rule} abstains on every sample: nothing to trust")
    sureness = record.margin() if rule == DEFAULT else prediction.scores
    right = np.zeros(len(labelled), bool) if truth is None else prediction.labels == truth
    return _Seen(sureness, labelled, right, truth is not None)


def _keeping(seen: _Seen, risk: float, confidence: float) -> Answers:
    """Choose a threshold that keeps a risk, or say why there is none."""
    if not seen.known:
        return Answers(risk, None, reason="a threshold for a risk needs true labels")
    labelled = seen.labelled
    try:
        found = choose_threshold(
            seen.sureness[labelled], seen.right[labelled], risk=risk, confidence=confidence
        )
    except PredictionError as error:
        return Answers(risk, None, confidence=confidence, reason=str(error))
    coverage = found.coverage * float(labelled.mean())
    return Answers(risk, found.threshold, coverage, found.risk, found.bound, confidence)


def _from(seen: _Seen, threshold: float, confidence: float) -> Answers:
    """Tell what a threshold that was chosen elsewhere does here."""
    answered = seen.labelled & (seen.sureness >= threshold)
    count, coverage = int(answered.sum()), float(answered.mean())
    if not seen.known or not count:
        return Answers(None, threshold, coverage, confidence=confidence)
    wrong = int((~seen.right[answered]).sum())
    bound = highest_share(wrong, count, confidence=confidence)
    return Answers(None, threshold, coverage, wrong / count, bound, confidence)


def _labelled(prediction: Prediction) -> NDArray[np.bool_]:
    return np.asarray(prediction.labels != ABSTAINED)


def _notes(record: Record, rule: Rule, prediction: Prediction) -> tuple[str, ...]:
    said = (
        TRAINED_ON if record.reader.sample_info.trained_on else "",
        f"{rule.name} {ORACLE}" if rule.oracle else "",
        prediction.note,
    )
    return tuple(note for note in said if note)
