"""The most voted class of each sample after each epoch."""

import numpy as np

from accord.kernels.arrays import CompactLabels, Labels
from accord.kernels.backend import RUNNING_PAYS_FROM, kernels_for
from accord.kernels.blocks import block_at, for_each_span, smallest_type, voters_of, width_for
from accord.kernels.checks import check_epochs, check_labels
from accord.kernels.ranks import columns_for, narrow

# Cells of 4 bytes. Each vote of a block costs numpy five calls: the wider the better, 26 ns a
# vote for 131 samples and 14 for 2048. Past MOST_CLASSES ranks cost no more, 30 ns.
TABLE_CELLS = 2**20
MOST_CLASSES = 2**12


def running_winners(labels: Labels, *, classes: int) -> CompactLabels:
    """Find the class with the most votes after each epoch, all epochs up to it included.

    Equal votes go to the smaller class. Reads each label once: a new vote is compared with
    the leader alone.

    Args:
        labels: (network, epoch, sample).
        classes: how many classes there are; labels run from 0.

    Returns:
        (epoch, sample), in the smallest unsigned type that holds the classes: cast before
        subtracting.

    Raises:
        PredictionError: the labels are out of shape or range.

    One network says class 2, then class 1, then class 1 again:

    >>> running_winners(np.array([[[2], [1], [1]]]), classes=3)
    array([[2],
           [1],
           [1]], dtype=uint8)
    """
    check_labels(labels, classes=classes)
    check_epochs(labels)
    voters, samples = voters_of(labels), labels.shape[-1]
    kernels = kernels_for(labels.size, pays_from=RUNNING_PAYS_FROM)
    leaders = np.empty((labels.shape[1], samples), smallest_type(classes))

    def fill(span: slice) -> None:
        block = narrow(block_at(labels, span, classes), most=MOST_CLASSES)
        leaders[:, span] = block.named(kernels.run(block))

    columns = columns_for(voters, classes, most=MOST_CLASSES)
    width = width_for(voters, columns, cells=TABLE_CELLS)
    for_each_span(fill, samples, width, threads=kernels.threads())
    return leaders
