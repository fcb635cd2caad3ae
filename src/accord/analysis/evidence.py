"""What the votes say for each sample's given label, and for the classes that rival it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis.contradiction import Contradiction
from accord.kernels.blocks import spans
from accord.kernels.weighted import Weighted, count_weighted
from accord.rules.recommend import directed_share
from accord.store import Rows

CELLS_AT_ONCE: Final = 2**18  # of a table (sample, class): small enough to stay in cache
MOST_RIVALS: Final = 4  # classes that are kept for a sample, besides its given label

# The given label has a vote of its own, whatever the networks say. Where they hardly ever
# contradict labels together, it outweighs what little they say: so a clean record is not torn
# apart. Epochs that tell weigh 1.2 to 3.8 together on noisy development records, 0.05 on a
# clean one.
OWN_VOTE: Final = 0.1
# How many votes, as a share of all, a mistake of the usual direction is ahead of one that goes
# both ways. Development records with directed noise would like more, others less.
HEAD_START: Final = 0.3


@dataclass(frozen=True)
class Evidence:
    """Shares of the weighted votes, for the given label and for its rivals."""

    given: NDArray[np.float64]  # (sample,)
    rivals: NDArray[np.intp]  # (sample, rival): classes, the smaller first
    shares: NDArray[np.float64]  # (sample, rival)
    predicted: NDArray[np.bool_]  # (class,): whether any network ever predicts it


def gather_evidence(rows: Rows, given: NDArray[Any], contradiction: Contradiction) -> Evidence:
    """Weigh all votes, one part of the samples after the other.

    Keeps four classes a sample at most, however many there are.
    """
    steps, weights = contradiction.steps, contradiction.weights
    rivals = np.empty((rows.samples, min(MOST_RIVALS, rows.classes - 1)), np.intp)
    votes = np.empty(rivals.shape, np.intp)
    own = np.empty(rows.samples, np.intp)
    predicted = np.zeros(rows.classes, bool)
    for where, table in weigh_votes(rows, steps):
        predicted |= table.any(axis=0)
        own[where], rivals[where], votes[where] = split_votes(table, given[where], rivals.shape[1])
    total = max(1, int(steps.sum()) * rows.networks)
    believed = weights.sum() / (weights.sum() + OWN_VOTE)
    return Evidence(
        given=believed * own / total + (1 - believed),
        rivals=rivals,
        shares=believed * votes / total,
        predicted=predicted,
    )


def weigh_votes(rows: Rows, steps: NDArray[np.intp]) -> Iterator[tuple[slice, Weighted]]:
    """Weigh the votes of one part of the samples after another, as tables (sample, class).

    Epochs that weigh nothing are not read, but for the first if none weighs anything.
    """
    telling = np.flatnonzero(steps) if steps.any() else np.zeros(1, np.intp)
    chosen = rows.select(epochs=telling.tolist())
    for block in chosen.blocks():
        for span in spans(block.stop - block.start, max(1, CELLS_AT_ONCE // rows.classes)):
            where = slice(block.start + span.start, block.start + span.stop)
            votes = block.values[:, :, span]
            yield where, count_weighted(votes, steps[telling], classes=rows.classes)


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


def score_labels(
    evidence: Evidence, given: NDArray[Any], *, classes: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return how far each sample's strongest rival is ahead of its given label, and that rival.

    Where wrong labels go one way, cats called dogs but not dogs called cats, a rival in that
    direction gets a head start and one in the other direction a handicap.
    """
    strongest = evidence.shares.argmax(axis=1)
    ahead = _pick(evidence.shares, strongest) > evidence.given
    winners = np.where(ahead, _pick(evidence.rivals, strongest), given.astype(np.intp))
    moves = count_moves(given, winners, classes=classes)
    start = HEAD_START * direction(moves)[given[:, np.newaxis], evidence.rivals]
    leads = evidence.shares - evidence.given[:, np.newaxis] + start
    best = leads.argmax(axis=1)
    return _pick(leads, best), _pick(evidence.rivals, best)


def direction(moves: NDArray[np.intp]) -> NDArray[np.float64]:  # (given, class), -1..1
    """Tell, for each two classes, how much more labels go from one to the other than back.

    What chance could do is taken off, and all is scaled by the share of directed mistakes.

    >>> direction(np.array([[900, 100], [100, 900]])).round(2).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    there, back = moves.astype(np.float64), moves.T
    both = there + back
    lead = np.divide(
        there - back, both + 2 * np.sqrt(both), out=np.zeros(both.shape), where=both > 0
    )
    return np.asarray(lead * max(0.0, directed_share(there)))


def count_moves(
    given: NDArray[Any], proposed: NDArray[Any], *, classes: int
) -> NDArray[np.intp]:  # (given, class)
    """Count the samples by their given label and the one that is proposed for it."""
    cells = given.astype(np.intp) * classes + proposed
    return np.bincount(cells, minlength=classes**2).reshape(classes, classes)


def _pick(table: NDArray[Any], columns: NDArray[np.intp]) -> NDArray[Any]:
    picked: NDArray[Any] = np.take_along_axis(table, columns[:, np.newaxis], axis=1)[:, 0]
    return picked
