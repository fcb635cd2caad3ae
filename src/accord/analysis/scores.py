"""Score the rules that a record allows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from accord.analysis.accuracy import Accuracy, measure
from accord.errors import ProbabilitiesMissing
from accord.rules import Rule, all_rules
from accord.rules.oracle_best_epoch import OracleBestEpoch
from accord.rules.recommend import resolve_rule
from accord.rules.single import Single
from accord.store import Rows


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


def score(rows: Rows, rules: Sequence[str | Rule] | None = None) -> list[Score]:
    """Score the named rules, or every rule the record allows, weakest evidence first.

    Of the rules that it allows, those that it is too large for are left out; see `left_out`.
    "recommended" names the rule that `recommend` does, and is scored under that rule's name.

    Raises:
        TruthMissing: the record has no true labels.
        ChoiceError: no such rule.
        ProbabilitiesMissing: a rule named needs probabilities that were not recorded.
    """
    truth = rows.truth()
    return [_score_one(rule, rows, truth) for rule in _chosen(rows, rules)]


def left_out(rows: Rows) -> dict[str, str]:
    """Return the rules that the record allows and `score` leaves out, each with the reason.

    >>> from accord.store import ArrayRows, Facts
    >>> import numpy as np
    >>> labels = np.zeros((5, 4, 300), np.uint16)
    >>> left_out(ArrayRows(labels, Facts(300, 6000)))["dawid-skene"]
    'its 6000 × 6000 confusion matrices would be too large'
    """
    said = {rule.name: rule.left_out(rows) for rule in _allowed(rows)}
    return {name: why for name, why in said.items() if why}


def _allowed(rows: Rows) -> list[Rule]:
    return [rule for rule in all_rules().values() if rule.allowed(rows)]


def _chosen(rows: Rows, names: Sequence[str | Rule] | None) -> list[Rule]:
    if names is None:
        able = [rule for rule in _allowed(rows) if not rule.left_out(rows)]
        return sorted(
            able, key=lambda rule: (rule.oracle, rule.reads == "all", rule.symmetric, rule.name)
        )
    chosen = [resolve_rule(name, rows)[0] for name in names]
    for rule in chosen:
        if not rule.allowed(rows):
            raise ProbabilitiesMissing(
                f"{rows.name}: {rule.name} needs probabilities, and only labels were recorded. "
                "Record them with Recorder(…, probabilities=True)"
            )
    return chosen


def _score_one(rule: Rule, rows: Rows, truth: Any) -> Score:
    if isinstance(rule, Single):
        return _score_single(rule, rows, truth)
    if isinstance(rule, OracleBestEpoch):
        epoch = rule.best_epoch(rows)
        measured = measure(rule(rows).labels, truth, classes=rows.classes)
        progress = rows.told()[0].progress[epoch]
        return replace(_as_score(rule, measured), epoch=epoch, progress=progress)
    predicted = rule(rows)
    measured = measure(predicted.labels, truth, classes=rows.classes)
    return replace(_as_score(rule, measured), note=predicted.note)


def _score_single(rule: Single, rows: Rows, truth: Any) -> Score:
    measured = [
        measure(rule(rows.select(networks=[network])).labels, truth, classes=rows.classes)
        for network in range(rows.networks)
    ]
    return Score(
        rule=rule.name,
        # Not sum, which rounds otherwise before Python 3.12: the digits in JSON would differ.
        accuracy=math.fsum(one.accuracy for one in measured) / rows.networks,
        balanced_accuracy=math.fsum(one.balanced_accuracy for one in measured) / rows.networks,
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
