"""What the votes say for each sample's given label, and for the classes that rival it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.kernels import count_votes, equally_spaced
from accord.kernels._blocks import spans
from accord.kernels._numpy_loops import count_matching
from accord.kernels._votes import Weighted, count_weighted
from accord.store import RecordReader

TINY: Final = 1e-9  # what is left of equal shares after rounding

Shares = NDArray[np.float64]  # (epoch,)


def independent_pairs(
    said: NDArray[np.intp],  # (network, epoch, class): what contradictions say
    agreed: NDArray[np.intp],  # (network, epoch, class): votes for given labels, by label
    sizes: NDArray[np.intp],  # (class,): samples by given label
) -> tuple[Shares, Shares]:
    """Return the pairs that would say the same, and their share of those that contradict.

    That is, if each network contradicted every label that is given alike with the same chance,
    its own, and said each other class as often as it does in all its contradictions.
    With two classes, whoever contradicts a label says the same: the second share is 1.
    """
    rates = np.divide(sizes - agreed, sizes, out=np.zeros(agreed.shape), where=sizes > 0)
    each = said / np.maximum(said.sum(axis=2, keepdims=True), 1)
    others = np.divide(rates, 1 - each, out=np.zeros(rates.shape), where=rates > 0)
    same, both = np.zeros(said.shape[1]), np.zeros(said.shape[1])
    pairs = list(combinations(range(len(said)), 2))
    for one, other in pairs:
        alike = each[one] * each[other]
        alike = alike.sum(axis=1, keepdims=True) - alike
        same += (others[one] * others[other] * alike) @ sizes
        both += (rates[one] * rates[other]) @ sizes
    share = np.divide(same, both, out=np.zeros(same.shape), where=both > 0)
    return same / (len(pairs) * sizes.sum()), share


def beyond_chance(same: Shares, independent: Shares, *, alike: Shares, share: Shares) -> Shares:
    """Return the share of pairs that say the same because of what they see.

    On a part of the samples all networks contradict the label with one class; on all others
    each contradicts it on its own. That part is looked for: with it, as many pairs say the
    same as do, and as many votes contradict labels. Independent networks leave none:

    >>> one = np.array([1.0])
    >>> beyond_chance(0.25 * one, 0.25 * one, alike=one, share=0.5 * one)
    array([0.])

    Two classes, 40 % wrong labels and no mistake: all pairs that contradict see it.

    >>> beyond_chance(0.4 * one, 0.16 * one, alike=one, share=0.4 * one).round(6)
    array([0.4])

    Args:
        same: of pairs that contradict a label with the same class.
        independent: of pairs that would do so if no network knew of the other.
        alike: of two contradictions of one label that say the same, then.
        share: of votes that contradict labels.
    """
    # With x for the part: same - x = alike · (independent / alike - 2 · share · x + x²) / (1 - x)
    excess = np.where(same - independent > TINY, same - independent, 0)
    linear = np.maximum(1 + same - 2 * alike * share, 0)
    total = linear + np.sqrt(np.maximum(linear**2 - 4 * (1 - alike) * excess, 0))
    part = np.divide(2 * excess, total, out=np.zeros(same.shape), where=total > 0)
    return np.asarray(np.minimum(part, same))


MOST_SAMPLES: Final = 2_000  # that are looked at, evenly spaced
MOST_EPOCHS: Final = 32  # whose votes count; neighbours say much the same

# Votes are added up as whole numbers, so that their order is without effect. On development
# records, eight steps ranked as well as weights that were not rounded; four did not.
STEPS: Final = 8


@dataclass(frozen=True)
class Contradiction:
    """How often networks contradict the given label, and how often in the same way."""

    share: NDArray[np.float64]  # (epoch,): of the votes that contradict it
    both: NDArray[np.float64]  # (epoch,): of pairs of networks that both contradict it
    same: NDArray[np.float64]  # (epoch,): of pairs that contradict it with one and the same class
    chance: NDArray[np.float64]  # (epoch,): of pairs that do so by chance
    alike: NDArray[np.float64]  # (epoch,): of two contradictions, by chance; 1 with two classes
    excess: NDArray[np.float64]  # (epoch,): of `same` over independent votes, in standard errors

    @property
    def beyond(self) -> NDArray[np.float64]:
        """The share of pairs that contradict a label with one class beyond chance (epoch,)."""
        return np.maximum(self.same - self.chance, 0)

    @property
    def weights(self) -> NDArray[np.float64]:
        """What each epoch's votes are worth (epoch,): between 0 and 1.

        Networks that know the given labels by heart never contradict them, and networks that
        know nothing contradict them at random. Between the two are the epochs that tell: two
        networks contradict the label, and agree on the class. The weight is the share of
        pairs that do so beyond chance, times that share among the pairs that contradict it.

        Where contradictions are alike anyway, as with two classes, a vote by heart cannot be
        told from one by insight: epochs that tell less than the best count for less still.
        """
        none = np.zeros(len(self.both))
        worth = np.divide(self.beyond**2, self.both, out=none, where=self.both > 0)
        return np.asarray(worth * (worth / (worth.max() or 1.0)) ** self.alike)

    @property
    def whole_weights(self) -> NDArray[np.intp]:
        """The weights as whole numbers (epoch,), in eighths of the largest.

        Of more than 32 epochs that are worth something, 32 are kept, equally spaced.
        """
        weights = self.weights
        most = weights.max() or 1.0
        rounded = np.asarray(np.rint(weights * (STEPS / most)), np.intp)
        useful = np.flatnonzero(rounded)
        if len(useful) <= MOST_EPOCHS:
            return rounded
        kept = useful[equally_spaced(len(useful), MOST_EPOCHS)]
        whole = np.zeros_like(rounded)
        whole[kept] = rounded[kept]
        return whole


def measure_contradiction(reader: RecordReader, given: NDArray[Any]) -> Contradiction:
    """Compare all pairs of networks at each epoch, on at most 2,000 samples, evenly spaced."""
    some = slice(None, None, -(-reader.samples // MOST_SAMPLES))
    labels = reader.read_labels(range(reader.networks), range(reader.epochs), some)
    labels, known, classes = _renumbered(labels, given[some], classes=reader.classes)
    votes = np.ascontiguousarray(labels.transpose(0, 2, 1))  # sums down columns are fast
    against = votes != known.astype(votes.dtype)[:, np.newaxis]
    said = _count_said(votes, against, classes=classes)
    agreed = _count_all(votes, classes=classes) - said
    sizes = np.bincount(known, minlength=classes)
    both, same = _count_pairs(votes, against)
    return _shares(said, agreed, sizes, both, same)


def _renumbered(
    labels: NDArray[Any],  # (network, epoch, sample)
    given: NDArray[Any],  # (sample,)
    *,
    classes: int,
) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Leave out classes that do not occur, if there are more classes than samples."""
    if classes <= len(given):
        return labels, given, classes
    occurs = np.zeros(classes, bool)
    occurs[labels], occurs[given] = True, True
    number = np.cumsum(occurs) - 1
    return number[labels], number[given], int(occurs.sum())


def _count_said(
    votes: NDArray[Any],  # (network, sample, epoch)
    against: NDArray[np.bool_],  # the same
    *,
    classes: int,
) -> NDArray[np.intp]:  # (network, epoch, class)
    """Count what each network says against the given labels, class by class."""
    agreeing = np.min_scalar_type(classes).type(classes)  # one class more, larger than all others
    marked = np.maximum(votes, ~against * agreeing)
    return _count_all(marked, classes=classes + 1)[:, :, :classes]


def _count_all(votes: NDArray[Any], *, classes: int) -> NDArray[np.intp]:  # (network, epoch, class)
    networks, samples, epochs = votes.shape
    by_sample = votes.transpose(1, 0, 2).reshape(samples, networks * epochs)
    return count_votes(by_sample, classes=classes).reshape(networks, epochs, classes)


def _count_pairs(
    votes: NDArray[Any],  # (network, sample, epoch)
    against: NDArray[np.bool_],  # the same
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:  # (epoch,) twice
    """Count pairs of networks that both contradict a label, and those that do so alike."""
    networks, _, epochs = votes.shape
    both, same = np.zeros(epochs, np.intp), np.zeros(epochs, np.intp)
    for one, other in combinations(range(networks), 2):
        both += _count_true(against[one] & against[other])
        same += _count_true(against[one] & (votes[one] == votes[other]))
    return both, same


def _count_true(flags: NDArray[np.bool_]) -> NDArray[np.intp]:  # (sample, epoch) -> (epoch,)
    return count_matching(flags.view(np.uint8), np.uint8(1))


def _shares(
    said: NDArray[np.intp],  # (network, epoch, class)
    agreed: NDArray[np.intp],  # (network, epoch, class)
    sizes: NDArray[np.intp],  # (class,)
    both: NDArray[np.intp],  # (epoch,)
    same: NDArray[np.intp],  # (epoch,)
) -> Contradiction:
    networks, samples = len(said), int(sizes.sum())
    pairs = samples * networks * (networks - 1) / 2
    share, same_share = said.sum(axis=(0, 2)) / (networks * samples), same / pairs
    independent, alike = independent_pairs(said, agreed, sizes)
    beyond = beyond_chance(same_share, independent, alike=alike, share=share)
    return Contradiction(
        share=share,
        both=both / pairs,
        same=same_share,
        chance=same_share - beyond,
        alike=alike,
        excess=_in_errors(same, pairs * independent),
    )


def _in_errors(
    found: NDArray[np.intp], expected: NDArray[np.float64]
) -> NDArray[np.float64]:  # (epoch,) each
    # The error of a count is its root. Of 7,200 single epochs of random votes (2 to 10 networks and
    # classes, 60 to 2,000 samples), two lie above 3.
    return np.asarray((found - expected) / np.sqrt(np.maximum(found, 1)))


CELLS_AT_ONCE: Final = 2**18  # of a table (sample, class): small enough to stay in cache
MOST_RIVALS: Final = 4  # classes that are kept for a sample, besides its given label

# The given label has a vote of its own, whatever the networks say. Where they hardly ever
# contradict labels together, it outweighs what little they say: so a clean record is not torn
# apart. Epochs that tell weigh 1.2 to 3.8 together on noisy development records, 0.05 on a
# clean one.
OWN_VOTE: Final = 0.1


@dataclass(frozen=True)
class Evidence:
    """Shares of the weighted votes, for the given label and for its rivals."""

    candidates: NDArray[np.intp]  # (sample, candidate): the given label, then the rivals
    shares: NDArray[np.float64]  # (sample, candidate)
    predicted: NDArray[np.bool_]  # (class,): whether any network does, at the epochs that count
    believed: float  # what the votes count for, beside the given label's own; 0..1
    votes: int  # on each sample that count

    def __len__(self) -> int:
        return len(self.candidates)

    @cached_property
    def cells(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where each candidate meets the given label, and each rival, in a flat (true, class).

        The first is (sample, candidate), the second (sample, candidate, rival).
        """
        rows = self.candidates * len(self.predicted)
        of_rivals = rows[:, :, np.newaxis] + self.candidates[:, np.newaxis, 1:]
        return rows + self.candidates[:, :1], of_rivals

    def part(self, samples: slice) -> "Evidence":
        """Return the evidence on some of the samples."""
        return replace(self, candidates=self.candidates[samples], shares=self.shares[samples])

    def renumbered(self) -> "Evidence":
        """Return the evidence with the classes left out that are nobody's candidate.

        Those that are left are numbered in their order; tables (class, class) become smaller.
        """
        occurs = np.zeros(len(self.predicted), bool)
        occurs[self.candidates] = True
        number = np.cumsum(occurs) - 1
        return replace(self, candidates=number[self.candidates], predicted=self.predicted[occurs])


def gather_evidence(
    reader: RecordReader, given: NDArray[Any], contradiction: Contradiction
) -> Evidence:
    """Weigh all votes, one part of the samples after the other.

    Keeps four rivals a sample at most, however many classes there are, the smaller first.
    """
    whole, weights = contradiction.whole_weights, contradiction.weights
    candidates = np.empty((reader.samples, 1 + min(MOST_RIVALS, reader.classes - 1)), np.intp)
    votes = np.empty(candidates.shape, np.intp)
    candidates[:, 0] = given
    predicted = np.zeros(reader.classes, bool)
    for where, table in weigh_votes(reader, whole):
        predicted |= table.any(axis=0)
        votes[where, 0], candidates[where, 1:], votes[where, 1:] = split_votes(
            table, given[where], candidates.shape[1] - 1
        )
    return Evidence(
        candidates=candidates,
        shares=votes / max(1, int(whole.sum()) * reader.networks),
        predicted=predicted,
        believed=float(weights.sum() / (weights.sum() + OWN_VOTE)),
        votes=int(np.count_nonzero(whole)) * reader.networks,
    )


def weigh_votes(
    reader: RecordReader, weights: NDArray[np.intp]
) -> Iterator[tuple[slice, Weighted]]:
    """Weigh the votes of one part of the samples after another, as tables (sample, class).

    Epochs that weigh nothing are not read, but for the first if none weighs anything.
    """
    telling = np.flatnonzero(weights) if weights.any() else np.zeros(1, np.intp)
    chosen = reader.select(epochs=telling.tolist())
    for block in chosen.blocks():
        for span in spans(block.stop - block.start, max(1, CELLS_AT_ONCE // reader.classes)):
            where = slice(block.start + span.start, block.start + span.stop)
            votes = block.values[:, :, span]
            yield where, count_weighted(votes, weights[telling], classes=reader.classes)


def split_votes(
    table: NDArray[Any],  # (sample, class): votes
    given: NDArray[Any],  # (sample,)
    most: int,
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the given label's votes, and the other classes with the most votes, and theirs.

    Of classes with equal votes the smaller ones are kept; those kept are in their own order.

    >>> split_votes(np.array([[1, 5, 3, 3]]), np.array([1]), 2)
    (array([5]), array([[2, 3]]), array([[3, 3]]))
    """
    samples, classes = table.shape
    each = np.arange(samples)
    own = table[each, given]
    class_bits, vote_bits = (classes - 1).bit_length(), int(table.max()).bit_length()
    kind, last = np.int32 if class_bits + vote_bits < 32 else np.int64, (1 << class_bits) - 1
    # The class is written into the votes: no two are equal, and smaller classes are larger.
    # Whole keys are sorted, which takes a quarter of the time of sorting positions.
    keys = (table.astype(kind) << class_bits) | (last - np.arange(classes)).astype(kind)
    keys[each, given] = -1
    best = np.partition(keys, classes - most, axis=1)[:, classes - most :]
    by_class = np.sort(((last - (best & last)) << vote_bits) | (best >> class_bits), axis=1)
    rivals, votes = by_class >> vote_bits, by_class & ((1 << vote_bits) - 1)
    return own.astype(np.intp), rivals.astype(np.intp), votes.astype(np.intp)


def count_moves(
    given: NDArray[Any], proposed: NDArray[Any], *, classes: int
) -> NDArray[np.intp]:  # (given, class)
    """Count the samples by their given label and the one that is proposed for it."""
    cells = given.astype(np.intp) * classes + proposed
    return np.bincount(cells, minlength=classes**2).reshape(classes, classes)
