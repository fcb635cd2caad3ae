"""Detection of overfitting from curves that fall.

`find_fall` finds the peak of a curve and the lowest stretch after it; `judge_fall` decides whether
such a fall is more than chance. `detect_overfitting` does so for the agreement between networks.
`find_early_overfitting` decides for rules whether the epochs after it do more harm than good.
"""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.rules._analysis_context import Context
from accord.rules._em import fits_in_memory
from accord.rules._epoch_weights import best_agreement, measure_likeness, repetition
from accord.rules._pair_agreement import (
    GROUPS,
    PairAgreement,
    group_sizes,
    measure_pair_agreement,
    sum_by_group,
)
from accord.rules.dawid_skene import fit_dawid_skene
from accord.rules.majority import Majority
from accord.store import RecordReader

Curve = NDArray[np.float64]  # (epoch,)
Curves = NDArray[np.float64]  # (..., epoch)

WINDOW: Final = 3  # epochs that a peak is the mean of
STRETCH: Final = 5  # epochs that a low is the mean of
# An earlier epoch this close to the highest point of the smoothed curve counts as just as high:
# networks whose learning rate decays settle, and agree a little more whatever they learnt.
AS_HIGH: Final = 0.01
LEAST_FALL: Final = 0.01  # of agreement, smaller falls are ignored
DRAWS: Final = 2000  # of curves that fluctuate and never fall
SURE: Final = 0.99  # the confidence that an alarm needs
DEFAULTS: Final = (SURE, LEAST_FALL, 0)  # arguments of `detect_overfitting`, 0 is the seed
EARLY: Final = 0.75  # of the epochs: a fall of agreement by then may spoil many
# Of 40 records with such a fall, three lost by leaving the epochs after it out. Those repeated each
# other with 0.46, 0.55 and 0.62, and networks agreed with 0.45, 0.48 and 0.53 at their best; the
# third was recorded after the limits were set. On all others epochs repeated each other with 0.65
# or more.
REPEATS: Final = 0.65
AGREES: Final = 0.6


@dataclass(frozen=True)
class Fall:
    """Fall of a curve after its first peak."""

    peak: int  # the middle of the peak's window
    low: int  # the first epoch of the lowest stretch

    def size(self, curves: Curves) -> Curves:
        """Compute the size of the fall in each curve."""
        before = smooth(curves)[..., self.peak]
        return np.asarray(before - curves[..., self.low : self.low + STRETCH].mean(axis=-1))


def smooth(curves: Curves, *, window: int = WINDOW) -> Curves:
    """Compute a centred moving average.

    >>> smooth(np.array([0.0, 3.0, 0.0, 3.0]))
    array([1.5, 1. , 2. , 1.5])
    """
    epochs = np.arange(curves.shape[-1])
    sums = np.cumsum(np.insert(curves, 0, 0, axis=-1), axis=-1)
    first = np.maximum(epochs - window // 2, 0)
    end = np.minimum(epochs + window // 2 + 1, len(epochs))
    return np.asarray((sums[..., end] - sums[..., first]) / (end - first))


def find_fall(curve: Curve) -> Fall | None:
    """Find the fall of a curve after its first peak.

    >>> find_fall(np.array([0.1, 0.5, 0.9, 0.9, 0.9, 0.7, 0.6, 0.5, 0.5, 0.5, 0.5]))
    Fall(peak=3, low=6)
    """
    smoothed = smooth(curve)
    peak = int(np.flatnonzero(smoothed >= smoothed.max() - AS_HIGH)[0])
    first = peak + WINDOW // 2 + 1
    if first + STRETCH > len(curve):
        return None
    return Fall(peak, first + int(_stretches(curve)[first:].argmin()))


def certainty_beyond_fluctuation(curve: Curve, fall: Fall, *, seed: int) -> float:
    """Estimate the confidence that a fall exceeds random fluctuation.

    The fluctuation is what smoothing over a stretch removes, from the peak on: before it the curve
    rises too fast. Each epoch draws one value, with either sign.
    """
    fluctuation = (curve - smooth(curve, window=STRETCH))[max(0, fall.peak - WINDOW // 2) :]
    fluctuation *= math.sqrt(STRETCH / (STRETCH - 1))  # the mean removes part of it
    generator = np.random.default_rng(seed)
    shape = DRAWS, len(curve)
    drawn = generator.choice(fluctuation, shape) * generator.choice([-1.0, 1.0], shape)
    as_far = np.count_nonzero(deepest_fall(drawn) >= fall.size(curve))
    return float(1 - (1 + as_far) / (1 + DRAWS))


def deepest_fall(curves: Curves) -> Curves:
    """Compute the largest fall of each curve."""
    lows = np.minimum.accumulate(_stretches(curves)[..., ::-1], axis=-1)[..., ::-1]
    after = lows[..., WINDOW // 2 + 1 :]  # the lowest stretch after each epoch's window
    return np.asarray((smooth(curves)[..., : after.shape[-1]] - after).max(axis=-1))


def _stretches(curves: Curves) -> Curves:  # (..., start) -> mean of the stretch
    sums = np.cumsum(np.insert(curves, 0, 0, axis=-1), axis=-1)
    return np.asarray((sums[..., STRETCH:] - sums[..., :-STRETCH]) / STRETCH)


@dataclass(frozen=True)
class Verdict:
    """Result of testing for overfitting."""

    alarm: bool
    reason: str
    fall: float = 0.0  # of the curve, from its peak to the lowest stretch after it
    sure: float = 0.0  # 1 minus the probability of such a fall by chance
    before: int | None = None  # the first epoch of that stretch, None if it does not count
    what: str = "agreement"  # that fell


@dataclass(frozen=True)
class EpochScores:
    """Agreement of majority votes with reference labels."""

    shares: NDArray[np.float64]  # (epoch,), of the samples
    by_group: NDArray[np.float64]  # (group, epoch), the same on every n-th sample
    sizes: NDArray[np.intp]  # (group,) -> samples

    @property
    def best(self) -> int:
        """First epoch with the highest score."""
        return int(self.shares.argmax())

    def first(self, epochs: int) -> "EpochScores":
        return replace(self, shares=self.shares[:epochs], by_group=self.by_group[:, :epochs])

    def judge(self, what: str, sure: float, least_fall: float, seed: int = 0) -> Verdict:
        """Test whether the shares have fallen."""
        curves = self.shares, self.by_group, self.sizes
        return judge_fall(*curves, sure=sure, least_fall=least_fall, seed=seed, what=what)


def score_epochs(reader: RecordReader, labels: NDArray[Any]) -> EpochScores:
    """Compute the agreement of majority votes with reference labels."""
    sizes = group_sizes(reader.samples, groups=min(GROUPS, reader.samples))
    same = np.zeros((len(sizes), reader.epochs), np.intp)
    for block in Majority().after_each_epoch(reader):
        equal = block.values == labels[block.where]
        same += sum_by_group(equal, start=block.start, groups=len(sizes))
    return EpochScores(same.sum(axis=0) / reader.samples, same / sizes[:, None], sizes)


def detect_overfitting(context: Context, sure: float, least_fall: float, seed: int) -> Verdict:
    """Detect a fall of the agreement between networks, now or in an earlier state of the record.

    Networks that have memorised wrong labels may settle and agree more than ever before; while
    they trained, agreement fell first. The record is judged as it was when agreement had fallen
    furthest, and then after each epoch, from the first on.

    Where a fall lacks confidence alone, the share of majority votes that equal the labels of
    Dawid–Skene must have fallen as well. It raises no alarm by itself: the majority of networks
    that learn slowly also moves away from those labels, while they agree ever more.
    """
    pairs = context.once(measure_pair_agreement).levelled()
    options = sure, least_fall, seed
    falls = [find_fall(pairs.agreement[:end]) for end in range(1, pairs.epochs + 1)]
    sizes = [0.0 if fall is None else float(fall.size(pairs.agreement)) for fall in falls]
    deepest = int(np.argmax(sizes)) + 1
    # A comparison takes half a second with 5 networks, 100 epochs and 10,000 samples: majority
    # votes are compared where a fall is new or ends, and not at each epoch of one that lasts.
    changes = {end for end in range(2, pairs.epochs) if falls[end - 2] != falls[end - 1]}
    compared = {pairs.epochs, deepest} | changes | {end - 1 for end in changes}
    verdicts = {}
    for end in dict.fromkeys((pairs.epochs, deepest, *range(1, pairs.epochs))):
        verdicts[end] = judge_agreement(pairs.first(end), *options)
        if end in compared:
            verdicts[end] = _judge_majority(context, verdicts[end], end, *options)
        if verdicts[end].alarm:
            later = "" if end == pairs.epochs else ", and rose later"
            return replace(verdicts[end], reason=verdicts[end].reason + later)
    return verdicts[pairs.epochs]


def _judge_majority(
    context: Context, verdict: Verdict, end: int, sure: float, least_fall: float, seed: int
) -> Verdict:
    if verdict.alarm or verdict.before is None or not fits_in_memory(context):
        return verdict
    context = context.select(epochs=range(end))
    labels = context.once(fit_dawid_skene).prediction.labels
    shares = score_epochs(context, labels).judge("the majority", sure, least_fall, seed)
    if not shares.alarm:
        return verdict
    reason = "agreement fell, and majority votes moved away from the labels of all epochs"
    return replace(verdict, alarm=True, reason=reason, sure=shares.sure)


def judge_agreement(
    pairs: PairAgreement, sure: float = SURE, least_fall: float = LEAST_FALL, seed: int = 0
) -> Verdict:
    """Test whether agreement has fallen."""
    pairs = pairs.levelled()
    curves = pairs.agreement, pairs.by_group, pairs.sizes
    verdict = judge_fall(*curves, sure=sure, least_fall=least_fall, seed=seed)
    return without_one_network(verdict, pairs, least_fall)


def without_one_network(verdict: Verdict, pairs: PairAgreement, least_fall: float) -> Verdict:
    """Withdraw an alarm if only the agreement with one network has fallen."""
    pairs = pairs.levelled()
    fall = find_fall(pairs.agreement)
    if fall is None or fall.size(pairs.agreement) < least_fall or pairs.networks < 3:
        return verdict
    left = [float(fall.size(pairs.without(network))) for network in range(pairs.networks)]
    if min(left) >= least_fall:
        return verdict
    number = pairs.numbers[int(np.argmin(left))]
    reason = f"only the agreement with network {number} has fallen"
    return replace(verdict, alarm=False, reason=reason, before=None)


def judge_fall(
    curve: Curve,
    by_group: Curves,  # (group, epoch)
    group_sizes: NDArray[np.intp],  # (group,) -> samples
    *,
    sure: float = SURE,
    least_fall: float = LEAST_FALL,
    seed: int = 0,
    what: str = "agreement",
) -> Verdict:
    """Test whether a curve has fallen beyond chance."""
    fall = find_fall(curve)
    if fall is None:
        return Verdict(False, f"the peak of {what} is too recent")
    size = float(fall.size(curve))
    if size < least_fall:
        return Verdict(False, f"{what} has not fallen", size)
    by_samples = certainty_beyond_samples(by_group, group_sizes, fall)
    certain = min(by_samples, certainty_beyond_fluctuation(curve, fall, seed=seed))
    if certain >= sure:
        reason = f"{what} fell, beyond the scatter of samples and the fluctuation of epochs"
        return Verdict(True, reason, size, certain, fall.low, what)
    limit = "the scatter of samples" if by_samples < sure else "the fluctuation of epochs"
    return Verdict(False, f"{what} fell no further than {limit} explains", size, certain, fall.low)


def certainty_beyond_samples(
    by_group: NDArray[np.float64],  # (group, epoch)
    group_sizes: NDArray[np.intp],
    fall: Fall,
) -> float:
    """Estimate the confidence that a fall exceeds sampling noise."""
    falls = fall.size(by_group)
    shares = group_sizes / group_sizes.sum()
    mean = float(shares @ falls)
    limit = 1 - 0.5 ** len(falls)  # the confidence of as many coins that all show heads
    if len(falls) < 2:
        return limit
    error = math.sqrt(float(shares @ (falls - mean) ** 2) / (len(falls) - 1))
    return min(limit, NormalDist().cdf(mean / error) if error else 1.0)


@dataclass(frozen=True)
class EarlyOverfitting:
    """Early fall of the agreement between networks."""

    before: int  # the number of epochs before it
    spoils: bool  # whether the votes after it do more harm than good


def epochs_before_overfitting(reader: RecordReader) -> int | None:
    """Count the epochs before the agreement falls."""
    if reader.networks == 1:
        return None
    verdict = Context.of(reader).once(detect_overfitting, *DEFAULTS)
    return verdict.before if verdict.alarm and verdict.before else None


def first_epochs(context: Context, epochs: int) -> Context:
    """Select the first epochs of a context."""
    return context.select(epochs=range(epochs))


def find_early_overfitting(reader: RecordReader) -> EarlyOverfitting | None:
    """Find an early fall of agreement and assess its effect.

    Networks that have memorised wrong labels repeat them, and outvote what they knew. Where
    networks agree well at their best, a few good epochs suffice. But votes that are poor and keep
    changing average out: then many are worth more than a few better ones.
    """
    context = Context.of(reader)
    before = epochs_before_overfitting(context)
    if before is None or before > EARLY * context.epochs:
        return None
    likeness = context.once(measure_likeness)
    repeated = repetition(likeness.within[before:, before:])
    return EarlyOverfitting(before, repeated >= REPEATS or best_agreement(likeness) >= AGREES)


def epochs_before_early_overfitting(reader: RecordReader) -> int | None:
    """Count the epochs before a harmful early fall of agreement."""
    found = find_early_overfitting(reader)
    return found.before if found is not None and found.spoils else None
