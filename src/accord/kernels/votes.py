"""The votes of every class for every sample."""

import numpy as np

from accord.kernels.arrays import Labels, Shares, Votes
from accord.kernels.backend import TABLES_PAY_FROM, kernels_for
from accord.kernels.blocks import block_at, for_each_span, voters_of, width_for
from accord.kernels.checks import check_labels, check_table


def count_votes(labels: Labels, *, classes: int) -> Votes:
    """Count, for each sample, the voters that predicted each class.

    Args:
        labels: (network, sample) or (network, epoch, sample); every axis but the last votes.
        classes: how many classes there are; labels run from 0.

    Returns:
        A (sample, class) table, of 8 bytes a cell.

    Raises:
        PredictionError: the labels are out of shape or range, or the table exceeds 4 GiB.

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
    """Compute the share of votes that each class has for each sample.

    Args:
        labels: (network, sample) or (network, epoch, sample); every axis but the last votes.
        classes: how many classes there are; labels run from 0.

    Returns:
        A (sample, class) table, of 8 bytes a cell; each row adds up to 1.

    Raises:
        PredictionError: the labels are out of shape or range, or the table exceeds 4 GiB.

    >>> agreement(np.array([[0, 2], [0, 1], [1, 1], [0, 1]]), classes=3)
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.75, 0.25]])
    """
    check_labels(labels, classes=classes)
    check_table(labels.shape[-1], classes)
    table = np.empty((labels.shape[-1], classes), np.float64)
    _fill(table, labels)
    table /= voters_of(labels)
    return table


def _fill(
    table: Votes | Shares,  # (sample, class), written
    labels: Labels,  # (voter..., sample)
) -> None:
    samples, classes = table.shape
    kernels = kernels_for(labels.size, pays_from=TABLES_PAY_FROM)

    def fill(span: slice) -> None:
        table[span] = kernels.tabulate(block_at(labels, span, classes))

    width = width_for(voters_of(labels), classes)
    for_each_span(fill, samples, width, threads=kernels.threads())
