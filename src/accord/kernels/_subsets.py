"""Functions for subsets of networks and epochs."""

import math
from collections import deque
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError
from accord.kernels import _blocks as blocks
from accord.kernels._backend import TABLES_PAY_FROM, Kernels, kernels_for
from accord.kernels._blocks import Block, CompactLabels, Labels, Positions, Votes
from accord.kernels._checks import check_epochs, check_labels
from accord.kernels._winners import GUESSED_AT_ONCE, winners

# Above this many cells a vote, summing and searching all tables (2 ns a cell) costs more than
# ranks do (27 ns a vote).
CELLS_PER_VOTE = 16


def subsets_of(networks: int, size: int, *, limit: int, seed: int) -> list[tuple[int, ...]]:
    """Generate at most `limit` subsets of networks of one size.

    Raises:
        ChoiceError: `size` is not in 1..networks, or `limit` is below 1.

    >>> subsets_of(3, 2, limit=10, seed=0)
    [(0, 1), (0, 2), (1, 2)]
    >>> len(subsets_of(20, 10, limit=100, seed=0))
    100
    """
    if not 1 <= size <= networks:
        raise ChoiceError(f"a subset of {networks} networks holds 1..{networks}; got size {size}.")
    if limit < 1:
        raise ChoiceError(f"limit must be at least 1; got {limit}.")
    if math.comb(networks, size) <= limit:
        return list(combinations(range(networks), size))
    random = np.random.default_rng(seed)
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < limit:
        chosen.add(tuple(sorted(random.choice(networks, size, replace=False).tolist())))
    return sorted(chosen)


def winners_by_subset(
    labels: Labels, subsets: Sequence[Sequence[int]], *, classes: int
) -> CompactLabels:
    """Find the winners for each subset of networks.

    Counts each network's votes once for all subsets, which hold networks by position (see
    `subsets_of`). The result is (subset, sample).

    Raises:
        ChoiceError: a subset is empty, repeats a network or names one that does not exist.

    >>> labels = np.array([[[2, 0]], [[1, 0]], [[1, 1]]])
    >>> winners_by_subset(labels, [(0, 1), (1, 2)], classes=3)
    array([[1, 0],
           [1, 0]], dtype=uint8)
    """
    check_labels(labels, classes=classes)
    check_epochs(labels)
    inside = _indicators(subsets, labels)
    voters, tables = blocks.voters_of(labels), len(labels) + len(subsets)
    most = CELLS_PER_VOTE * voters // tables
    kernels = kernels_for(labels.size, pays_from=TABLES_PAY_FROM)
    found = np.empty((len(subsets), labels.shape[-1]), blocks.smallest_type(classes))

    def fill(span: slice) -> None:
        block = blocks.narrow(blocks.block_at(labels, span, classes), most=most)
        votes = inside @ _votes_by_network(block, kernels).astype(inside.dtype)
        votes = votes.reshape(len(subsets), block.width, block.classes)
        found[:, span] = block.named(votes.argmax(axis=2))

    width = blocks.width_for(voters, tables * blocks.columns_for(voters, classes, most=most))
    deque(blocks.for_each_span(fill, labels.shape[-1], width, threads=kernels.threads()), maxlen=0)
    return found


def _indicators(
    subsets: Sequence[Sequence[int]], labels: Labels
) -> NDArray[np.floating]:  # (subset, network), 1 inside
    networks = len(labels)
    for subset in subsets:
        if not subset or len(set(subset)) < len(subset) or not set(subset) <= set(range(networks)):
            raise ChoiceError(
                f"a subset must name different networks in 0..{networks - 1}, at least one; "
                f"got {tuple(subset)}. Negative positions are not counted from the end."
            )
    # Floats, because matrix products of integers are slow; exact, because votes stay below
    # 2**24 in one kind and 2**53 in the other.
    kind = np.float32 if blocks.voters_of(labels) < 2**24 else np.float64
    inside = np.zeros((len(subsets), networks), kind)
    for row, subset in zip(inside, subsets, strict=True):
        row[list(subset)] = 1
    return inside


def _votes_by_network(block: Block, kernels: Kernels) -> Votes:  # (network, sample * class)
    tables = [
        kernels.tabulate(Block(labels, block.start, block.stop, block.classes)).ravel()
        for labels in block.labels
    ]
    return np.stack(tables)


def equally_spaced(epochs: int, count: int) -> Positions:
    """Select equally spaced epochs including the first and the last.

    A single one is epoch 0.

    Raises:
        ChoiceError: `count` is not in 1..epochs.

    >>> equally_spaced(100, 5)
    array([ 0, 25, 50, 74, 99])
    """
    if not 1 <= count <= epochs:
        raise ChoiceError(f"count must lie in 1..{epochs} for {epochs} epochs; got {count}.")
    return np.round(np.linspace(0, epochs - 1, count)).astype(np.intp)


def winners_by_spacing(labels: Labels, counts: Sequence[int], *, classes: int) -> CompactLabels:
    """Find the winners for each number of equally spaced epochs (see `equally_spaced`).

    The result is (count, sample).

    Raises:
        ChoiceError: a count is not in 1..epochs.

    >>> winners_by_spacing(np.array([[[2], [1], [1]]]), [1, 3], classes=3)
    array([[2],
           [1]], dtype=uint8)
    """
    check_labels(labels, classes=classes)
    check_epochs(labels)
    samples = labels.shape[-1]
    kept = [equally_spaced(labels.shape[1], count) for count in counts]
    found = np.empty((len(counts), samples), blocks.smallest_type(classes))
    for span in blocks.spans(samples, max(1, 4 * GUESSED_AT_ONCE // blocks.voters_of(labels))):
        for row, epochs in zip(found, kept, strict=True):
            some = labels[:, epochs, span]
            row[span] = winners(some, classes=classes).labels
    return found
