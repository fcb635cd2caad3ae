"""Counting loops implemented with numpy."""

import numpy as np

from accord.kernels._blocks import Block, CompactLabels, Labels, Votes, spans

GUESSERS = 16  # number of voters, a power of two
COMPARED_CLASSES = 12  # up to here one comparison per class beats bincount (0.09 ns against 1.7)
COUNTED_AT_ONCE = 2**17  # votes that one bincount takes: their cells fill 1 MiB


def threads() -> int:
    return 1


def guess(block: Block) -> tuple[CompactLabels, Votes]:
    """Guess the winner of each sample and count its votes.

    A class with more than half of the votes is the winner; others must be counted.
    """
    labels = block.own_labels
    guessers = min(GUESSERS, 1 << (len(labels).bit_length() - 1))
    leaders = labels[np.arange(guessers) * len(labels) // guessers]
    weight = np.ones(leaders.shape, np.int8)
    # Boyer and Moore's majority vote as a knock-out: equals add their weights, others subtract.
    while len(leaders) > 1:
        half = len(leaders) // 2
        first, second = leaders[:half], leaders[half:]
        sign = (first == second).view(np.int8) * np.int8(2) - np.int8(1)
        weight = weight[:half] + sign * weight[half:]
        np.copyto(first, second, where=weight < 0)
        leaders, weight = first, np.abs(weight)
    return leaders[0], count_matching(labels, leaders[0])


def count_matching(
    labels: Labels,  # (voter, sample)
    wanted: Labels | np.integer,  # (sample,), or one label for all
) -> Votes:  # (sample,)
    """Count the votes for a given label of each sample."""
    votes = np.zeros(labels.shape[1], np.intp)
    same = np.empty((255, labels.shape[1]), np.bool_)  # fresh ones, page by page, double the time
    for first in range(0, len(labels), 255):  # as many ones as fit a byte
        some = labels[first : first + 255]
        np.equal(some, wanted, out=same[: len(some)])
        votes += same[: len(some)].view(np.uint8).sum(axis=0, dtype=np.uint8)
    return votes


def tabulate(block: Block) -> Votes:  # (sample, class)
    labels, classes = block.own_labels, block.classes
    if classes <= COMPARED_CLASSES:
        table = np.empty((block.width, classes), np.intp)
        for label in range(classes):
            table[:, label] = count_matching(labels, labels.dtype.type(label))
        return table
    width = max(1, COUNTED_AT_ONCE // len(labels))
    tables = [_count_cells(labels[:, span], classes) for span in spans(block.width, width)]
    return np.concatenate(tables) if len(tables) > 1 else tables[0]


def _count_cells(labels: CompactLabels, classes: int) -> Votes:  # (sample, class)
    samples = labels.shape[1]
    cells = labels + np.arange(samples) * classes
    return np.bincount(cells.ravel(), minlength=samples * classes).reshape(samples, classes)


def run(block: Block) -> CompactLabels:  # (epoch, sample)
    """Find the winners after each epoch.

    A class's key is its votes, then its distance from the last class: the largest key
    is the winner's. Keys only grow, so the largest ever seen is the largest now.
    """
    networks, epochs, _ = block.labels.shape
    bits = (block.classes - 1).bit_length()
    fits = (networks * epochs + 1) << bits <= 2**32
    kind: type[np.unsignedinteger] = np.uint32 if fits else np.uint64
    vote, last = kind(1 << bits), kind((1 << bits) - 1)
    rows = np.arange(block.width) * block.classes
    keys = np.tile(last - np.arange(block.classes, dtype=kind), block.width)  # (sample * class,)
    best = np.zeros(block.width, kind)
    leaders = np.empty((epochs, block.width), block.labels.dtype)
    for epoch in range(epochs):
        for network in range(networks):
            cells = rows + block.labels[network, epoch, block.start : block.stop]
            grown = keys[cells] + vote
            keys[cells] = grown
            np.maximum(best, grown, out=best)
        leaders[epoch] = last - (best & last)
    return leaders
