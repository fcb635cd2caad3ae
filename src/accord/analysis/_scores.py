"""Score the rules that a record allows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError, ProbabilitiesMissing
from accord.rules import ABSTAINED, Rule, all_rules, find_rule
from accord.rules._recommend import resolve_rule
from accord.rules.oracle_best_epoch import OracleBestEpoch
from accord.rules.single import Single
from accord.store import RecordReader


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


LARGE_BITS: Final = 512  # half of what a double's exponent holds
LARGE: Final = 2.0**LARGE_BITS


@dataclass(frozen=True)
class Changes:
    """Two rules on the same samples, pair by pair."""

    turned_right: int  # wrong with the first rule, right with the second
    turned_wrong: int  # right with the first rule, wrong with the second
    samples: int
    p_value: float  # exact McNemar test: chance of so uneven a split if both were equally good
    low: float  # confidence interval of the difference in accuracy, second minus first
    high: float
    confidence: float

    @property
    def difference(self) -> float:
        """The second rule's accuracy minus the first's."""
        return (self.turned_right - self.turned_wrong) / self.samples


def changes(
    reader: RecordReader, first: str | Rule, second: str | Rule, *, confidence: float = 0.95
) -> Changes:
    """Compare two rules on one record, sample by sample; `single` is the first network."""
    before, after = (find_rule(rule)(reader).labels for rule in (first, second))
    return paired_changes(before, after, reader.truth(), confidence=confidence)


def paired_changes(
    first: NDArray[Any], second: NDArray[Any], truth: NDArray[Any], *, confidence: float = 0.95
) -> Changes:
    """Compare two sets of labels for the same samples.

    The interval is Agresti and Min's: half an observation is added to each of the four cells
    before the normal approximation, which keeps its promise for small counts too.

    Raises:
        PredictionError: there is not one label of each for every sample, or no sample.

    >>> truth = np.zeros(10, int)
    >>> worse, better = np.array([1] * 6 + [0] * 4), truth
    >>> paired_changes(worse, better, truth).turned_right
    6
    """
    if not 0 < confidence < 1:
        raise PredictionError(f"confidence must lie between 0 and 1; got {confidence}")
    first, second, truth = np.asarray(first), np.asarray(second), np.asarray(truth)
    if truth.ndim != 1 or not len(truth) or not first.shape == second.shape == truth.shape:
        raise PredictionError(
            "two labels and a true one per sample are wanted, for at least one sample; got shapes "
            f"{first.shape}, {second.shape} and {truth.shape}"
        )
    was_right, is_right = first == truth, second == truth
    gained = int((~was_right & is_right).sum())
    lost = int((was_right & ~is_right).sum())
    low, high = _interval(gained, lost, len(truth), confidence)
    p_value = mcnemar(gained, lost)
    return Changes(gained, lost, len(truth), p_value, low, high, confidence)


def mcnemar(gained: int, lost: int) -> float:
    """Return the exact two-sided p-value of McNemar's test.

    >>> mcnemar(6, 0)
    0.03125
    """
    pairs = gained + lost
    ways = tail = 1.0  # to choose none of the pairs, times 2 ** (halvings - pairs)
    halvings = pairs
    for chosen in range(min(gained, lost)):
        ways = ways * (pairs - chosen) / (chosen + 1)  # not rounded below 2**53
        tail += ways
        if tail > LARGE:  # it would overflow; by a power of 2, nothing is rounded
            ways, tail, halvings = ways / LARGE, tail / LARGE, halvings - LARGE_BITS
    return min(1.0, math.ldexp(2 * tail, -halvings))


def _interval(gained: int, lost: int, samples: int, confidence: float) -> tuple[float, float]:
    b, c, n = gained + 0.5, lost + 0.5, samples + 2
    half = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(b + c - (b - c) ** 2 / n) / n
    middle = (b - c) / n
    return max(-1.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Score:
    """How well one rule did."""

    rule: str
    accuracy: float
    balanced_accuracy: float
    oracle: bool = False
    coverage: float = 1.0
    selective_accuracy: float | None = None  # only if some samples, not all, got a label
    per_network: tuple[float, ...] | None = None  # of the rule that reads one network
    epoch: int | None = None  # of the rule that chooses one, counted among the epochs read
    progress: float | None = None  # the true epoch of that one
    note: str = ""  # what the rule has to say of its prediction


def score(reader: RecordReader, rules: Sequence[str | Rule] | None = None) -> list[Score]:
    """Score the named rules, or every rule the record allows, weakest evidence first.

    Of the rules that it allows, those that it is too large for are left out; see `left_out`.
    "recommended" names the rule that `recommend` does, and is scored under that rule's name.

    Raises:
        TruthMissing: the record has no true labels.
        ChoiceError: no such rule.
        ProbabilitiesMissing: a rule named needs probabilities that were not recorded.
    """
    truth = reader.truth()
    return [_score_one(rule, reader, truth) for rule in _chosen(reader, rules)]


def left_out(reader: RecordReader) -> dict[str, str]:
    """Return the rules that the record allows and `score` leaves out, each with the reason.

    >>> from accord.store import ArrayReader, SampleInfo
    >>> import numpy as np
    >>> labels = np.zeros((5, 4, 300), np.uint16)
    >>> left_out(ArrayReader(labels, SampleInfo(300, 6000)))["dawid-skene"]
    'its 6000 × 6000 confusion matrices would be too large'
    """
    said = {rule.name: rule.left_out(reader) for rule in _allowed(reader)}
    return {name: why for name, why in said.items() if why}


def _allowed(reader: RecordReader) -> list[Rule]:
    return [rule for rule in all_rules().values() if rule.allowed(reader)]


def _chosen(reader: RecordReader, names: Sequence[str | Rule] | None) -> list[Rule]:
    if names is None:
        able = [rule for rule in _allowed(reader) if not rule.left_out(reader)]
        return sorted(
            able, key=lambda rule: (rule.oracle, rule.reads == "all", rule.symmetric, rule.name)
        )
    chosen = [resolve_rule(name, reader)[0] for name in names]
    for rule in chosen:
        if not rule.allowed(reader):
            raise ProbabilitiesMissing(
                f"{reader.name}: {rule.name} needs probabilities, and only labels were recorded. "
                "Record them with Recorder(…, probabilities=True)"
            )
    return chosen


def _score_one(rule: Rule, reader: RecordReader, truth: Any) -> Score:
    if isinstance(rule, Single):
        return _score_single(rule, reader, truth)
    if isinstance(rule, OracleBestEpoch):
        epoch = rule.best_epoch(reader)
        measured = measure(rule(reader).labels, truth, classes=reader.classes)
        progress = reader.networks_info()[0].progress[epoch]
        return replace(_as_score(rule, measured), epoch=epoch, progress=progress)
    predicted = rule(reader)
    measured = measure(predicted.labels, truth, classes=reader.classes)
    return replace(_as_score(rule, measured), note=predicted.note)


def _score_single(rule: Single, reader: RecordReader, truth: Any) -> Score:
    measured = [
        measure(rule(reader.select(networks=[network])).labels, truth, classes=reader.classes)
        for network in reader.numbers
    ]
    return Score(
        rule=rule.name,
        # Not sum, which rounds otherwise before Python 3.12: the digits in JSON would differ.
        accuracy=math.fsum(one.accuracy for one in measured) / reader.networks,
        balanced_accuracy=math.fsum(one.balanced_accuracy for one in measured) / reader.networks,
        per_network=tuple(one.accuracy for one in measured),
    )


def _as_score(rule: Rule, measured: Accuracy) -> Score:
    abstained = 0 < measured.coverage < 1  # where nothing got a label, it would be nan
    return Score(
        rule=rule.name,
        accuracy=measured.accuracy,
        balanced_accuracy=measured.balanced_accuracy,
        oracle=rule.oracle,
        coverage=measured.coverage,
        selective_accuracy=measured.selective_accuracy if abstained else None,
    )
