"""What the votes say for each sample's given label, and for the classes that rival it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis.labels.contradiction import Contradiction
from accord.kernels.blocks import spans
from accord.kernels.weighted import Weighted, count_weighted
from accord.store import Rows

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


def gather_evidence(rows: Rows, given: NDArray[Any], contradiction: Contradiction) -> Evidence:
    """Weigh all votes, one part of the samples after the other.

    Keeps four rivals a sample at most, however many classes there are, the smaller first.
    """
    whole, weights = contradiction.whole_weights, contradiction.weights
    candidates = np.empty((rows.samples, 1 + min(MOST_RIVALS, rows.classes - 1)), np.intp)
    votes = np.empty(candidates.shape, np.intp)
    candidates[:, 0] = given
    predicted = np.zeros(rows.classes, bool)
    for where, table in weigh_votes(rows, whole):
        predicted |= table.any(axis=0)
        votes[where, 0], candidates[where, 1:], votes[where, 1:] = split_votes(
            table, given[where], candidates.shape[1] - 1
        )
    return Evidence(
        candidates=candidates,
        shares=votes / max(1, int(whole.sum()) * rows.networks),
        predicted=predicted,
        believed=float(weights.sum() / (weights.sum() + OWN_VOTE)),
        votes=int(np.count_nonzero(whole)) * rows.networks,
    )


def weigh_votes(rows: Rows, weights: NDArray[np.intp]) -> Iterator[tuple[slice, Weighted]]:
    """Weigh the votes of one part of the samples after another, as tables (sample, class).

    Epochs that weigh nothing are not read, but for the first if none weighs anything.
    """
    telling = np.flatnonzero(weights) if weights.any() else np.zeros(1, np.intp)
    chosen = rows.select(epochs=telling.tolist())
    for block in chosen.blocks():
        for span in spans(block.stop - block.start, max(1, CELLS_AT_ONCE // rows.classes)):
            where = slice(block.start + span.start, block.start + span.stop)
            votes = block.values[:, :, span]
            yield where, count_weighted(votes, weights[telling], classes=rows.classes)


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
