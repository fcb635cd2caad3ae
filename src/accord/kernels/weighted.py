"""Votes that do not all count the same."""

import numpy as np
from numpy.typing import NDArray

from accord.kernels import dense
from accord.kernels.arrays import CompactLabels, Labels, Positions
from accord.kernels.blocks import smallest_type, spans, voters_of, width_for
from accord.kernels.checks import check_epochs, check_labels, check_table

COMPARED_AT_ONCE = 2**20  # votes: what their comparison gives fills an L2 cache of 1 MiB

Weighted = NDArray[np.unsignedinteger]  # sums of weights, in the smallest type that holds all


def count_weighted(labels: Labels, weights: Positions, *, classes: int) -> Weighted:
    """Add up, for each sample, the weights of the epochs that voted for each class.

    Args:
        labels: (network, epoch, sample).
        weights: (epoch,): whole numbers; epochs that weigh nothing are not looked at.
        classes: how many classes there are; labels run from 0.

    Returns:
        A (sample, class) table, in the smallest unsigned type that holds all votes of a sample.

    Raises:
        PredictionError: the labels are out of shape or range, or the table exceeds 4 GiB.

    >>> count_weighted(np.array([[[0], [1]], [[0], [0]]]), np.array([1, 3]), classes=2)
    array([[5, 3]], dtype=uint8)
    """
    check_epochs(labels)
    check_labels(labels, classes=classes)
    check_table(labels.shape[2], classes)
    count = _compare if classes <= dense.COMPARED_CLASSES else _count
    kind = np.min_scalar_type(len(labels) * int(weights.sum()))
    return count(labels, weights, np.zeros((labels.shape[2], classes), kind))


def _compare(labels: Labels, weights: Positions, table: Weighted) -> Weighted:
    """Compare the votes of one weight with each class but the last, which has what is left."""
    samples, classes = table.shape
    kind, vote = table.dtype, smallest_type(classes)
    by_class = np.zeros((classes, samples), kind)
    for weight in np.unique(weights[weights > 0]):
        votes = labels[:, weights == weight].reshape(-1, samples).astype(vote, copy=False)
        for voters in spans(len(votes), 255):  # as many ones as fit a byte
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
    for span in spans(samples, width):
        some = votes[:, span]
        found = same[:, : some.shape[1]]
        for label, row in enumerate(by_class[:, span]):
            np.equal(some, votes.dtype.type(label), out=found)
            row += weight * found.view(np.uint8).sum(axis=0, dtype=np.uint8)


def _count(labels: Labels, weights: Positions, table: Weighted) -> Weighted:
    """Add each vote's weight to its cell; as floats, sums of whole numbers are exact."""
    samples, classes = table.shape
    some, each = labels[:, weights > 0], weights[weights > 0, np.newaxis]
    for span in spans(samples, width_for(max(1, voters_of(some)), classes)):
        cells = some[:, :, span] + np.arange(span.stop - span.start) * classes
        votes = np.broadcast_to(each, cells.shape)
        sums = np.bincount(cells.ravel(), weights=votes.ravel(), minlength=table[span].size)
        table[span] = sums.reshape(-1, classes)
    return table
