"""Recommendation of rules.

`recommend` measures what the choice depends on; `choose` decides.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.rules._all_rules import find_rule
from accord.rules._base import Prediction, Rule
from accord.rules._context import Context
from accord.rules._em import fits_in_memory
from accord.rules._epoch_weights import measure_likeness, repetition
from accord.rules._overfitting import (
    DEFAULTS,
    LEAST_FALL,
    detect_overfitting,
    find_early_overfitting,
    find_fall,
)
from accord.rules.before_overfit import BeforeOverfit
from accord.rules.dawid_skene import DawidSkene, fit_dawid_skene
from accord.rules.max_agreement import MaxAgreement
from accord.rules.weighted_agreement import WeightedAgreement
from accord.store import ArrayReader, RecordReader

RECOMMENDED: Final = "recommended"  # stands for the rule that is
Halves = Callable[[Rule], NDArray[np.bool_]]  # where two halves agree by a rule, (sample,)

# DIRECTED was chosen on development records. On those with asymmetric or
# instance-dependent noise the share of directed mistakes was 0.32 or more, except for one with 100
# classes; where six of ten classes were mixed up, 0.24; with symmetric noise or none, 0.12 or
# less, except for one with 0.27.
DIRECTED: Final = 0.3
# Of records with a late fall, ResNet-18s on CIFAR-10 had 0.85 or less, and small networks, which
# stop changing once all labels are memorised, 0.95 or more.
REPEATING: Final = 0.9
SURE: Final = 3  # standard errors by which its halves must agree more if there are two classes

MIN_NETWORKS: Final = 4  # two for each half
MAX_SAMPLES: Final = 10_000  # that are looked at
MAX_CLASSES: Final = 1_000  # for which confusion matrices are tried
SAMPLES_PER_CLASS: Final = 10  # that confusion matrices need

NOT_FALLEN: Final = "the agreement between networks has not fallen"
REPEATED: Final = "networks repeat themselves at the end, so that counting counts one vote often"
CHANGING: Final = "networks overfit, but agree little and keep changing: many votes average out"
INFORMATIVE: Final = "the networks' agreement shows which epochs are good"
NOT_BETTER: Final = "with two classes no other rule is shown to be better by the votes"


@dataclass(frozen=True)
class Recommendation:
    """Recommended rule with a reason."""

    rule: str
    reason: str
    directed: float | None = None  # share of asymmetric mistakes, if measured
    fall: float | None = None  # fall of agreement, if measured
    agreement: Mapping[str, float] = field(default_factory=dict)  # of the two halves, by rule


def recommend(reader: RecordReader) -> Recommendation:
    """Recommend a rule for a record from its votes.

    Before overfit is recommended if the agreement between networks fell for good in the first
    three quarters of the training, and networks mostly repeat themselves afterwards or agreed well
    before: then overfitting has spoilt a quarter of the epochs or more.

    Dawid–Skene is recommended if the mistakes that it finds at the last epoch go one way: many
    cats predicted as dogs, few dogs as cats, as systematic label noise causes.

    It is recommended too if the agreement between networks has not fallen by a point, or if each
    network repeats itself in the last half of the training. Late votes then have no scatter that
    counting would average out, and counting early epochs may only dilute late ones;
    Dawid–Skene estimates from the votes which epochs to trust.

    Otherwise it is weighted agreement; or max agreement, where networks overfit early but agreed
    little before and keep changing: only many such votes average out.

    With two classes, any two wrong votes are the same, so that a shared mistake looks just like the
    truth. Max agreement is recommended, unless mistakes go one way or Dawid–Skene stands out: each
    rule predicts from every other network, and again from the rest, and its two predictions agree
    on more samples by three standard errors. Two or three networks are too few for this.

    At most 10,000 evenly spaced samples are looked at. With one network or one class, the
    recommendation is max agreement.
    """
    for what, number in (("network", reader.networks), ("class", reader.classes)):
        if number == 1:
            return Recommendation(MaxAgreement.name, f"there is one {what}")
    context = Context.of(reader)
    context = context.once(evenly_spaced)
    fits = fits_in_memory(reader)
    context.load_labels()
    if fits:
        context.once(detect_overfitting, *DEFAULTS)  # here, where the stack is shallow
    early = find_early_overfitting(context) if fits else None
    if early is not None and early.spoils:
        best = f"agreed best in the first {early.before} of {reader.epochs} epochs"
        return Recommendation(BeforeOverfit.name, f"networks overfit, and {best}")
    directed = None
    enough = context.samples >= SAMPLES_PER_CLASS * context.classes
    if fits and enough and context.classes <= MAX_CLASSES:
        fitted = context.once(fit_dawid_skene)
        directed = None if fitted.failure else directed_share(fitted.mistakes)
    late = slice(reader.epochs // 2, None)
    return choose(
        networks=reader.networks,
        classes=reader.classes,
        changing=early is not None,
        directed=directed,
        fall=lambda: _fall(context),
        repeats=lambda: repetition(context.once(measure_likeness).within[late, late]),
        halves=lambda rule: _halves_agree(rule, context),
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
    """Select a rule for at least two networks.

    Args:
        networks: the number of networks.
        classes: the number of classes.
        changing: whether networks overfit early, with votes that are poor and keep changing.
        directed: the share of mistakes that go one way; None if it could not be estimated.
        fall: measures how far the agreement between networks fell.
        repeats: measures how far each network repeats itself at the end.
        halves: measures where two halves of the networks agree by a rule (sample,).
    """
    if directed is not None and directed >= DIRECTED:
        reason = f"beyond chance, {100 * directed:.0f} % of the last mistakes go one way"
        return Recommendation(DawidSkene.name, reason, directed)
    if classes <= 2:
        return _choose_for_two_classes(networks, directed, halves)
    if changing:
        return Recommendation(MaxAgreement.name, CHANGING, directed)
    fallen = fall()
    if directed is not None and fallen < LEAST_FALL:
        return Recommendation(DawidSkene.name, NOT_FALLEN, directed, fallen)
    if directed is not None and repeats() >= REPEATING:
        return Recommendation(DawidSkene.name, REPEATED, directed, fallen)
    return Recommendation(WeightedAgreement.name, INFORMATIVE, directed, fallen)


def resolve_rule(rule: str | Rule, reader: RecordReader) -> tuple[Rule, str]:
    """Find a rule by name or by recommendation.

    Raises:
        ChoiceError: no rule has that name.
    """
    if rule != RECOMMENDED:
        return find_rule(rule), ""
    found = Context.of(reader).once(recommend)
    return find_rule(found.rule), f"recommended: {found.rule}, as {found.reason}"


def predict_recommended(reader: RecordReader) -> Prediction:
    """Predict with the recommended rule."""
    rule, reason = resolve_rule(RECOMMENDED, reader)
    return rule(reader).with_note(reason)


def directed_share(
    mistakes: NDArray[np.float64],  # (label, class); the diagonal is ignored
) -> float:
    """Estimate the fraction of asymmetric mistakes beyond chance.

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
    """Compute the difference between two rates in standard errors.

    Only samples where they differ count; each is a fair coin if neither is better.

    >>> standard_errors(np.array([True] * 9 + [False]), np.array([False] * 9 + [True]))
    2.5298221281347035
    """
    more, less = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    return (more - less) / math.sqrt(max(1, more + less))


def _fall(context: Context) -> float:
    agreement = np.diag(context.once(measure_likeness).across)  # (epoch,), beyond chance
    fall = find_fall(agreement)
    return 0.0 if fall is None else float(fall.size(agreement))


def _choose_for_two_classes(
    networks: int, directed: float | None, halves: Halves
) -> Recommendation:
    plain = Recommendation(MaxAgreement.name, NOT_BETTER, directed)
    if directed is None or networks < MIN_NETWORKS:
        return plain
    agreed = {rule.name: halves(rule) for rule in (MaxAgreement(), DawidSkene())}
    shares = {name: float(same.mean()) for name, same in agreed.items()}
    sure = standard_errors(agreed[DawidSkene.name], agreed[MaxAgreement.name])
    if sure < SURE:
        return replace(plain, agreement=shares)
    reason = (
        f"two halves of the networks agree on {100 * shares[DawidSkene.name]:.1f} % of the "
        f"samples, {sure:.1f} standard errors more than by {MaxAgreement.name}"
    )
    return Recommendation(DawidSkene.name, reason, directed, agreement=shares)


def _halves_agree(rule: Rule, context: Context) -> NDArray[np.bool_]:  # (sample,)
    numbers = context.numbers[0::2], context.numbers[1::2]
    first, second = (rule(context.select(networks=half)) for half in numbers)
    return np.equal(first.labels, second.labels)


def evenly_spaced(context: Context) -> Context:
    """Select at most 10,000 evenly spaced samples."""
    step = -(-context.samples // MAX_SAMPLES)
    if step == 1:
        return context
    everything = range(context.networks), range(context.epochs)
    labels, info = context.read_labels(*everything, slice(None, None, step)), context.sample_info
    known = {name: getattr(info, name) for name in ("truth", "given")}
    cut = {name: one[::step] for name, one in known.items() if one is not None}
    reader = ArrayReader(
        labels,
        replace(info, samples=labels.shape[2], ids=None, **cut),
        numbers=context.numbers,
        name=context.name,
    )
    return Context(reader)
