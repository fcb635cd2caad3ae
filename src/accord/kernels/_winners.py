"""Functions for finding the class with the most votes."""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from accord.kernels import _blocks as blocks
from accord.kernels._backend import RUNNING_PAYS_FROM, WINNERS_PAY_FROM, kernels_for
from accord.kernels._blocks import Block, CompactLabels, Labels, Positions, Votes
from accord.kernels._checks import check_epochs, check_labels
from accord.kernels._votes import count_votes

GUESSED_AT_ONCE, WIDEST_GUESS = 2**24, 2**14  # votes, samples


class Winners(NamedTuple):
    """Winning class and number of votes of each sample."""

    labels: Positions  # (sample,)
    votes: Votes  # (sample,)


def winners(labels: Labels, *, classes: int, gaps: bool = False) -> Winners:
    """Find the class with the most votes for each sample.

    Ties go to the smallest class. Every axis of `labels` but the last votes. Works in blocks of
    samples: besides the labels it needs some tens of megabytes, however many samples and classes
    there are. With `gaps`, votes whose label is `classes` are missing and do not count; without a
    vote, the label is -1.

    >>> winners(np.array([[0, 2], [0, 1], [1, 1]]), classes=3)
    Winners(labels=array([0, 1]), votes=array([2, 2]))
    """
    if gaps:
        return _winners_of_present(labels, classes)
    check_labels(labels, classes=classes)
    kernels = kernels_for(labels.size, pays_from=WINNERS_PAY_FROM)
    samples, voters = labels.shape[-1], blocks.voters_of(labels)
    found = Winners(np.empty(samples, np.intp), np.empty(samples, np.intp))

    def fill(span: slice) -> None:
        block = blocks.block_at(labels, span, classes)
        # Always guess first: where the guess never holds it costs a tenth of the counting.
        winning, votes = kernels.guess(block)
        unsure = np.flatnonzero(2 * votes <= voters)
        for samples, part in _parts(block, unsure):
            ranked = blocks.narrow(part)
            table = kernels.tabulate(ranked)
            best = table.argmax(axis=1)
            winning[samples] = ranked.named(best)
            votes[samples] = table[np.arange(len(table)), best]
        found.labels[span], found.votes[span] = winning, votes

    width = max(blocks.NARROWEST, min(WIDEST_GUESS, GUESSED_AT_ONCE // voters))
    deque(blocks.for_each_span(fill, samples, width, threads=kernels.threads()), maxlen=0)
    return found


def _winners_of_present(labels: Labels, classes: int) -> Winners:
    found = Winners(*(np.empty(labels.shape[-1], np.intp) for _ in Winners._fields))
    width = max(1, TABLE_CELLS // (classes + 1))
    for start in range(0, labels.shape[-1], width):
        span = slice(start, start + width)
        table = count_votes(labels[..., span], classes=classes + 1)[:, :classes]
        found.votes[span] = table.max(axis=1)
        found.labels[span] = np.where(found.votes[span], table.argmax(axis=1), -1)
    return found


def _parts(block: Block, unsure: Positions) -> Iterator[tuple[slice | Positions, Block]]:
    width = blocks.width_for(block.voters, blocks.columns_for(block.voters, block.classes))
    if 2 * unsure.size > block.width:  # copying most of the block costs more than counting it all
        for span in blocks.spans(block.width, width):
            yield span, block.part(span)
    else:
        for span in blocks.spans(unsure.size, width):
            yield unsure[span], block.pick(unsure[span])


# Cells of 4 bytes. Each vote of a block costs numpy five calls: the wider the better, 26 ns a
# vote for 131 samples and 14 for 2048. Past MOST_CLASSES ranks cost no more, 30 ns.
TABLE_CELLS = 2**20
MOST_CLASSES = 2**12


def running_winners(labels: Labels, *, classes: int) -> CompactLabels:
    """Find the class with the most votes up to each epoch.

    Ties go to the smallest class. Reads each label once: a new vote is compared with the leader
    alone. The result, (epoch, sample), has the smallest unsigned type that holds the classes: cast
    before subtracting.

    One network predicts class 2, then class 1 twice:

    >>> running_winners(np.array([[[2], [1], [1]]]), classes=3)
    array([[2],
           [1],
           [1]], dtype=uint8)
    """
    check_labels(labels, classes=classes)
    check_epochs(labels)
    voters, samples = blocks.voters_of(labels), labels.shape[-1]
    kernels = kernels_for(labels.size, pays_from=RUNNING_PAYS_FROM)
    leaders = np.empty((labels.shape[1], samples), blocks.smallest_type(classes))

    def fill(span: slice) -> None:
        block = blocks.narrow(blocks.block_at(labels, span, classes), most=MOST_CLASSES)
        leaders[:, span] = block.named(kernels.run(block))

    columns = blocks.columns_for(voters, classes, most=MOST_CLASSES)
    width = blocks.width_for(voters, columns, cells=TABLE_CELLS)
    deque(blocks.for_each_span(fill, samples, width, threads=kernels.threads()), maxlen=0)
    return leaders
