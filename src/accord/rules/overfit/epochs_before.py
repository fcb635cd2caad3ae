"""How many epochs lie before the networks overfit."""

from typing import Final

from accord.rules.overfit.equal_pairs import count_equal_pairs
from accord.rules.overfit.verdict import judge_record
from accord.store import Rows

EARLY: Final = 0.75  # of the epochs: a fall of agreement by then spoils the rest of them


def epochs_before_overfit(rows: Rows) -> int | None:
    """Return how many epochs lie before the fall of agreement; None where it has not fallen."""
    if rows.networks == 1:
        return None
    verdict = judge_record(rows, count_equal_pairs(rows))
    return verdict.before if verdict.alarm and verdict.before else None


def epochs_before_early_overfit(rows: Rows) -> int | None:
    """Return the same if the fall spoils a quarter of the epochs or more, and None if not."""
    before = epochs_before_overfit(rows)
    return None if before is None or before > EARLY * rows.epochs else before
