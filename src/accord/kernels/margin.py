"""By how much of the votes a class leads."""

import numpy as np

from accord.kernels.arrays import Labels, Positions, Shares, Votes
from accord.kernels.backend import TABLES_PAY_FROM, kernels_for
from accord.kernels.blocks import Block, block_at, for_each_span, voters_of, width_for
from accord.kernels.checks import check_epochs, check_labels
from accord.kernels.ranks import columns_for, narrow


def margins(labels: Labels, *, classes: int) -> Shares:
    """Compute, for each sample, the best class's agreement minus the second best's.

    A sample whose votes all went to one class has margin 1, a tie has margin 0.

    Args:
        labels: (network, sample) or (network, epoch, sample); every axis but the last votes.
        classes: how many classes there are; labels run from 0.

    Returns:
        One margin in 0..1 per sample.

    Raises:
        PredictionError: the labels are out of shape or range.

    >>> margins(np.array([[0, 2, 1], [0, 1, 1], [0, 1, 2], [1, 2, 1]]), classes=3)
    array([0.5, 0. , 0.5])
    """
    check_labels(labels, classes=classes)
    return _margins(labels, classes, of_last_epoch=False)


def final_margins(labels: Labels, *, classes: int) -> Shares:
    """Compute the agreement with the last epoch's majority minus the best other class's.

    Negative where the networks ended on another class than the one they agreed on most.

    Args:
        labels: (network, epoch, sample).
        classes: how many classes there are; labels run from 0.

    Returns:
        One margin in -1..1 per sample.

    Raises:
        PredictionError: the labels are out of shape or range.

    Two networks say class 0 for three epochs, then both drift to class 1:

    >>> final_margins(np.array([[[0], [0], [0], [1]], [[0], [0], [0], [1]]]), classes=2)
    array([-0.5])
    """
    check_labels(labels, classes=classes)
    check_epochs(labels)
    return _margins(labels, classes, of_last_epoch=True)


def _margins(labels: Labels, classes: int, *, of_last_epoch: bool) -> Shares:  # (sample,)
    voters, samples = voters_of(labels), labels.shape[-1]
    kernels = kernels_for(labels.size, pays_from=TABLES_PAY_FROM)
    leads = np.empty(samples, np.intp)

    def fill(span: slice) -> None:
        block = narrow(block_at(labels, span, classes))
        votes = kernels.tabulate(block)
        heard = kernels.tabulate(_last_epoch(block)) if of_last_epoch else votes
        leads[span] = _lead_of(heard.argmax(axis=1), votes)

    width = width_for(voters, columns_for(voters, classes))
    for_each_span(fill, samples, width, threads=kernels.threads())
    return leads / voters


def _last_epoch(block: Block) -> Block:
    last = np.ascontiguousarray(block.labels[:, -1, block.start : block.stop])
    return Block(last, 0, block.width, block.classes)


def _lead_of(
    chosen: Positions,  # (sample,)
    votes: Votes,  # (sample, class)
) -> Votes:  # (sample,)
    rows = np.arange(len(chosen))
    others = votes.copy()
    others[rows, chosen] = 0
    lead: Votes = votes[rows, chosen] - others.max(axis=1)
    return lead
