"""Functions for counting votes by class."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError
from accord.kernels import _blocks as blocks
from accord.kernels._backend import TABLES_PAY_FROM, kernels_for
from accord.kernels._blocks import Block, CompactLabels, Labels, Positions, Shares, Votes
from accord.kernels._checks import check_epochs, check_labels, check_table
from accord.kernels._numpy_loops import COMPARED_CLASSES, count_matching

POSTERIOR_BITS = 28  # sums stay exact for 2**25 samples
LOGARITHM_BITS = 16  # times a weight of 20 bits: exact up to 2**17
WEIGHT_BITS = 20
WORD = 64  # samples whose bits are compared at once


def on_grid(values: NDArray[Any], bits: int) -> NDArray[np.float64]:
    """Round values to multiples of 2**-bits.

    Double precision adds such numbers without rounding while the sum stays below
    2**(53 - bits): neither the order of the voters nor a cut into blocks can change it.

    >>> on_grid(np.array([0.1, 0.5]), 3)
    array([0.125, 0.5  ])
    """
    found = np.asarray(np.ldexp(values, bits), np.float64)
    np.rint(found, out=found)
    return np.asarray(np.ldexp(found, -bits, out=found))


def count_votes(labels: Labels, *, classes: int) -> Votes:
    """Count the votes for each class.

    The table, (sample, class), has 8 bytes a cell and at most 4 GiB. Every axis of `labels` but
    the last votes.

    >>> count_votes(np.array([[0, 2], [0, 1], [1, 1]]), classes=3)
    array([[2, 1, 0],
           [0, 2, 1]])
    """
    check_labels(labels, classes=classes)
    check_table(labels.shape[-1], classes)
    table = np.empty((labels.shape[-1], classes), np.intp)
    _fill(table, labels)
    return table


def agreement(labels: Labels, *, classes: int) -> Shares:
    """Compute the share of votes for each class.

    The table is like that of `count_votes`; each row adds up to 1.

    >>> agreement(np.array([[0, 2], [0, 1], [1, 1], [0, 1]]), classes=3)
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.75, 0.25]])
    """
    check_labels(labels, classes=classes)
    check_table(labels.shape[-1], classes)
    table = np.empty((labels.shape[-1], classes), np.float64)
    _fill(table, labels)
    table /= blocks.voters_of(labels)
    return table


def _fill(
    table: Votes | Shares,  # (sample, class), written
    labels: Labels,  # (voter..., sample)
) -> None:
    samples, classes = table.shape
    kernels = kernels_for(labels.size, pays_from=TABLES_PAY_FROM)

    def fill(span: slice) -> None:
        table[span] = kernels.tabulate(blocks.block_at(labels, span, classes))

    width = blocks.width_for(blocks.voters_of(labels), classes)
    deque(blocks.for_each_span(fill, samples, width, threads=kernels.threads()), maxlen=0)


COMPARED_AT_ONCE = 2**20  # votes: what their comparison gives fills an L2 cache of 1 MiB

Weighted = NDArray[np.unsignedinteger]  # sums of weights, in the smallest type that holds all


def count_weighted(labels: Labels, weights: Positions, *, classes: int) -> Weighted:
    """Count the votes for each class, weighted by the integers `weights` (epoch,).

    The table, (sample, class), has the smallest unsigned type that holds all votes of a sample.

    >>> count_weighted(np.array([[[0], [1]], [[0], [0]]]), np.array([1, 3]), classes=2)
    array([[5, 3]], dtype=uint8)
    """
    check_epochs(labels)
    check_labels(labels, classes=classes)
    check_table(labels.shape[2], classes)
    count = _compare if classes <= COMPARED_CLASSES else _count
    kind = np.min_scalar_type(len(labels) * int(weights.sum()))
    return count(labels, weights, np.zeros((labels.shape[2], classes), kind))


def _compare(labels: Labels, weights: Positions, table: Weighted) -> Weighted:
    """Count votes of equal weight by comparing them with each class."""
    samples, classes = table.shape
    kind, vote = table.dtype, blocks.smallest_type(classes)
    by_class = np.zeros((classes, samples), kind)
    for weight in np.unique(weights[weights > 0]):
        votes = labels[:, weights == weight].reshape(-1, samples).astype(vote, copy=False)
        for voters in blocks.spans(len(votes), 255):  # as many ones as fit a byte
            _add_matching(by_class[:-1], votes[voters], kind.type(weight))
    by_class[-1] = kind.type(len(labels) * int(weights.sum())) - by_class[:-1].sum(axis=0)
    table[:] = by_class.T
    return table


def _add_matching(
    by_class: Weighted,  # (class, sample), added to
    votes: CompactLabels,  # (voter, sample), 255 voters at most
    weight: np.unsignedinteger,
) -> None:
    samples = votes.shape[1]
    width = max(1, min(samples, COMPARED_AT_ONCE // len(votes)))
    same = np.empty((len(votes), width), np.bool_)  # fresh ones would double the time
    for span in blocks.spans(samples, width):
        some = votes[:, span]
        found = same[:, : some.shape[1]]
        for label, row in enumerate(by_class[:, span]):
            np.equal(some, votes.dtype.type(label), out=found)
            row += weight * found.view(np.uint8).sum(axis=0, dtype=np.uint8)


def _count(labels: Labels, weights: Positions, table: Weighted) -> Weighted:
    samples, classes = table.shape
    some, each = labels[:, weights > 0], weights[weights > 0, np.newaxis]
    for span in blocks.spans(samples, blocks.width_for(max(1, blocks.voters_of(some)), classes)):
        cells = some[:, :, span] + np.arange(span.stop - span.start) * classes
        votes = np.broadcast_to(each, cells.shape)
        sums = np.bincount(cells.ravel(), weights=votes.ravel(), minlength=table[span].size)
        table[span] = sums.reshape(-1, classes)
    return table


def margins(labels: Labels, *, classes: int, of_last_epoch: bool = False) -> Shares:
    """Compute the margin between the two classes with the most votes.

    A sample whose votes all went to one class has margin 1, a tie has margin 0. With
    `of_last_epoch`, the class that wins at the last epoch is taken for the best; see
    `final_margins`.

    >>> margins(np.array([[0, 2, 1], [0, 1, 1], [0, 1, 2], [1, 2, 1]]), classes=3)
    array([0.5, 0. , 0.5])
    """
    check_labels(labels, classes=classes)
    voters, samples = blocks.voters_of(labels), labels.shape[-1]
    kernels = kernels_for(labels.size, pays_from=TABLES_PAY_FROM)
    leads = np.empty(samples, np.intp)

    def fill(span: slice) -> None:
        block = blocks.narrow(blocks.block_at(labels, span, classes))
        votes = kernels.tabulate(block)
        chosen = votes
        if of_last_epoch:
            last = np.ascontiguousarray(block.labels[:, -1, block.start : block.stop])
            chosen = kernels.tabulate(Block(last, 0, block.width, block.classes))
        rows, best = np.arange(len(votes)), chosen.argmax(axis=1)
        others = votes.copy()
        others[rows, best] = 0
        leads[span] = votes[rows, best] - others.max(axis=1)

    width = blocks.width_for(voters, blocks.columns_for(voters, classes))
    deque(blocks.for_each_span(fill, samples, width, threads=kernels.threads()), maxlen=0)
    return leads / voters


def final_margins(labels: Labels, *, classes: int) -> Shares:
    """Compute the margin of the majority class at the last epoch.

    It lies in -1..1, and is negative where the networks ended on another class than the one they
    agreed on most. `labels` have an epoch axis.

    Two networks predict class 0 for three epochs, then class 1:

    >>> final_margins(np.array([[[0], [0], [0], [1]], [[0], [0], [0], [1]]]), classes=2)
    array([-0.5])
    """
    if labels.ndim > 1:  # else `margins` raises
        check_epochs(labels)
    return margins(labels, classes=classes, of_last_epoch=True)


def error_consensus(labels: Labels, truth: Labels) -> Votes:
    """Count wrong predictions by the number of networks that share them.

    Args:
        labels: (network, sample), of the last epoch.
        truth: (sample,), the true classes.

    Returns:
        (network,): entry k-1 counts the wrong pairs whose class exactly k networks predicted.

    For one sample of class 0, two networks predict 1 and one predicts 2:

    >>> error_consensus(np.array([[1], [1], [2]]), np.array([0]))
    array([1, 2, 0])
    """
    _check(labels, truth)
    networks = len(labels)
    pairs = np.zeros(networks + 1, np.intp)
    for given in labels:
        companions = count_matching(labels, given)
        pairs += np.bincount(companions[given != truth], minlength=networks + 1)
    return pairs[1:]


def _check(labels: Labels, truth: Labels) -> None:
    if labels.ndim != 2 or not len(labels) or not np.issubdtype(labels.dtype, np.integer):
        raise PredictionError(
            "labels must be integers (network, sample) of one epoch, from at least one "
            f"network; got {labels.dtype} of shape {labels.shape}. For the last epoch of "
            "(network, epoch, sample), give labels[:, -1]."
        )
    if truth.shape != labels.shape[1:] or not np.issubdtype(truth.dtype, np.integer):
        raise PredictionError(
            f"truth must hold {labels.shape[1]} integers, one per sample; "
            f"got {truth.dtype} of shape {truth.shape}. Is it of another split?"
        )


def count_matching_pairs(labels: Labels) -> Votes:
    """Count the samples on which each pair of voters agrees.

    `labels` are (voter, sample), the counts (voter, voter). Labels are compared bit by bit, 64
    samples at once: with ten classes, an eighth of the memory traffic that comparing bytes takes.

    >>> count_matching_pairs(np.array([[0, 1, 2], [0, 1, 1]]))
    array([[3, 2],
           [2, 3]])
    """
    voters, samples = labels.shape
    bits = max(1, int(labels.max(initial=0)).bit_length())
    packed = np.zeros((bits, voters, -(-samples // WORD) * 8), np.uint8)
    for bit, rows in enumerate(packed):
        rows[:, : -(-samples // 8)] = np.packbits(labels & (1 << bit) != 0, axis=1)
    words = packed.view(np.uint64)
    pairs = np.empty((voters, voters), np.intp)
    for voter in range(voters):
        differ = words[0, voter:] ^ words[0, voter]
        for more in words[1:]:
            differ |= more[voter:] ^ more[voter]
        pairs[voter, voter:] = samples - np.bitwise_count(differ).sum(axis=1, dtype=np.intp)
        pairs[voter:, voter] = pairs[voter, voter:]
    return pairs
