"""Recommendation of rules."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from accord.rules._all_rules import RECOMMENDED, find_rule
from accord.rules._analysis_context import Context
from accord.rules._base import Prediction, Rule
from accord.rules._em import fits_in_memory
from accord.rules._epoch_weights import measure_likeness
from accord.rules._overfitting import DEFAULTS, detect_overfitting, find_early_overfitting
from accord.rules._pair_agreement import measure_pair_agreement
from accord.rules.before_overfit import BeforeOverfit
from accord.rules.leave_one_out import LeaveOneOut
from accord.rules.max_agreement import MaxAgreement
from accord.store import ArrayReader, RecordReader

# With 20 % wrong labels on CIFAR-100, the agreement ends 0.12 above its best before the fall, and
# late epochs are the best. On 13 records of small networks where early epochs are, it ends at most
# 0.05 above.
RECOVERED: Final = 0.08
LATEST: Final = 10  # the last epochs are one tenth of all

MAX_SAMPLES: Final = 10_000  # in which a fall is searched
MIN_SAMPLES: Final = 100  # that weights and confusion matrices need


@dataclass(frozen=True)
class Recommendation:
    """Recommended rule with a reason."""

    rule: str
    reason: str


def recommend(reader: RecordReader) -> Recommendation:
    """Recommend a rule for a record from its votes.

    It is leave-one-out, with two exceptions. Before overfit is recommended if the agreement between
    networks fell for good in the first three quarters of the training, and networks mostly repeat
    themselves afterwards or agreed well before: then overfitting has spoilt a quarter of the epochs
    or more. At most 10,000 evenly spaced samples are searched for such a fall.

    Max agreement is recommended where other networks cannot judge an epoch: one network or class,
    missing votes, fewer than 100 samples, networks that are all equal, or two classes, where any
    two wrong votes are the same.
    """
    if (obstacle := _find_obstacle(reader)) is not None:
        return Recommendation(MaxAgreement.name, obstacle)
    context = Context.of(reader).once(evenly_spaced)
    early = _find_spoilt_epochs(context)
    if early is not None:
        best = f"agreed best in the first {early} of {reader.epochs} epochs"
        return Recommendation(BeforeOverfit.name, f"networks overfit, and {best}")
    if reader.samples < MIN_SAMPLES:
        reason = f"there are fewer than {MIN_SAMPLES} samples"
    elif context.once(measure_pair_agreement).agreement.min() == 1:
        reason = "all networks predict the same classes"
    elif reader.classes == 2:
        reason = "with two classes any two wrong votes are the same"
    else:
        judged = "the other networks show what each epoch's votes are worth"
        return Recommendation(LeaveOneOut.name, judged)
    return Recommendation(MaxAgreement.name, reason)


def _find_obstacle(reader: RecordReader) -> str | None:
    """Return why networks cannot be compared, if they cannot."""
    for what, number in (("network", reader.networks), ("class", reader.classes)):
        if number == 1:
            return f"there is one {what}"
    return "some votes are missing, and it leaves them out" if reader.has_missing else None


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
