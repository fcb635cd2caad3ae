"""How many epochs lie before the networks overfit."""

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from accord.rules.epoch_weights import best_agreement, measure_likeness, repetition
from accord.rules.overfit.equal_pairs import count_equal_pairs
from accord.rules.overfit.verdict import judge_record
from accord.store import Rows

EARLY: Final = 0.75  # of the epochs: a fall of agreement by then leaves many to be spoilt
# Of 40 records with such a fall, three lost by leaving the epochs after it out. Those repeated each
# other with 0.46, 0.55 and 0.62, and networks agreed with 0.45, 0.48 and 0.53 at their best; the
# third came after the lines were drawn. On all others epochs repeated each other with 0.65 or more.
REPEATS: Final = 0.65
AGREES: Final = 0.6
# Several rules ask it of the same rows, which do not change, and it may cost more than they do.
_found: WeakKeyDictionary[Rows, int | None] = WeakKeyDictionary()


@dataclass(frozen=True)
class EarlyOverfit:
    """A fall of agreement that leaves a quarter of the epochs or more after it."""

    before: int  # so many epochs lie before it
    spoils: bool  # whether the votes after it do more harm than good


def epochs_before_overfit(rows: Rows) -> int | None:
    """Return how many epochs lie before the fall of agreement; None where it has not fallen."""
    if rows.networks == 1:
        return None
    if rows not in _found:
        verdict = judge_record(rows, count_equal_pairs(rows))
        _found[rows] = verdict.before if verdict.alarm and verdict.before else None
    return _found[rows]


def find_early_overfit(rows: Rows) -> EarlyOverfit | None:
    """Find an early fall of agreement, and say whether it spoils the epochs after it.

    Networks that have learnt wrong labels by heart repeat them, and outvote what they knew. Where
    networks agree well at their best, a few good epochs tell all that many would. But votes that
    are poor and go on changing even each other out: many are then worth more than few better ones.
    """
    before = epochs_before_overfit(rows)
    if before is None or before > EARLY * rows.epochs:
        return None
    likeness = measure_likeness(rows)
    repeated = repetition(likeness.within[before:, before:])
    return EarlyOverfit(before, repeated >= REPEATS or best_agreement(likeness) >= AGREES)


def epochs_before_early_overfit(rows: Rows) -> int | None:
    """Return how many epochs lie before an early fall that spoils the rest; None if none does."""
    found = find_early_overfit(rows)
    return found.before if found is not None and found.spoils else None
