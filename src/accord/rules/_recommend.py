"""The rule to use on a record, chosen without looking at the truth."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError
from accord.rules import find_rule
from accord.rules._base import Prediction, Rule
from accord.rules._em import fit_in_memory
from accord.rules._epoch_weights import Likeness, measure_likeness, repetition
from accord.rules._overfitting import LEAST_FALL, find_early_overfit, find_fall
from accord.rules.before_overfit import BeforeOverfit
from accord.rules.dawid_skene import DawidSkene
from accord.rules.max_agreement import MaxAgreement
from accord.rules.weighted_agreement import WeightedAgreement
from accord.store import ArrayReader, RecordReader, SampleInfo

RECOMMENDED: Final = "recommended"  # stands for the rule that is
Halves = Callable[[Rule], NDArray[np.bool_]]  # where two halves agree by a rule, (sample,)

# DIRECTED was chosen on development records. On those with asymmetric or
# instance-dependent noise the share of directed mistakes was 0.32 or more, but for one with 100
# classes; where six of ten classes were mixed up, 0.24; with symmetric noise or none, 0.12 or
# less, but for one with 0.27.
DIRECTED: Final = 0.3
# Of records with a late fall, ResNet-18s on CIFAR-10 had 0.85 or less, and small networks, which
# stop changing once all labels are learnt by heart, 0.95 or more.
SETTLED: Final = 0.9
SURE: Final = 3  # standard errors by which its halves must agree more if there are two classes

LEAST_NETWORKS: Final = 4  # two for each half
MOST_SAMPLES: Final = 10_000  # that are looked at
MOST_CLASSES: Final = 1_000  # for which confusion matrices are tried
SAMPLES_PER_CLASS: Final = 10  # that confusion matrices need

NOT_FALLEN: Final = "the agreement between networks has not fallen"
REPEATED: Final = "networks came to repeat themselves, so that counting counts the same vote often"
CHANGING: Final = "networks overfit, but agree little and go on changing: many votes even out"
TELLS: Final = "the networks' agreement tells which epochs are good"
MORE: Final = f"more than by {MaxAgreement.name}"
NOT_SHOWN: Final = "with two classes the votes show no other rule to be better"


@dataclass(frozen=True)
class Recommendation:
    """A rule, and why."""

    rule: str
    reason: str
    directed: float | None = None  # the share of mistakes that go one way; None if not looked at
    fall: float | None = None  # of the agreement between networks; None if not looked at
    agreement: Mapping[str, float] = field(default_factory=dict)  # of the two halves, by rule


def recommend(reader: RecordReader) -> Recommendation:
    """Recommend a rule from the votes alone.

    If the agreement between networks fell for good in the first three quarters of the training,
    and each network mostly repeats itself from then on or networks agreed well before, overfit
    has spoilt a quarter of the epochs or more, and the rule that leaves them out is recommended:
    before overfit.

    Dawid–Skene is recommended if the mistakes that it sees at the last epoch go one way: many
    cats called dogs, few dogs called cats. That is what labels do that are wrong by system.

    It is recommended too if the agreement between networks has not fallen by a point, or if each
    network repeats itself in the last half of the training. There is then no scatter of late
    votes for counting to wash out, and counting early epochs may only dilute late ones;
    Dawid–Skene finds out from the votes which epochs to trust.

    Otherwise it is weighted agreement; or max agreement, where networks overfit early but agreed
    little before and go on changing: it takes all of such votes to even each other out.

    Two classes are another matter: any two wrong votes are then the same, so that a mistake
    that networks share looks just like the truth. Max agreement is recommended, unless mistakes
    go one way or Dawid–Skene stands out: each rule predicts from every other network, and again
    from those in between, and its halves agree on more samples by three standard errors. Two or
    three networks make no halves to compare.

    At most 10,000 samples are looked at, evenly spaced. With one network or one class, max
    agreement.
    """
    for what, there in (("network", reader.networks), ("class", reader.classes)):
        if there == 1:
            return Recommendation(MaxAgreement.name, f"there is one {what}")
    some = _evenly_spaced(reader)
    early = find_early_overfit(some) if fit_in_memory(reader) else None
    if early is not None and early.spoils:
        best = f"agreed best in the first {early.before} of {reader.epochs} epochs"
        return Recommendation(BeforeOverfit.name, f"networks overfit, and {best}")
    likeness = cache(lambda: measure_likeness(some))
    late = slice(reader.epochs // 2, None)
    return choose(
        networks=reader.networks,
        classes=reader.classes,
        changing=early is not None,
        directed=_directed(some) if _are_ample(some) and fit_in_memory(reader) else None,
        fall=lambda: _fall(likeness()),
        repeats=lambda: repetition(likeness().within[late, late]),
        halves=lambda rule: _halves_agree(rule, some),
    )


def choose(
    *,
    networks: int,
    classes: int,
    changing: bool,
    directed: float | None,
    fall: Callable[[], float],
    repeats: Callable[[], float],
    halves: Halves,
) -> Recommendation:
    """Choose a rule for two networks or more by what their votes tell, as `recommend` says.

    Args:
        networks: how many there are.
        classes: how many there are.
        changing: whether they overfit early, with votes that are poor and go on changing.
        directed: the share of mistakes that go one way; None if Dawid–Skene cannot tell.
        fall: measures how far the agreement between networks fell, if that matters.
        repeats: measures how far each network repeats itself at last, if that matters.
        halves: measures where two halves of the networks agree by a rule (sample,), if it does.
    """
    if directed is not None and directed >= DIRECTED:
        reason = f"beyond chance, {100 * directed:.0f} % of the last mistakes go one way"
        return Recommendation(DawidSkene.name, reason, directed)
    if classes <= 2:
        return _between_two_classes(networks, directed, halves)
    if changing:
        return Recommendation(MaxAgreement.name, CHANGING, directed)
    return _among_many_classes(directed, fall(), repeats)


def resolve_rule(rule: str | Rule, reader: RecordReader) -> tuple[Rule, str]:
    """Return the rule of that name and, if it is the recommended one, which it is and why.

    Raises:
        ChoiceError: no rule has that name.
    """
    if rule != RECOMMENDED:
        return find_rule(rule), ""
    found = recommend(reader)
    return find_rule(found.rule), f"recommended: {found.rule}, as {found.reason}"


def predict_recommended(reader: RecordReader) -> Prediction:
    """Predict with the recommended rule; the note says which it is, and why."""
    rule, why = resolve_rule(RECOMMENDED, reader)
    return rule(reader).noting(why)


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


def standard_errors(
    ours: NDArray[np.bool_],  # (sample,)
    theirs: NDArray[np.bool_],
) -> float:
    """Return by how many standard errors ours holds more often than theirs, on the same samples.

    Only samples where they differ tell; each is a fair coin if neither is better.

    >>> standard_errors(np.array([True] * 9 + [False]), np.array([False] * 9 + [True]))
    2.5298221281347035
    """
    more, less = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    return (more - less) / math.sqrt(max(1, more + less))


def _are_ample(reader: RecordReader) -> bool:
    return reader.samples >= SAMPLES_PER_CLASS * reader.classes and reader.classes <= MOST_CLASSES


def _directed(reader: RecordReader) -> float | None:
    try:
        learnt = DawidSkene().fit(reader).learnt() or {}
    except PredictionError:  # it collapsed or did not settle: nothing can be said
        return None
    last = learnt["confusion"][:, learnt["groups"][-1]].mean(axis=0)  # (label, class)
    return directed_share(last * learnt["prior"] * reader.samples)


def _between_two_classes(networks: int, directed: float | None, halves: Halves) -> Recommendation:
    plain = Recommendation(MaxAgreement.name, NOT_SHOWN, directed)
    if directed is None or networks < LEAST_NETWORKS:
        return plain
    agreed = {rule.name: halves(rule) for rule in (MaxAgreement(), DawidSkene())}
    shares = {name: float(same.mean()) for name, same in agreed.items()}
    sure = standard_errors(agreed[DawidSkene.name], agreed[MaxAgreement.name])
    if sure < SURE:
        return replace(plain, agreement=shares)
    reason = f"{_told(shares[DawidSkene.name])}, {sure:.1f} standard errors {MORE}"
    return Recommendation(DawidSkene.name, reason, directed, agreement=shares)


def _among_many_classes(
    directed: float | None, fall: float, repeats: Callable[[], float]
) -> Recommendation:
    if directed is not None and fall < LEAST_FALL:
        return Recommendation(DawidSkene.name, NOT_FALLEN, directed, fall)
    if directed is not None and repeats() >= SETTLED:
        return Recommendation(DawidSkene.name, REPEATED, directed, fall)
    return Recommendation(WeightedAgreement.name, TELLS, directed, fall)


def _fall(likeness: Likeness) -> float:
    agreement = np.diag(likeness.across)  # (epoch,), beyond chance
    fall = find_fall(agreement)
    return 0.0 if fall is None else float(fall.size(agreement))


def _halves_agree(rule: Rule, reader: RecordReader) -> NDArray[np.bool_]:  # (sample,)
    first, second = (rule(reader.select(networks=reader.numbers[half::2])) for half in (0, 1))
    return np.equal(first.labels, second.labels)


def _told(share: float) -> str:
    return f"two halves of the networks agree on {100 * share:.1f} % of the samples"


def _evenly_spaced(reader: RecordReader) -> RecordReader:
    step = -(-reader.samples // MOST_SAMPLES)
    if step == 1:
        return reader
    labels = reader.read_labels(
        range(reader.networks), range(reader.epochs), slice(None, None, step)
    )
    return ArrayReader(labels, SampleInfo(labels.shape[2], reader.classes), name=reader.name)
