"""The overfit alarm: a lasting fall of the agreement between networks, found without a label."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError
from accord.kernels.falls import LEAST_FALL, smooth
from accord.rules.overfit.equal_pairs import count_equal_pairs
from accord.rules.overfit.good_epochs import good_epochs
from accord.rules.overfit.verdict import SURE, Verdict, judge_record
from accord.store import Rows


@dataclass(frozen=True)
class Watch:
    """What the agreement between networks tells of overfit."""

    alarm: bool
    epoch: int | None  # the epoch before overfit; None without an alarm
    best_epoch: int  # the one to use, alarm or not
    fall: float  # of agreement, from its peak to the lowest stretch after it
    sure: float  # 1 minus the chance of such a fall where there is none
    reason: str  # why there is an alarm, or none
    agreement: NDArray[np.float64]  # (epoch,), the mean over pairs of networks and samples
    smoothed: NDArray[np.float64]  # (epoch,)


def watch(
    rows: Rows, *, sure: float = SURE, least_fall: float = LEAST_FALL, seed: int = 0
) -> Watch:
    """Tell whether overfit has set in, and the epoch before it, from the predictions alone.

    Networks that learn what is true of the data come to agree; networks that learn wrong labels
    by heart part again, each in its own way. The alarm is raised if agreement falls after its
    peak, for a stretch of at least five epochs, and the fall

    - is at least `least_fall`,
    - remains so whichever network is left out, so that none causes it alone,
    - is larger than the samples' differences explain (a test over groups of samples), and
    - is larger than the epochs' wobble explains (curves that wobble as much and never fall).

    The last two say how sure they are; both must reach `sure`, and the lesser is told. The epoch
    before overfit is the one before that stretch whose majority vote is closest to what all
    epochs before it together say; see `good_epochs`.

    Where sureness alone is missing, the majority votes are asked too; see `judge_rows`. A fall
    that agreement made up for later, as networks do that settle while their rate goes to nothing,
    counts as well, as does any alarm that agreement alone raised while the record grew; which of
    the majority's do, see `judge_record`.

    Args:
        rows: at least two networks.
        sure: between 0 and 1.
        least_fall: of agreement, between 0 and 1.
        seed: of the curves that are drawn.

    Raises:
        ChoiceError: there is one network, or an option is out of range.
    """
    _check_options(sure, least_fall)
    pairs = count_equal_pairs(rows)
    verdict = judge_record(rows, pairs, sure=sure, least_fall=least_fall, seed=seed)
    best = best_epoch(rows, verdict)
    return Watch(
        alarm=verdict.alarm,
        epoch=best if verdict.alarm else None,
        best_epoch=best,
        fall=verdict.fall,
        sure=verdict.sure,
        reason=verdict.reason,
        agreement=pairs.agreement,
        smoothed=smooth(pairs.agreement),
    )


def best_epoch(rows: Rows, verdict: Verdict) -> int:
    """Return the epoch to use: of all, or if there is an alarm of those before the fall."""
    if verdict.alarm and verdict.before is not None:
        rows = rows.select(epochs=range(verdict.before))
    return good_epochs(rows).best


def _check_options(sure: float, least_fall: float) -> None:
    if not 0 < sure < 1:
        raise ChoiceError(f"sure must lie between 0 and 1, as 0.99 does; got {sure}")
    if not 0 <= least_fall < 1:
        raise ChoiceError(f"least_fall must lie in 0..1, as 0.01 does; got {least_fall}")
