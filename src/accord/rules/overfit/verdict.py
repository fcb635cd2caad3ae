"""Whether the agreement between networks has fallen for good, told from the votes alone."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import NormalDist
from typing import Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from accord.kernels.falls import LEAST_FALL, Fall, find_fall, sure_beyond_wobble
from accord.rules.overfit.equal_pairs import EqualPairs
from accord.rules.overfit.good_epochs import good_epochs
from accord.store import Rows

SURE: Final = 0.99  # how sure the alarm must be


class _Options(TypedDict):
    sure: float
    least_fall: float
    seed: int


@dataclass(frozen=True)
class Verdict:
    """Whether agreement has fallen for good, and how that was decided."""

    alarm: bool
    reason: str
    fall: float = 0.0  # of agreement, from its peak to the lowest stretch after it
    sure: float = 0.0  # 1 minus the chance of such a fall where there is none
    before: int | None = None  # the first epoch of that stretch
    unsure: bool = False  # it fell far enough and with every network; only sureness is missing


def judge_record(
    rows: Rows,
    pairs: EqualPairs,
    *,
    sure: float = SURE,
    least_fall: float = LEAST_FALL,
    seed: int = 0,
) -> Verdict:
    """Judge a record as it is and, without an alarm, as it was while it grew.

    Networks that have learnt wrong labels by heart may settle and agree more than they ever did.
    Whoever had watched them train would have seen agreement fall first. The record is looked at
    as it was when agreement had fallen deepest, and then after each epoch, from the first on.

    An alarm that agreement alone raised while the record grew stays. One that took the majority
    votes stays if they raise it at one of the moments at which they are asked here: when agreement
    had fallen deepest, when a fall was new, or when most was known of it. Whoever follows a record
    asks them after each epoch, and may have seen an alarm in between that is not told here.
    """
    options: _Options = {"sure": sure, "least_fall": least_fall, "seed": seed}
    now = judge_rows(rows, pairs, **options)
    if now.alarm:
        return now
    then = next((verdict for verdict in _past(rows, pairs, options) if verdict.alarm), None)
    return now if then is None else replace(then, reason=f"{then.reason}, and rose later")


def _past(rows: Rows, pairs: EqualPairs, options: _Options) -> Iterator[Verdict]:
    """Judge the record as it was when agreement had fallen deepest, and after each epoch.

    Majorities are asked of a fall when it is new and when most is known of it, not after each epoch
    in between: where the rate is raised again and again, one fall lasts for long, and each time
    costs up to half a second (5 networks, 100 epochs, 10,000 samples; 31 s for all epochs).
    """
    deepest = _deepest_end(pairs.agreement)
    if deepest < pairs.epochs:
        yield judge_rows(rows.select(epochs=range(deepest)), pairs.until(deepest), **options)
    ends = range(1, pairs.epochs)
    for _, alike in groupby(ends, key=lambda end: find_fall(pairs.agreement[:end])):
        same = list(alike)
        for end in same:
            if end in (same[0], same[-1]):
                yield judge_rows(rows.select(epochs=range(end)), pairs.until(end), **options)
            else:
                yield judge(pairs.until(end), **options)


def _deepest_end(agreement: NDArray[np.float64]) -> int:
    """Return how many epochs there were when agreement had fallen deepest."""
    ends = range(1, len(agreement) + 1)
    return max(ends, key=lambda end: _fall_so_far(agreement[:end]))


def _fall_so_far(agreement: NDArray[np.float64]) -> float:
    fall = find_fall(agreement)
    return 0.0 if fall is None else float(fall.size(agreement))


def judge_rows(
    rows: Rows,
    pairs: EqualPairs,
    *,
    sure: float = SURE,
    least_fall: float = LEAST_FALL,
    seed: int = 0,
) -> Verdict:
    """Judge agreement and, where sureness alone is missing, the majority votes too.

    Each epoch's majority says, on some share of the samples, what all epochs together say; see
    `good_epochs`. If that share has fallen too, by as much and as surely as agreement would have
    to, there is an alarm. It raises none by itself: the majority of networks that learn slowly
    moves away from what all epochs say as well, and they agree ever more.
    """
    verdict = judge(pairs, sure=sure, least_fall=least_fall, seed=seed)
    if not verdict.unsure:
        return verdict
    by_majority = _sure_of_majority(rows, least_fall, seed)
    if by_majority < sure:
        return verdict
    reason = "majorities left what all epochs say, and agreement fell"
    return replace(verdict, alarm=True, reason=reason, sure=by_majority, unsure=False)


def _sure_of_majority(rows: Rows, least_fall: float, seed: int) -> float:
    good = good_epochs(rows)
    fall = find_fall(good.shares)
    if fall is None or fall.size(good.shares) < least_fall:
        return 0.0
    by_samples = _sure_of_samples(good.by_group, good.sizes, fall)
    return min(by_samples, sure_beyond_wobble(good.shares, fall, seed=seed))


def judge(
    pairs: EqualPairs, *, sure: float = SURE, least_fall: float = LEAST_FALL, seed: int = 0
) -> Verdict:
    """Judge agreement alone; `accord.analysis.watch` tells how."""
    agreement = pairs.agreement
    fall = find_fall(agreement)
    if fall is None:
        return Verdict(False, "the peak of agreement is too recent to tell")
    size = float(fall.size(agreement))
    if size < least_fall:
        return Verdict(False, "agreement has not fallen", size)
    by_samples = _sure_of_samples(pairs.by_group, pairs.sizes, fall)
    by_epochs = sure_beyond_wobble(agreement, fall, seed=seed)
    certain = min(by_samples, by_epochs)
    fault = _fault_of_one(pairs, fall, least_fall)
    if fault:
        return Verdict(False, fault, size, certain, fall.low)
    if certain >= sure:
        reason = "agreement fell, beyond what samples and wobble explain"
        return Verdict(True, reason, size, certain, fall.low)
    limit = "samples differ" if by_samples < sure else "it wobbles"
    reason = f"agreement fell no more than {limit}"
    return Verdict(False, reason, size, certain, fall.low, unsure=True)


def _fault_of_one(pairs: EqualPairs, fall: Fall, least_fall: float) -> str:
    if pairs.networks == 2:
        return ""
    sizes = [float(fall.size(pairs.without(network))) for network in range(pairs.networks)]
    if min(sizes) >= least_fall:
        return ""
    return f"only the agreement with network {pairs.numbers[int(np.argmin(sizes))]} has fallen"


def _sure_of_samples(
    by_group: NDArray[np.float64],  # (group, epoch)
    group_sizes: NDArray[np.intp],
    fall: Fall,
) -> float:
    """Return how sure it is that a curve falls on other samples of the same kind too."""
    falls = fall.size(by_group)
    shares = group_sizes / group_sizes.sum()
    mean = float(shares @ falls)
    most = 1 - 0.5 ** len(falls)  # as sure as so many coins that fall alike can make
    if len(falls) < 2:
        return most
    error = math.sqrt(float(shares @ (falls - mean) ** 2) / (len(falls) - 1))
    return min(most, NormalDist().cdf(mean / error) if error else 1.0)
