"""Ranks in place of classes, so that many classes need no wide table."""

import numpy as np

from accord.kernels.arrays import CompactLabels, Positions
from accord.kernels.blocks import TABLE_CELLS, Block, smallest_type

# Above this many table cells a vote, sorting a sample's votes (20-40 ns each) is cheaper than
# clearing and searching its row of the table (0.3 ns a cell). 2 cores, 5 to 1000 voters.
CELLS_PER_VOTE = 64


def columns_for(voters: int, classes: int, *, most: int = TABLE_CELLS) -> int:
    """Return how many table cells a sample needs at most: a class each, or a voter each."""
    return min(voters, classes) if _are_many(voters, classes, most) else classes


def narrow(block: Block, *, most: int = TABLE_CELLS) -> Block:
    """Give each class its rank among the classes voted for, where classes are many.

    Ranks keep the order of classes, so equal votes still go to the smaller class. There are
    never more ranks than voters. `Block.named` leads back to classes.

    >>> block = narrow(Block(np.array([[7], [900], [7]], np.uint16), 0, 1, classes=1000))
    >>> block.labels.tolist(), block.names.tolist(), block.classes
    ([[0], [1], [0]], [[7, 900]], 2)
    """
    if not _are_many(block.voters, block.classes, most):
        return block
    labels, voters = _sorted_by_label(block)
    rank = np.zeros(labels.shape, np.intp)
    np.cumsum(labels[:, 1:] != labels[:, :-1], axis=1, out=rank[:, 1:])
    ranks = int(rank.max(initial=0)) + 1
    names = np.zeros((block.width, ranks), block.labels.dtype)
    np.put_along_axis(names, rank, labels, axis=1)
    ranked = np.empty(labels.shape, smallest_type(ranks))
    np.put_along_axis(ranked, voters, rank, axis=1)
    ranked = np.ascontiguousarray(ranked.T).reshape(*block.labels.shape[:-1], block.width)
    return Block(ranked, 0, block.width, ranks, names)


def _are_many(voters: int, classes: int, most: int) -> bool:
    return classes > min(most, CELLS_PER_VOTE * voters)


def _sorted_by_label(
    block: Block,
) -> tuple[CompactLabels, Positions]:  # both (sample, vote)
    # Label and voter packed in one number: sorting those is twice as fast as argsort.
    voters = block.voters
    bits = voters.bit_length()
    fits = block.classes << bits <= 2**32
    kind: type[np.unsignedinteger] = np.uint32 if fits else np.uint64
    keys = block.own_labels.T.astype(kind, order="C") << kind(bits) | np.arange(voters, dtype=kind)
    keys.sort(axis=1)
    return keys >> kind(bits), (keys & kind((1 << bits) - 1)).astype(np.intp)
