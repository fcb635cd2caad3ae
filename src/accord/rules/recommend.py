"""The rule to use on a record, chosen without looking at the truth."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError
from accord.rules.dawid_skene import DawidSkene
from accord.rules.max_agreement import MaxAgreement
from accord.rules.rule import Rule
from accord.rules.weighted_agreement import WeightedAgreement
from accord.store import ArrayRows, Facts, Rows

SIMPLE: Final[tuple[Rule, ...]] = (MaxAgreement(), WeightedAgreement())

# Both were chosen on development records. On those with asymmetric or instance-dependent noise
# the share of directed mistakes was 0.32 or more, but for one with 100 classes; where six of ten
# classes were mixed up, 0.24; with symmetric noise or none, 0.12 or less, but for one with 0.27.
DIRECTED: Final = 0.3
# Of the disagreement between halves that simpler rules leave, Dawid–Skene must leave no more: it
# estimates thousands of numbers where they estimate one for each epoch or none, and halves also
# agree where both are wrong in the same way.
MUST_LEAVE: Final = 0.8

LEAST_NETWORKS: Final = 4  # two for each half
MOST_SAMPLES: Final = 10_000  # that are looked at
MOST_CLASSES: Final = 1_000  # for which confusion matrices are tried
SAMPLES_PER_CLASS: Final = 10  # that confusion matrices need


@dataclass(frozen=True)
class Recommendation:
    """A rule, and why."""

    rule: str
    reason: str
    directed: float | None = None  # the share of mistakes that go one way; None if not looked at
    agreement: Mapping[str, float] = field(default_factory=dict)  # of the two halves, by rule


def recommend(rows: Rows) -> Recommendation:
    """Recommend a rule from the votes alone.

    Dawid–Skene is recommended if the mistakes that it sees at the last epoch go one way: many
    cats called dogs, few dogs called cats. That is what labels do that are wrong by system.

    Otherwise each rule predicts from every other network, and again from those in between.
    What two disjoint halves both predict is not a whim of either: of max agreement and
    weighted agreement, the one whose halves agree on more samples is recommended, the former
    if equal, and Dawid–Skene if its halves disagree on clearly fewer than both.

    At most 10,000 samples are looked at, evenly spaced. Two or three networks make no halves
    to compare: weighted agreement; with one network, max agreement.
    """
    if rows.networks == 1:
        return Recommendation(MaxAgreement.name, "there is one network")
    some = _evenly_spaced(rows)
    directed = _directed(some) if _are_ample(some) else None
    if directed is not None and directed >= DIRECTED:
        reason = f"beyond chance, {100 * directed:.0f} % of the last mistakes go one way"
        return Recommendation(DawidSkene.name, reason, directed)
    if rows.networks < LEAST_NETWORKS:
        reason = f"{rows.networks} networks make no two halves to compare"
        return Recommendation(WeightedAgreement.name, reason, directed)
    rules = [*SIMPLE, *([DawidSkene()] if directed is not None else [])]
    agreed = {rule.name: _halves_agree(rule, some) for rule in rules}
    best = _best(agreed)
    reason = f"two halves of the networks agree on {100 * agreed[best]:.1f} % of the samples"
    return Recommendation(best, reason, directed, agreed)


def directed_share(
    mistakes: NDArray[np.float64],  # (label, class); the diagonal is ignored
) -> float:
    """Return the share of mistakes that go from one class to another and not back, beyond chance.

    >>> there_and_back = np.array([[0.0, 50.0], [50.0, 0.0]])
    >>> directed_share(there_and_back) < 0 < directed_share(np.triu(there_and_back))
    True
    """
    above = np.triu_indices(len(mistakes), 1)
    there, back = mistakes[above], mistakes.T[above]
    both = there + back
    if both.sum() == 0:
        return 0.0
    by_chance = np.minimum(both, np.sqrt(2 * both / np.pi))  # of as many fair coins
    return float((np.abs(there - back) - by_chance).sum() / both.sum())


def _are_ample(rows: Rows) -> bool:
    return rows.samples >= SAMPLES_PER_CLASS * rows.classes and rows.classes <= MOST_CLASSES


def _directed(rows: Rows) -> float:
    try:
        learnt = DawidSkene().fit(rows).learnt() or {}
    except PredictionError:  # it collapsed or did not settle: nothing can be said
        return 0.0
    last = learnt["confusion"][:, learnt["groups"][-1]].mean(axis=0)  # (label, class)
    return directed_share(last * learnt["prior"] * rows.samples)


def _best(agreed: Mapping[str, float]) -> str:
    simple = max((rule.name for rule in SIMPLE), key=lambda name: agreed[name])
    left = MUST_LEAVE * (1 - agreed[simple])
    better = 1 - agreed.get(DawidSkene.name, 0) <= left and left > 0
    return DawidSkene.name if better else simple


def _halves_agree(rule: Rule, rows: Rows) -> float:
    first, second = (rule(rows.select(networks=range(half, rows.networks, 2))) for half in (0, 1))
    return float(np.mean(first.labels == second.labels))


def _evenly_spaced(rows: Rows) -> Rows:
    step = -(-rows.samples // MOST_SAMPLES)
    if step == 1:
        return rows
    labels = rows.read_labels(range(rows.networks), range(rows.epochs), slice(None, None, step))
    return ArrayRows(labels, Facts(labels.shape[2], rows.classes), name=rows.name)
