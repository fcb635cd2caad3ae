"""The overfit alarm: a lasting fall of the agreement between networks, found without a label."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis.equal_pairs import EqualPairs, count_equal_pairs
from accord.analysis.good_epochs import good_epochs
from accord.errors import ChoiceError
from accord.kernels.falls import LEAST_FALL, Fall, find_fall, smooth, sure_beyond_wobble
from accord.store import Rows

SURE: Final = 0.99  # how sure the alarm must be


@dataclass(frozen=True)
class Verdict:
    """Whether agreement has fallen for good, and how that was decided."""

    alarm: bool
    reason: str
    fall: float = 0.0  # of agreement, from its peak to the lowest stretch after it
    sure: float = 0.0  # 1 minus the chance of such a fall where there is none
    before: int | None = None  # the first epoch of that stretch


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
    verdict = judge(pairs, sure=sure, least_fall=least_fall, seed=seed)
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


def judge(
    pairs: EqualPairs, *, sure: float = SURE, least_fall: float = LEAST_FALL, seed: int = 0
) -> Verdict:
    """Judge agreement that was already counted; see `watch`."""
    agreement = pairs.agreement
    fall = find_fall(agreement)
    if fall is None:
        return Verdict(False, "the peak of agreement is too recent to tell")
    size = float(fall.size(agreement))
    if size < least_fall:
        return Verdict(False, "agreement has not fallen", size)
    by_samples = _sure_of_samples(pairs, fall)
    by_epochs = sure_beyond_wobble(agreement, fall, seed=seed)
    doubt = _doubt(pairs, fall, least_fall)
    if not doubt and by_samples < sure:
        doubt = "agreement fell no more than samples differ"
    if not doubt and by_epochs < sure:
        doubt = "agreement fell no more than it wobbles"
    reason = doubt or "agreement fell, beyond what samples and wobble explain"
    return Verdict(not doubt, reason, size, min(by_samples, by_epochs), fall.low)


def _doubt(pairs: EqualPairs, fall: Fall, least_fall: float) -> str:
    if pairs.networks == 2:
        return ""
    sizes = [float(fall.size(pairs.without(network))) for network in range(pairs.networks)]
    if min(sizes) >= least_fall:
        return ""
    return f"only the agreement with network {pairs.numbers[int(np.argmin(sizes))]} has fallen"


def _sure_of_samples(pairs: EqualPairs, fall: Fall) -> float:
    """Return how sure it is that agreement falls on other samples of the same kind too."""
    sizes = fall.size(pairs.by_group)
    shares = pairs.sizes / pairs.sizes.sum()
    mean = float(shares @ sizes)
    most = 1 - 0.5 ** len(sizes)  # as sure as so many coins that fall alike can make
    if len(sizes) < 2:
        return most
    error = math.sqrt(float(shares @ (sizes - mean) ** 2) / (len(sizes) - 1))
    return min(most, NormalDist().cdf(mean / error) if error else 1.0)
