"""Recommendation of rules."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.rules._all_rules import RECOMMENDED, find_rule
from accord.rules._analysis_context import Context
from accord.rules._base import Prediction, Rule
from accord.rules._em import fits_in_memory
from accord.rules._epoch_weights import measure_likeness
from accord.rules._overfitting import DEFAULTS, detect_overfitting, find_early_overfitting
from accord.rules._pair_agreement import measure_pair_agreement
from accord.rules.before_overfit import BeforeOverfit
from accord.rules.dawid_skene import DawidSkene, fit_dawid_skene
from accord.rules.leave_one_out import LeaveOneOut
from accord.rules.max_agreement import MaxAgreement
from accord.store import ArrayReader, RecordReader

# DIRECTED was chosen on development records. On those with asymmetric or
# instance-dependent noise the share of directed mistakes was 0.32 or more, except for one with 100
# classes; where six of ten classes were mixed up, 0.24; with symmetric noise or none, 0.12 or
# less, except for one with 0.27.
DIRECTED: Final = 0.3
SURE: Final = 3  # standard errors by which its halves must agree more if there are two classes

# With 20 % wrong labels on CIFAR-100, the agreement ends 0.12 above its best before the fall, and
# late epochs are the best. On 13 records of small networks where early epochs are, it ends at most
# 0.05 above.
RECOVERED: Final = 0.08
LATEST: Final = 10  # the last epochs are one tenth of all

MIN_NETWORKS: Final = 4  # two for each half
MAX_SAMPLES: Final = 10_000  # that are looked at
MIN_SAMPLES: Final = 100  # that weights and confusion matrices need

JUDGED: Final = "the other networks show what each epoch's votes are worth"
COPIES: Final = "all networks predict the same classes"
FEW_SAMPLES: Final = f"there are fewer than {MIN_SAMPLES} samples"
NOT_BETTER: Final = "with two classes no other rule is shown to be better by the votes"


@dataclass(frozen=True)
class Recommendation:
    """Recommended rule with a reason."""

    rule: str
    reason: str
    directed: float | None = None  # share of asymmetric mistakes, if measured
    agreement: Mapping[str, float] = field(default_factory=dict)  # of the two halves, by rule


def recommend(reader: RecordReader) -> Recommendation:
    """Recommend a rule for a record from its votes.

    Before overfit is recommended if the agreement between networks fell for good in the first
    three quarters of the training, and networks mostly repeat themselves afterwards or agreed well
    before: then overfitting has spoilt a quarter of the epochs or more.

    Otherwise, with three classes or more, it is leave-one-out, which judges each epoch by the
    other networks.

    With two classes, any two wrong votes are the same, so that a shared mistake looks just like the
    truth. Max agreement is recommended, unless the mistakes that Dawid–Skene finds at the last
    epoch go one way, as systematic label noise causes, or Dawid–Skene stands out: each rule
    predicts from every other network, and again from the rest, and its two predictions agree on
    more samples by three standard errors. Two or three networks are too few for this.

    At most 10,000 evenly spaced samples are looked at. With one network or one class, networks
    that are all equal, or fewer than 100 samples and no such fall, the recommendation is max
    agreement.
    """
    for what, number in (("network", reader.networks), ("class", reader.classes)):
        if number == 1:
            return Recommendation(MaxAgreement.name, f"there is one {what}")
    if reader.has_missing:
        return Recommendation(MaxAgreement.name, "some votes are missing, and it leaves them out")
    context = Context.of(reader)
    context = context.once(evenly_spaced)
    early = _find_spoilt_epochs(context)
    if early is not None:
        best = f"agreed best in the first {early} of {reader.epochs} epochs"
        return Recommendation(BeforeOverfit.name, f"networks overfit, and {best}")
    if reader.samples < MIN_SAMPLES:
        return Recommendation(MaxAgreement.name, FEW_SAMPLES)
    if context.once(measure_pair_agreement).agreement.min() == 1:
        return Recommendation(MaxAgreement.name, COPIES)
    if reader.classes > 2:
        return Recommendation(LeaveOneOut.name, JUDGED)
    return _recommend_for_two_classes(context)


def _find_spoilt_epochs(context: Context) -> int | None:
    """Count the epochs before early overfitting that the networks did not recover from."""
    if not fits_in_memory(context):
        return None
    context.load_labels()
    context.once(detect_overfitting, *DEFAULTS)  # here, where the stack is shallow
    early = find_early_overfitting(context)
    if early is None or not early.spoils:
        return None
    agreement = np.diag(context.once(measure_likeness).across)  # (epoch,), beyond chance
    recovered = agreement[-max(1, context.epochs // LATEST) :].mean() - RECOVERED
    return None if recovered >= agreement[: early.before].max() else early.before


def _recommend_for_two_classes(context: Context) -> Recommendation:
    fitted = context.once(fit_dawid_skene)
    directed = None if fitted.failure else directed_share(fitted.mistakes)
    if directed is not None and directed >= DIRECTED:
        reason = f"beyond chance, {100 * directed:.0f} % of the last mistakes go one way"
        return Recommendation(DawidSkene.name, reason, directed)
    plain = Recommendation(MaxAgreement.name, NOT_BETTER, directed)
    if directed is None or context.networks < MIN_NETWORKS:
        return plain
    return _compare_halves(context, plain)


def resolve_rule(rule: str | Rule, reader: RecordReader) -> tuple[Rule, str]:
    """Find a rule by name or by recommendation.

    Raises:
        ChoiceError: no rule has that name.
        VotesMissing: votes are missing, and the rule does not leave them out.
    """
    if rule != RECOMMENDED:
        chosen = find_rule(rule)
        chosen.check_votes(reader)
        return chosen, ""
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


def _compare_halves(context: Context, plain: Recommendation) -> Recommendation:
    """Recommend Dawid-Skene if halves of the networks surely agree more by it."""
    agreed = {rule.name: _halves_agree(rule, context) for rule in (MaxAgreement(), DawidSkene())}
    shares = {name: float(same.mean()) for name, same in agreed.items()}
    sure = standard_errors(agreed[DawidSkene.name], agreed[MaxAgreement.name])
    if sure < SURE:
        return replace(plain, agreement=shares)
    reason = (
        f"two halves of the networks agree on {100 * shares[DawidSkene.name]:.1f} % of the "
        f"samples, {sure:.1f} standard errors more than by {MaxAgreement.name}"
    )
    return Recommendation(DawidSkene.name, reason, plain.directed, agreement=shares)


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
