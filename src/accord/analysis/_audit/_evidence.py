"""Utilities for collecting weighted votes on the given labels.

Early in training, two networks that contradict a label with the same class do so because they see
it; later, networks repeat memorised labels. `measure_contradiction` counts such pairs at each
epoch and weights the epochs by how many exceed chance. `discriminant_weights` weights them by how
well their votes separate wrong labels from right ones, once it is estimated which are wrong.
`collect_evidence` adds up the weighted votes for each sample's given label and its strongest
alternatives.
"""

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
from accord.rules.leave_one_out import nonnegative_solution
from accord.store import RecordReader

TINY: Final = 1e-9  # rounding error of equal shares

Shares = NDArray[np.float64]  # (epoch,)


def independent_pairs(
    contradicting: NDArray[np.intp],  # (network, epoch, class), contradicting votes
    agreed: NDArray[np.intp],  # (network, epoch, class), votes for given labels
    sizes: NDArray[np.intp],  # (class,), samples by given label
) -> tuple[Shares, Shares]:
    """Estimate the chance agreement of independent pairs of networks.

    Assumes that networks contradict labels independently: each with its own rate for each given
    label, and with each class as often as in all its contradictions. With two classes all
    contradictions agree, so that the second share is 1.
    """
    rates = np.divide(sizes - agreed, sizes, out=np.zeros(agreed.shape), where=sizes > 0)
    each = contradicting / np.maximum(contradicting.sum(axis=2, keepdims=True), 1)
    others = np.divide(rates, 1 - each, out=np.zeros(rates.shape), where=rates > 0)
    same, both = np.zeros(contradicting.shape[1]), np.zeros(contradicting.shape[1])
    pairs = list(combinations(range(len(contradicting)), 2))
    for one, other in pairs:
        alike = each[one] * each[other]
        alike = alike.sum(axis=1, keepdims=True) - alike
        same += (others[one] * others[other] * alike) @ sizes
        both += (rates[one] * rates[other]) @ sizes
    share = np.divide(same, both, out=np.zeros(same.shape), where=both > 0)
    return same / (len(pairs) * sizes.sum()), share


def beyond_chance(same: Shares, independent: Shares, *, alike: Shares, share: Shares) -> Shares:
    """Compute the fraction of pairs that contradict a label beyond chance.

    Model: on a part of the samples all networks contradict the label with one class; on the
    others they contradict it independently. Solves for that part, given the share of pairs that
    agree (`same`; `independent` for independent networks), the share of contradicting pairs that
    agree for independent networks (`alike`), and the share of contradicting votes.
    """
    # With x the part: same - x = alike · (independent / alike - 2 · share · x + x²) / (1 - x)
    excess = np.where(same - independent > TINY, same - independent, 0)
    linear = np.maximum(1 + same - 2 * alike * share, 0)
    total = linear + np.sqrt(np.maximum(linear**2 - 4 * (1 - alike) * excess, 0))
    part = np.divide(2 * excess, total, out=np.zeros(same.shape), where=total > 0)
    return np.asarray(np.minimum(part, same))


MOST_SAMPLES: Final = 2_000  # compared, evenly spaced
MOST_EPOCHS: Final = 32  # with a weight, as neighbours are similar

# Weights are integers, so that sums do not depend on the order of the votes. On development
# records, eight steps ranked as well as weights that were not rounded; four did not.
STEPS: Final = 8


@dataclass(frozen=True)
class Contradiction:
    share: NDArray[np.float64]  # (epoch,), of the votes that contradict it
    both: NDArray[np.float64]  # (epoch,), of pairs of networks that both contradict it
    same: NDArray[np.float64]  # (epoch,), of pairs that contradict it with the same class
    chance: NDArray[np.float64]  # (epoch,), of pairs that do so by chance
    alike: NDArray[np.float64]  # (epoch,), of contradicting pairs that agree by chance
    excess: NDArray[np.float64]  # (epoch,), of `same` over chance, in standard errors

    @property
    def beyond(self) -> NDArray[np.float64]:
        """Fraction of pairs that contradict a label beyond chance at each epoch."""
        return np.maximum(self.same - self.chance, 0)

    @property
    def disagreement(self) -> NDArray[np.float64]:
        """Share of pairs of networks that predict different classes at each epoch."""
        return 2 * self.share - self.both - self.same

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each epoch between 0 and 1.

        Networks that have memorised the given labels never contradict them, and untrained
        networks contradict them at random. In the informative epochs between, two networks
        contradict the label and agree on the class. The weight is the share of pairs that do so
        beyond chance, times that share among the pairs that contradict it.

        Where contradictions agree anyway, as with two classes, memorised votes cannot be
        distinguished: epochs below the best are weighted down further.
        """
        none = np.zeros(len(self.both))
        worth = np.divide(self.beyond**2, self.both, out=none, where=self.both > 0)
        return np.asarray(worth * (worth / (worth.max() or 1.0)) ** self.alike)


def integer_weights(weights: Shares) -> NDArray[np.intp]:  # (epoch,)
    """Round weights to eighths of the largest.

    Of more than 32 epochs with a weight, 32 are kept, equally spaced.
    """
    most = weights.max() or 1.0
    rounded = np.asarray(np.rint(weights * (STEPS / most)), np.intp)
    useful = np.flatnonzero(rounded)
    if len(useful) > MOST_EPOCHS:
        kept = useful[equally_spaced(len(useful), MOST_EPOCHS)]
        rounded[np.setdiff1d(useful, kept)] = 0
    return rounded


def measure_contradiction(reader: RecordReader, given: NDArray[Any]) -> Contradiction:
    some = slice(None, None, -(-reader.samples // MOST_SAMPLES))
    labels = reader.read_labels(range(reader.networks), range(reader.epochs), some)
    labels, known, classes = _renumbered(labels, given[some], classes=reader.classes)
    votes = np.ascontiguousarray(labels.transpose(0, 2, 1))  # sums over samples are fast
    against = votes != known.astype(votes.dtype)[:, np.newaxis]
    # Votes for given labels are counted as one more class, the largest.
    marked = np.maximum(votes, ~against * np.min_scalar_type(classes).type(classes))
    contradicting = _count_all(marked, classes=classes + 1)[:, :, :classes]
    agreed = _count_all(votes, classes=classes) - contradicting
    sizes = np.bincount(known, minlength=classes)
    both, same = _count_pairs(votes, against)
    pairs = len(known) * reader.networks * (reader.networks - 1) / 2
    share = contradicting.sum(axis=(0, 2)) / (reader.networks * len(known))
    independent, alike = independent_pairs(contradicting, agreed, sizes)
    return Contradiction(
        share=share,
        both=both / pairs,
        same=same / pairs,
        chance=same / pairs - beyond_chance(same / pairs, independent, alike=alike, share=share),
        alike=alike,
        # The standard error of a count is its root. Of 7,200 single epochs of random votes (2 to
        # 10 networks and classes, 60 to 2,000 samples), two lie above 3.
        excess=(same - pairs * independent) / np.sqrt(np.maximum(same, 1)),
    )


def _renumbered(
    labels: NDArray[Any],  # (network, epoch, sample)
    given: NDArray[Any],  # (sample,)
    *,
    classes: int,
) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Remove unused classes from the labels."""
    if classes <= len(given):
        return labels, given, classes
    occurs = np.zeros(classes, bool)
    occurs[labels], occurs[given] = True, True
    number = np.cumsum(occurs) - 1
    return number[labels], number[given], int(occurs.sum())


def _count_all(votes: NDArray[Any], *, classes: int) -> NDArray[np.intp]:  # (network, epoch, class)
    networks, samples, epochs = votes.shape
    by_sample = votes.transpose(1, 0, 2).reshape(samples, networks * epochs)
    return count_votes(by_sample, classes=classes).reshape(networks, epochs, classes)


def _count_pairs(
    votes: NDArray[Any],  # (network, sample, epoch)
    against: NDArray[np.bool_],  # the same
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:  # (epoch,) twice
    networks, _, epochs = votes.shape
    both, same = np.zeros(epochs, np.intp), np.zeros(epochs, np.intp)
    for one, other in combinations(range(networks), 2):
        alike = against[one] & (votes[one] == votes[other])  # (sample, epoch)
        both += count_matching((against[one] & against[other]).view(np.uint8), np.uint8(1))
        same += count_matching(alike.view(np.uint8), np.uint8(1))
    return both, same


DISCRIMINATED: Final = 10_000  # samples that discriminants are fitted on, evenly spaced
# Of the mean variance of an epoch's votes. On CIFAR-100 and four records of ten classes, a third
# or three times as much changed the AUROC by less than 0.004 and the noise rate by less than 0.01.
RIDGE: Final = 0.3


def discriminant_weights(
    reader: RecordReader,
    candidates: NDArray[np.intp],  # (sample, candidate), the given label first
    posteriors: NDArray[np.float64],  # the same
) -> Shares:
    """Weight epochs by how well their votes separate wrong labels from right ones.

    This is Fisher's linear discriminant with weights of at least 0, of the share of votes for the
    given label minus that for the best alternative, given which labels are probably wrong.
    """
    step = -(-reader.samples // DISCRIMINATED)
    everything = range(reader.networks), range(reader.epochs)
    votes = reader.read_labels(*everything, slice(None, None, step))  # (network, epoch, sample)
    candidates, posteriors = candidates[::step], posteriors[::step]
    best = 1 + posteriors[:, 1:].argmax(axis=1)
    given, other = candidates[:, 0], candidates[np.arange(len(candidates)), best]
    lead = (votes == given).mean(axis=0) - (votes == other).mean(axis=0)  # (epoch, sample)
    right = posteriors[:, 0]
    share = right.mean()
    if not TINY < share < 1 - TINY:
        return np.zeros(reader.epochs)
    when_right = lead @ right / right.sum()
    when_wrong = lead @ (1 - right) / (1 - right).sum()
    scatter = lead @ lead.T / len(right)
    for part, mean in ((share, when_right), (1 - share, when_wrong)):
        scatter -= part * np.outer(mean, mean)
    scatter += RIDGE * np.trace(scatter) / len(scatter) * np.eye(len(scatter))
    return nonnegative_solution(scatter, when_right - when_wrong)


CELLS_AT_ONCE: Final = 2**18  # of a table (sample, class), to stay in cache
MOST_ALTERNATIVES: Final = 4  # classes kept for a sample, besides its given label

# The weight of the given label's own vote. Where networks hardly ever contradict labels together,
# it outweighs theirs, so that few labels of a clean record are flagged. Informative epochs weigh
# 1.2 to 3.8 together on noisy development records, 0.05 on a clean one.
OWN_VOTE: Final = 0.1


@dataclass(frozen=True)
class Evidence:
    """Weighted votes for the given labels and their alternatives."""

    candidates: NDArray[np.intp]  # (sample, candidate), the given label first
    shares: NDArray[np.float64]  # (sample, candidate)
    predicted: NDArray[np.bool_]  # (class,), whether any network does at the epochs with a weight
    vote_weight: float  # of the votes against the given label's own, 0..1
    votes: int  # on each sample, of epochs with a weight

    def __len__(self) -> int:
        return len(self.candidates)

    @cached_property
    def cells(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Flat indices into a table of true and predicted classes.

        The first pairs them with the given label (sample, candidate), the second with each
        alternative (sample, candidate, alternative).
        """
        rows = self.candidates * len(self.predicted)
        of_alternatives = rows[:, :, np.newaxis] + self.candidates[:, np.newaxis, 1:]
        return rows + self.candidates[:, :1], of_alternatives

    def part(self, samples: slice) -> "Evidence":
        return replace(self, candidates=self.candidates[samples], shares=self.shares[samples])

    def renumbered(self) -> "Evidence":
        """Remove classes that are no candidate from the tables."""
        occurs = np.zeros(len(self.predicted), bool)
        occurs[self.candidates] = True
        number = np.cumsum(occurs) - 1
        return replace(self, candidates=number[self.candidates], predicted=self.predicted[occurs])


def collect_evidence(reader: RecordReader, given: NDArray[Any], weights: Shares) -> Evidence:
    """Sum the weighted votes for each label and at most four alternatives."""
    whole = integer_weights(weights)
    candidates = np.empty((reader.samples, 1 + min(MOST_ALTERNATIVES, reader.classes - 1)), np.intp)
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
        vote_weight=float(weights.sum() / (weights.sum() + OWN_VOTE)),
        votes=int(np.count_nonzero(whole)) * reader.networks,
    )


def weigh_votes(
    reader: RecordReader, weights: NDArray[np.intp]
) -> Iterator[tuple[slice, Weighted]]:
    # Epochs of weight 0 are not read, except for the first if all weights are 0.
    informative = np.flatnonzero(weights) if weights.any() else np.zeros(1, np.intp)
    chosen = reader.select(epochs=informative.tolist())
    for block in chosen.blocks():
        for span in spans(block.stop - block.start, max(1, CELLS_AT_ONCE // reader.classes)):
            where = slice(block.start + span.start, block.start + span.stop)
            votes = block.values[:, :, span]
            yield where, count_weighted(votes, weights[informative], classes=reader.classes)


def split_votes(
    table: NDArray[Any],  # (sample, class), votes
    given: NDArray[Any],  # (sample,)
    most: int,
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Split votes into those for the given label and for its alternatives.

    Ties go to the lower class. The classes kept are in order of class.
    """
    samples, classes = table.shape
    each = np.arange(samples)
    own = table[each, given]
    class_bits, vote_bits = (classes - 1).bit_length(), int(table.max()).bit_length()
    kind, last = np.int32 if class_bits + vote_bits < 32 else np.int64, (1 << class_bits) - 1
    # The class is part of the key, so that no two are equal and lower classes come first.
    # Sorting keys takes a quarter of the time of sorting positions.
    keys = (table.astype(kind) << class_bits) | (last - np.arange(classes)).astype(kind)
    keys[each, given] = -1
    best = np.partition(keys, classes - most, axis=1)[:, classes - most :]
    by_class = np.sort(((last - (best & last)) << vote_bits) | (best >> class_bits), axis=1)
    alternatives, votes = by_class >> vote_bits, by_class & ((1 << vote_bits) - 1)
    return own.astype(np.intp), alternatives.astype(np.intp), votes.astype(np.intp)
