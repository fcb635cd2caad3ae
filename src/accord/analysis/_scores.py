"""Metrics for predictions on records with true or given labels."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from accord.analysis._record_notes import record_notes
from accord.analysis._trust._confidence_intervals import check_confidence
from accord.analysis._trust._noisy_accuracy import Estimate
from accord.analysis._trust._trust import TRAINED_ON
from accord.analysis._trust._unknown_noise import fit_agreement_model
from accord.errors import PredictionError, ProbabilitiesMissing
from accord.rules import ABSTAINED, Context, Prediction, Rule, all_rules, recommend, resolve_rule
from accord.rules._epoch_weights import count_pairs
from accord.rules._overfitting import DEFAULTS, detect_overfitting
from accord.rules.majority import majority_by_epoch
from accord.store import RecordReader

HALVINGS: Final = 60  # of the range that holds the end of an interval
REGRET: Final = 0.01  # of accuracy, by which another rule must be better to be named
WHY_GIVEN: Final = (
    "Either it is worse, or networks repeat wrong labels, as they do on samples that they were "
    'trained on: record these with split="train"'
)


@dataclass(frozen=True)
class Accuracy:
    """Accuracy metrics with abstentions counted as wrong."""

    accuracy: float
    balanced_accuracy: float  # the mean recall of the classes that occur
    recall: tuple[float, ...]  # by class, nan for absent classes
    coverage: float  # the share of samples with a label
    selective_accuracy: float  # among those, nan without predictions


def measure(predicted: NDArray[Any], truth: NDArray[Any], *, classes: int) -> Accuracy:
    """Compute the accuracy of predicted labels.

    Raises:
        PredictionError: the numbers of labels and true classes differ, there is no sample, or a
            true class is out of range.

    >>> measure(np.array([0, 1, 1, -1]), np.array([0, 0, 1, 1]), classes=2).accuracy
    0.5
    """
    predicted, truth = np.asarray(predicted), np.asarray(truth)
    if truth.ndim != 1 or not len(truth) or predicted.shape != truth.shape:
        raise PredictionError(
            "expected one label and one true class per sample, for at least one sample; got "
            f"shapes {predicted.shape} and {truth.shape}"
        )
    if truth.min() < 0 or truth.max() >= classes:
        raise PredictionError(
            f"true classes must lie in 0..{classes - 1} for {classes} classes; got "
            f"{truth.min()}..{truth.max()}. Leave out samples whose class is not known"
        )
    hits = np.bincount(truth[predicted == truth], minlength=classes)
    covered = int((predicted != ABSTAINED).sum())
    return from_hits(hits, np.bincount(truth, minlength=classes), covered=covered)


def from_hits(
    hits: NDArray[np.intp], sizes: NDArray[np.intp], *, covered: int | None = None
) -> Accuracy:
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


@dataclass(frozen=True)
class Changes:
    """Comparison of two rules on the same samples."""

    turned_right: int  # wrong with the first rule, right with the second
    turned_wrong: int  # right with the first rule, wrong with the second
    samples: int
    p_value: float  # of McNemar's test
    low: float  # confidence interval of the difference in accuracy, second minus first
    high: float
    confidence: float

    @property
    def difference(self) -> float:
        """The second rule's accuracy minus the first's."""
        return (self.turned_right - self.turned_wrong) / self.samples

    @property
    def significant(self) -> bool:
        """Whether the interval excludes 0, as it is shown: with three decimals."""
        return not round(self.low, 3) <= 0 <= round(self.high, 3)


def changes(
    reader: RecordReader, first: str | Rule, second: str | Rule, *, confidence: float = 0.95
) -> Changes:
    """Compare the predictions of two rules on a record."""
    context = Context.of(reader)
    before, after = (
        context.once(resolve_rule(rule, context)[0]).labels for rule in (first, second)
    )
    return paired_changes(before, after, context.reference_labels(), confidence=confidence)


def paired_changes(
    first: NDArray[Any], second: NDArray[Any], truth: NDArray[Any], *, confidence: float = 0.95
) -> Changes:
    """Compare two predictions for the same samples.

    The p-value is McNemar's. The interval is Tango's, which holds the differences that the same
    test does not reject: it excludes 0 where the p-value is below 1 - confidence.

    Raises:
        PredictionError: the numbers of labels differ, or there is no sample.

    >>> truth = np.zeros(10, int)
    >>> worse, better = np.array([1] * 6 + [0] * 4), truth
    >>> paired_changes(worse, better, truth).turned_right
    6
    """
    critical = NormalDist().inv_cdf((1 + check_confidence(confidence)) / 2)
    first, second, truth = np.asarray(first), np.asarray(second), np.asarray(truth)
    if truth.ndim != 1 or not len(truth) or not first.shape == second.shape == truth.shape:
        raise PredictionError(
            "expected two labels and a true one per sample, for at least one sample; got shapes "
            f"{first.shape}, {second.shape} and {truth.shape}"
        )
    was_right, is_right = first == truth, second == truth
    gained = int((~was_right & is_right).sum())
    lost = int((was_right & ~is_right).sum())
    low = -_highest_difference(lost, gained, len(truth), critical)
    high = _highest_difference(gained, lost, len(truth), critical)
    return Changes(gained, lost, len(truth), mcnemar(gained, lost), low, high, confidence)


def mcnemar(gained: int, lost: int) -> float:
    """Compute the two-sided p-value of McNemar's test.

    >>> round(mcnemar(6, 0), 4)
    0.0143
    """
    return math.erfc(abs(gained - lost) / math.sqrt(2 * max(1, gained + lost)))


def _highest_difference(gained: int, lost: int, samples: int, critical: float) -> float:
    """Find the largest difference that the score test does not reject."""
    low, high = (gained - lost) / samples, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        # The likeliest share of lost samples, if the difference is `middle`.
        half = (gained + lost - (2 * samples - gained + lost) * middle) / 2
        root = math.sqrt(max(0.0, half**2 + 2 * samples * lost * middle * (1 - middle)))
        variance = samples * max(0.0, (half + root) / samples + middle * (1 - middle))
        if (samples * middle - gained + lost) ** 2 <= critical**2 * variance:
            low = middle
        else:
            high = middle
    return high


@dataclass(frozen=True)
class Score:
    """Accuracy of a rule, or its agreement with labels that are only given."""

    rule: str
    accuracy: float
    balanced_accuracy: float
    reference: Literal["truth", "given"] = "truth"  # labels that predictions are compared with
    oracle: bool = False
    coverage: float = 1.0
    selective_accuracy: float | None = None  # only if some samples, not all, got a label
    per_network: tuple[float, ...] | None = None  # of a rule that reads one network
    epoch: int | None = None  # of a rule that chooses one, counted among the epochs read
    progress: float | None = None  # the true epoch of that one
    corrected: Estimate | None = None  # accuracy estimated from labels that are only given
    note: str = ""  # of the prediction


@dataclass(frozen=True)
class Scores:
    """Accuracy of several rules on a record."""

    scores: tuple[Score, ...]  # weakest evidence first
    recommended: str | None  # recommended rule, if requested
    left_out: Mapping[str, str] = field(default_factory=dict)  # rules not scored, with the reason
    gain: Changes | None = None  # from the majority vote to the recommended rule, if it is another
    notes: tuple[str, ...] = ()  # what limits these numbers


def score(reader: RecordReader, rules: Sequence[str | Rule] | None = None) -> list[Score]:
    """Compute the accuracy of rules on a record.

    By default, all rules that the record allows are scored, weakest evidence first.
    Rules whose tables would be too large are left out; see `compare_rules`.
    "recommended" stands for the rule that `recommend` returns, and is scored under its name.

    Raises:
        TruthMissing: the record has no true labels.
        ChoiceError: no such rule.
        ProbabilitiesMissing: a rule named needs probabilities that were not recorded.
    """
    return list(compare_rules(reader, rules, with_recommended=False).scores)


def compare_rules(
    reader: RecordReader,
    rules: Sequence[str | Rule] | None = None,
    *,
    with_recommended: bool = True,
) -> Scores:
    """Compute the accuracy of rules and recommend one.

    >>> from accord.store import ArrayReader, SampleInfo
    >>> labels, truth = np.zeros((5, 4, 300), np.uint16), np.zeros(300, int)
    >>> reader = ArrayReader(labels, SampleInfo(300, 6000, truth=truth))
    >>> compare_rules(reader).left_out["dawid-skene"]
    'its 6000 × 6000 confusion matrices would be too large'
    """
    context = Context.of(reader)
    truth = context.reference_labels()
    chosen, left_out = _choose(context, rules)
    if (with_recommended or rules is None) and not context.has_missing:
        # Shared by several rules: computed here, where the stack is shallow.
        context.load_labels()
        if context.networks > 1 and context.keeps_labels:
            context.once(majority_by_epoch)
            context.once(count_pairs)
            context.once(detect_overfitting, *DEFAULTS)
    scores = []
    for rule in chosen:
        views = [context]
        if rule.by_network:
            views = [context.select(networks=[number]) for number in context.numbers]
        predictions = []
        for view in views:
            predictions.append(view.once(rule))  # noqa: PERF401 - a comprehension is a frame more
        scores.append(_to_score(rule, predictions, context, truth))
    scores, why_not = _with_estimates(scores, context)
    recommended = context.once(recommend).rule if with_recommended else None
    notes = record_notes(context) if with_recommended else ()  # here, where the stack is shallow
    found = Scores(tuple(scores), recommended, left_out)
    notes = *_notes(found, context), *notes, *why_not
    return replace(found, gain=_gain(found, context), notes=notes)


def _with_estimates(scores: list[Score], context: Context) -> tuple[list[Score], list[str]]:
    """Add estimates of the accuracy where the labels are only given."""
    if context.sample_info.reference == "truth":
        return scores, []
    try:
        model = context.once(fit_agreement_model)
    except PredictionError as error:
        return scores, [f"the accuracy cannot be estimated from the given labels: {error}"]
    estimates = [model.correct(one.accuracy, coverage=one.coverage) for one in scores]
    return [
        replace(one, corrected=estimate) for one, estimate in zip(scores, estimates, strict=True)
    ], []


def _gain(found: Scores, context: Context) -> Changes | None:
    chosen, names = found.recommended, {one.rule for one in found.scores}
    if context.trained_on or chosen is None or not {chosen, "majority"} <= names:
        return None
    return changes(context, "majority", chosen)


def _notes(found: Scores, context: Context) -> Iterator[str]:
    if context.trained_on:
        yield TRAINED_ON
    able = [one for one in found.scores if not one.oracle and one.per_network is None]
    chosen = next((one for one in able if one.rule == found.recommended), None)
    best = max(able, key=lambda one: one.accuracy, default=None)
    given = context.sample_info.reference == "given"
    if chosen is None or best is None or (given and context.trained_on):
        return
    more = changes(context, chosen.rule, best.rule)
    if more.low <= 0 or more.difference < REGRET:
        return
    equal = "agrees with {:.1f} % of them" if given else "is right on {:.1f} % of these samples"
    text = (
        f"the {'given' if given else 'true'} labels contradict the recommendation, which was made "
        f"from the votes alone: {best.rule} {equal.format(100 * best.accuracy)}, the recommended "
        f"{chosen.rule} {'with' if given else 'on'} {100 * chosen.accuracy:.1f} %"
    )
    yield f"{text}. {WHY_GIVEN}" if given else text


def _choose(
    context: Context, names: Sequence[str | Rule] | None
) -> tuple[list[Rule], dict[str, str]]:
    if names is None:
        allowed = [rule for rule in all_rules().values() if rule.allowed(context)]
        reasons = {rule.name: rule.left_out(context) for rule in allowed}
        able = [rule for rule in allowed if not reasons[rule.name]]
        able.sort(key=lambda rule: (rule.oracle, rule.reads == "all", rule.symmetric, rule.name))
        return able, {name: reason for name, reason in reasons.items() if reason}
    chosen = [resolve_rule(name, context)[0] for name in names]
    for rule in chosen:
        if not rule.allowed(context):
            raise ProbabilitiesMissing(
                f"{context.name}: {rule.name} needs probabilities, and only labels were recorded. "
                "Record them with Recorder(…, probabilities=True)"
            )
    return chosen, {}


def _to_score(
    rule: Rule, predictions: Sequence[Prediction], context: Context, truth: NDArray[Any]
) -> Score:
    measured = [measure(one.labels, truth, classes=context.classes) for one in predictions]
    found, predicted = measured[0], predictions[0]
    abstained = 0 < found.coverage < 1  # where nothing got a label, it would be nan
    one = Score(
        rule=rule.name,
        accuracy=found.accuracy,
        balanced_accuracy=found.balanced_accuracy,
        reference=context.sample_info.reference or "truth",
        oracle=rule.oracle,
        coverage=found.coverage,
        selective_accuracy=found.selective_accuracy if abstained else None,
        note=predicted.note,
    )
    if rule.by_network:
        # Not sum, which rounds differently before Python 3.12: the digits in JSON would change.
        return replace(
            one,
            accuracy=math.fsum(each.accuracy for each in measured) / len(measured),
            balanced_accuracy=math.fsum(each.balanced_accuracy for each in measured)
            / len(measured),
            per_network=tuple(each.accuracy for each in measured),
        )
    if predicted.epoch is not None:
        progress = context.networks_info()[0].progress[predicted.epoch]
        return replace(one, epoch=predicted.epoch, progress=progress)
    return one
