"""How many epochs lie before the networks overfit."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from statistics import NormalDist
from typing import Any, Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, NetworksMissing, PredictionError
from accord.rules._base import Prediction
from accord.rules._context import Context
from accord.rules._epoch_weights import (
    best_agreement,
    measure_likeness,
    predict_regressed,
    repetition,
)
from accord.rules.dawid_skene import DawidSkene
from accord.rules.majority import Majority
from accord.store import RecordReader

Curve = NDArray[np.float64]  # (epoch,)
Curves = NDArray[np.float64]  # (..., epoch)

WINDOW: Final = 3  # epochs that a peak is the mean of
STRETCH: Final = 5  # epochs that a low is the mean of
# How far below the highest point of the smoothed curve an earlier epoch counts as just as high:
# networks whose rate goes to nothing settle, and so agree a little more, whatever they learnt.
AS_HIGH: Final = 0.01
LEAST_FALL: Final = 0.01  # of agreement; less is not worth stopping for, however sure
DRAWS: Final = 2000  # of curves that wobble and never fall


@dataclass(frozen=True)
class Fall:
    """From the first peak to the lowest stretch of epochs after it."""

    peak: int  # the middle of the peak's window
    low: int  # the first epoch of the lowest stretch

    def size(self, curves: Curves) -> Curves:
        """Return how far curves fall between these epochs (...,)."""
        before = smooth(curves)[..., self.peak]
        return np.asarray(before - curves[..., self.low : self.low + STRETCH].mean(axis=-1))


def smooth(curves: Curves, *, window: int = WINDOW) -> Curves:
    """Average each epoch with its neighbours, as many on each side; fewer near the ends.

    >>> smooth(np.array([0.0, 3.0, 0.0, 3.0]))
    array([1.5, 1. , 2. , 1.5])
    """
    epochs = np.arange(curves.shape[-1])
    sums = np.cumsum(np.insert(curves, 0, 0, axis=-1), axis=-1)
    first = np.maximum(epochs - window // 2, 0)
    end = np.minimum(epochs + window // 2 + 1, len(epochs))
    return np.asarray((sums[..., end] - sums[..., first]) / (end - first))


def find_fall(curve: Curve) -> Fall | None:
    """Find the first peak and the lowest stretch after it; None if the peak is too recent.

    >>> find_fall(np.array([0.1, 0.5, 0.9, 0.9, 0.9, 0.7, 0.6, 0.5, 0.5, 0.5, 0.5]))
    Fall(peak=3, low=6)
    """
    smoothed = smooth(curve)
    peak = int(np.flatnonzero(smoothed >= smoothed.max() - AS_HIGH)[0])
    first = peak + WINDOW // 2 + 1
    if first + STRETCH > len(curve):
        return None
    return Fall(peak, first + int(_stretches(curve)[first:].argmin()))


def sure_beyond_wobble(curve: Curve, fall: Fall, *, seed: int) -> float:
    """Return how rarely a curve that only wobbles falls as far anywhere, 0..1.

    The wobble is what smoothing over a stretch takes away, from the peak on: before it the curve
    rises too fast to tell. Each epoch draws its own, turned upside down half of the time.
    """
    wobble = (curve - smooth(curve, window=STRETCH))[max(0, fall.peak - WINDOW // 2) :]
    wobble *= math.sqrt(STRETCH / (STRETCH - 1))  # the mean takes part of it away
    generator = np.random.default_rng(seed)
    shape = DRAWS, len(curve)
    drawn = generator.choice(wobble, shape) * generator.choice([-1.0, 1.0], shape)
    as_far = np.count_nonzero(deepest_fall(drawn) >= fall.size(curve))
    return float(1 - (1 + as_far) / (1 + DRAWS))


def deepest_fall(curves: Curves) -> Curves:
    """Return the largest fall from any smoothed epoch to any stretch after it (...,)."""
    lows = np.minimum.accumulate(_stretches(curves)[..., ::-1], axis=-1)[..., ::-1]
    after = lows[..., WINDOW // 2 + 1 :]  # the lowest stretch after each epoch's window
    return np.asarray((smooth(curves)[..., : after.shape[-1]] - after).max(axis=-1))


def _stretches(curves: Curves) -> Curves:  # (..., start) -> mean of the stretch
    sums = np.cumsum(np.insert(curves, 0, 0, axis=-1), axis=-1)
    return np.asarray((sums[..., STRETCH:] - sums[..., :-STRETCH]) / STRETCH)


GROUPS: Final = 64  # of samples: enough to see how far they differ, few enough to keep


@dataclass(frozen=True)
class EqualPairs:
    """Shares of equal pairs of networks, counted once and kept in three ways."""

    agreement: NDArray[np.float64]  # (epoch,), over all pairs and samples
    by_network: NDArray[np.float64]  # (network, epoch): one network with each of the others
    by_group: NDArray[np.float64]  # (group, epoch): all pairs, on every n-th sample
    sizes: NDArray[np.intp]  # (group,) -> samples
    numbers: tuple[int, ...]  # the networks' own

    @property
    def networks(self) -> int:
        """How many networks there are."""
        return len(self.by_network)

    @property
    def epochs(self) -> int:
        """How many epochs there are."""
        return len(self.agreement)

    def without(self, network: int) -> NDArray[np.float64]:
        """Return the mean over the pairs that do not hold one network (epoch,).

        Raises:
            ChoiceError: fewer than three networks leave no pair.
        """
        if self.networks < 3:
            raise ChoiceError("of two networks neither can be left out; no pair would be left")
        twice_the_rest = self.by_network.sum(axis=0) - 2 * self.by_network[network]
        return np.asarray(twice_the_rest / (self.networks - 2))

    def then(self, later: "EqualPairs") -> "EqualPairs":
        """Return these epochs and later ones of the same networks and samples."""
        return replace(
            self,
            agreement=np.concatenate([self.agreement, later.agreement]),
            by_network=np.concatenate([self.by_network, later.by_network], axis=1),
            by_group=np.concatenate([self.by_group, later.by_group], axis=1),
        )

    def until(self, epochs: int) -> "EqualPairs":
        """Return the first so many epochs alone."""
        return replace(
            self,
            agreement=self.agreement[:epochs],
            by_network=self.by_network[:, :epochs],
            by_group=self.by_group[:, :epochs],
        )


def count_equal_pairs(reader: RecordReader, *, groups: int = GROUPS) -> EqualPairs:
    """Compare every two networks at every epoch, reading the rows once.

    Groups of samples are interleaved: sample s belongs to group s mod `groups`.

    Raises:
        NetworksMissing: there is only one network.

    >>> from accord.store import ArrayReader, SampleInfo
    >>> labels = np.array([[[0, 1]], [[0, 0]], [[0, 1]]], np.uint8)
    >>> count_equal_pairs(ArrayReader(labels, SampleInfo(2, 2))).by_network
    array([[0.75],
           [0.5 ],
           [0.75]])
    """
    if reader.networks < 2:
        raise NetworksMissing(
            f"{reader.name}: agreement between networks needs two; there is one. "
            "Record another network of the same samples"
        )
    groups = min(groups, reader.samples)
    by_network = np.zeros((reader.networks, reader.epochs), np.intp)
    by_group = np.zeros((groups, reader.epochs), np.intp)
    for block in reader.blocks():
        equal = _count_equal(by_network, block.values)
        by_group += sum_by_group(equal, start=block.start, groups=groups)
    sizes = group_sizes(reader.samples, groups=groups)
    others = reader.networks - 1
    pairs = reader.networks * others / 2
    return EqualPairs(
        agreement=by_group.sum(axis=0) / (reader.samples * pairs),
        by_network=by_network / (reader.samples * others),
        by_group=by_group / (sizes[:, None] * pairs),
        sizes=sizes,
        numbers=reader.numbers,
    )


def network_agreement(reader: RecordReader) -> NDArray[np.float64]:
    """Return how often two networks predict the same class, over all pairs and samples (epoch,).

    Raises:
        NetworksMissing: there is only one network.
    """
    return count_equal_pairs(reader, groups=1).agreement


def sum_by_group(
    counts: NDArray[Any],  # (epoch, sample)
    *,
    start: int,
    groups: int,
) -> NDArray[np.intp]:
    """Add up what was counted for each sample, by group (group, epoch).

    Args:
        counts: of consecutive samples.
        start: the number of the first of them.
        groups: how many there are; sample s belongs to group s mod `groups`.

    >>> sum_by_group(np.array([[1, 2, 3]]), start=1, groups=2)
    array([[2],
           [4]])
    """
    members = [counts[:, (group - start) % groups :: groups] for group in range(groups)]
    return np.stack([member.sum(axis=1, dtype=np.intp) for member in members])


def group_sizes(samples: int, *, groups: int) -> NDArray[np.intp]:
    """Return how many samples each group has (group,).

    >>> group_sizes(5, groups=2)
    array([3, 2])
    """
    return np.bincount(np.arange(samples) % groups, minlength=groups)


def _count_equal(
    by_network: NDArray[np.intp],  # (network, epoch), added to
    labels: NDArray[Any],  # (network, epoch, sample)
) -> NDArray[np.uint32]:  # (epoch, sample) -> equal pairs
    equal = np.zeros(labels.shape[1:], np.uint32)
    for first, second in combinations(range(len(labels)), 2):
        same = labels[first] == labels[second]
        shared = np.count_nonzero(same, axis=1)
        by_network[first] += shared
        by_network[second] += shared
        equal += same
    return equal


@dataclass(frozen=True)
class GoodEpochs:
    """The share of samples on which each epoch's majority says what a rule over all epochs says."""

    shares: NDArray[np.float64]  # (epoch,)
    by_group: NDArray[np.float64]  # (group, epoch): the same on every n-th sample
    sizes: NDArray[np.intp]  # (group,) -> samples

    @property
    def best(self) -> int:
        """The best epoch; of equal ones the first."""
        return int(self.shares.argmax())


def good_epochs(reader: RecordReader) -> GoodEpochs:
    """Judge every epoch's majority vote by what all these epochs together say.

    What Dawid–Skene makes of many epochs is more often right than the majority of any one, so that
    the majority closest to it is close to the best one. Give it the epochs before overfit:
    later ones would have a say too. Where its matrices would be too large, the weighted vote
    that it would begin with takes its place.
    """
    judge = _judge(reader)
    sizes = group_sizes(reader.samples, groups=min(GROUPS, reader.samples))
    same = np.zeros((len(sizes), reader.epochs), np.intp)
    for block in Majority().after_each_epoch(reader):
        equal = block.values == judge.labels[block.where]
        same += sum_by_group(equal, start=block.start, groups=len(sizes))
    return GoodEpochs(same.sum(axis=0) / reader.samples, same / sizes[:, None], sizes)


def _judge(reader: RecordReader) -> Prediction:
    try:
        return DawidSkene()(reader)
    except PredictionError:
        return predict_regressed(reader)


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
    reader: RecordReader,
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
    now = judge_rows(reader, pairs, **options)
    if now.alarm:
        return now
    then = next((verdict for verdict in _past(reader, pairs, options) if verdict.alarm), None)
    return now if then is None else replace(then, reason=f"{then.reason}, and rose later")


def _past(reader: RecordReader, pairs: EqualPairs, options: _Options) -> Iterator[Verdict]:
    """Judge the record as it was when agreement had fallen deepest, and after each epoch.

    Majorities are asked of a fall when it is new and when most is known of it, not after each epoch
    in between: where the rate is raised again and again, one fall lasts for long, and each time
    costs up to half a second (5 networks, 100 epochs, 10,000 samples; 31 s for all epochs).
    """
    deepest = _deepest_end(pairs.agreement)
    if deepest < pairs.epochs:
        yield judge_rows(reader.select(epochs=range(deepest)), pairs.until(deepest), **options)
    ends = range(1, pairs.epochs)
    for _, alike in groupby(ends, key=lambda end: find_fall(pairs.agreement[:end])):
        same = list(alike)
        for end in same:
            if end in (same[0], same[-1]):
                yield judge_rows(reader.select(epochs=range(end)), pairs.until(end), **options)
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
    reader: RecordReader,
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
    by_majority = _sure_of_majority(reader, least_fall, seed)
    if by_majority < sure:
        return verdict
    reason = "majorities left what all epochs say, and agreement fell"
    return replace(verdict, alarm=True, reason=reason, sure=by_majority, unsure=False)


def _sure_of_majority(reader: RecordReader, least_fall: float, seed: int) -> float:
    good = good_epochs(reader)
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


EARLY: Final = 0.75  # of the epochs: a fall of agreement by then leaves many to be spoilt
# Of 40 records with such a fall, three lost by leaving the epochs after it out. Those repeated each
# other with 0.46, 0.55 and 0.62, and networks agreed with 0.45, 0.48 and 0.53 at their best; the
# third came after the lines were drawn. On all others epochs repeated each other with 0.65 or more.
REPEATS: Final = 0.65
AGREES: Final = 0.6


@dataclass(frozen=True)
class EarlyOverfit:
    """A fall of agreement that leaves a quarter of the epochs or more after it."""

    before: int  # so many epochs lie before it
    spoils: bool  # whether the votes after it do more harm than good


def epochs_before_overfit(reader: RecordReader) -> int | None:
    """Return how many epochs lie before the fall of agreement; None where it has not fallen."""
    return None if reader.networks == 1 else Context.of(reader).once(_epochs_before_fall)


def _epochs_before_fall(context: Context) -> int | None:
    verdict = judge_record(context, context.once(count_equal_pairs))
    return verdict.before if verdict.alarm and verdict.before else None


def find_early_overfit(reader: RecordReader) -> EarlyOverfit | None:
    """Find an early fall of agreement, and say whether it spoils the epochs after it.

    Networks that have learnt wrong labels by heart repeat them, and outvote what they knew. Where
    networks agree well at their best, a few good epochs tell all that many would. But votes that
    are poor and go on changing even each other out: many are then worth more than few better ones.
    """
    before = epochs_before_overfit(reader)
    if before is None or before > EARLY * reader.epochs:
        return None
    likeness = measure_likeness(reader)
    repeated = repetition(likeness.within[before:, before:])
    return EarlyOverfit(before, repeated >= REPEATS or best_agreement(likeness) >= AGREES)


def epochs_before_early_overfit(reader: RecordReader) -> int | None:
    """Return how many epochs lie before an early fall that spoils the rest; None if none does."""
    found = find_early_overfit(reader)
    return found.before if found is not None and found.spoils else None
