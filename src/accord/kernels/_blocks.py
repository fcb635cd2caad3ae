"""Utilities for counting in blocks of samples.

Counting works on one `Block` at a time. Where classes are many, `narrow` replaces them by their
ranks among the classes voted for, so that tables stay small.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.integer]  # predicted classes, of any integer type
CompactLabels = NDArray[np.unsignedinteger]  # in the smallest unsigned type that holds the classes
Votes = NDArray[np.intp]  # how many voters predicted a class
Positions = NDArray[np.intp]  # of classes, samples or epochs
Shares = NDArray[np.float64]  # votes as a share of all


TABLE_CELLS = 2**17  # of 8 bytes: a block's table takes 1 MiB, as the L2 cache of a core
LABELS_AT_ONCE = 2**22  # that a block may have to copy
NARROWEST, WIDEST = 16, 4096  # samples


class Block(NamedTuple):
    """Labels of a block of samples."""

    labels: CompactLabels  # (voter..., sample), contiguous
    start: int  # the block is labels[..., start:stop]
    stop: int
    classes: int
    names: CompactLabels | None = None  # (sample, rank) -> class, once ranked

    @property
    def width(self) -> int:
        """Number of samples."""
        return self.stop - self.start

    @property
    def voters(self) -> int:
        """Number of labels of each sample."""
        return math.prod(self.labels.shape[:-1])

    @property
    def flat_labels(self) -> CompactLabels:  # (voter, sample)
        """Labels of all samples with a single voter axis."""
        return self.labels.reshape(-1, self.labels.shape[-1])

    @property
    def own_labels(self) -> CompactLabels:  # (voter, sample)
        """Labels of the block with a single voter axis."""
        return self.labels.reshape(-1, self.labels.shape[-1])[:, self.start : self.stop]

    def part(self, span: slice) -> "Block":
        """Select consecutive samples without a copy."""
        return self._replace(start=self.start + span.start, stop=self.start + span.stop)

    def pick(self, samples: Positions) -> "Block":
        """Copy selected samples."""
        # `take` copies a label in 0.8 ns, labels[:, samples] in 5 ns.
        labels = self.flat_labels.take(self.start + samples, axis=1)
        return Block(labels, 0, samples.size, self.classes)

    def named(self, found: Labels) -> Labels:  # (..., sample)
        """Convert ranks to classes."""
        return found if self.names is None else self.names[np.arange(self.width), found]


def smallest_type(classes: int) -> np.dtype[np.unsignedinteger]:
    return np.min_scalar_type(classes - 1)


def block_at(labels: Labels, span: slice, classes: int) -> Block:
    kind = smallest_type(classes)
    if labels.dtype == kind and labels.flags.c_contiguous:
        return Block(cast("CompactLabels", labels), span.start, span.stop, classes)
    copied: CompactLabels = np.ascontiguousarray(labels[..., span], dtype=kind)
    return Block(copied, 0, span.stop - span.start, classes)


def voters_of(labels: Labels) -> int:
    return math.prod(labels.shape[:-1])


def width_for(voters: int, columns: int, *, cells: int = TABLE_CELLS) -> int:
    """Compute the number of samples in a block."""
    return max(NARROWEST, min(WIDEST, cells // columns, LABELS_AT_ONCE // voters))


def spans(samples: int, width: int) -> Iterator[slice]:
    return (slice(first, min(first + width, samples)) for first in range(0, samples, width))


def for_each_span(
    work: Callable[[slice], None], samples: int, width: int, *, threads: int
) -> Iterable[None]:
    """Map a function over spans of samples.

    The caller runs it, so that the work is one call below and not two: `deque(…, maxlen=0)`.
    """
    if samples > width:
        _keep_freed_memory()
    if threads == 1 or samples <= width:
        return map(work, spans(samples, width))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, spans(samples, width)))


def _keep_freed_memory() -> None:
    # glibc gives a freed block's table back to the system, and the next block pays page faults
    # for it: 11 ns a vote instead of 3.5 (1000 voters, 1000 classes). Having freed an array of
    # 8 MiB, never touched, it keeps what is smaller.
    np.empty(2**23, np.uint8)


# Above this many table cells a vote, sorting a sample's votes (20-40 ns each) is cheaper than
# clearing and searching its row of the table (0.3 ns a cell). 2 cores, 5 to 1000 voters.
CELLS_PER_VOTE = 64


def columns_for(voters: int, classes: int, *, most: int = TABLE_CELLS) -> int:
    """Compute the number of table columns needed for a sample."""
    return min(voters, classes) if _are_many(voters, classes, most) else classes


def narrow(block: Block, *, most: int = TABLE_CELLS) -> Block:
    """Replace classes by ranks to reduce the size of tables.

    Ranks keep the order of classes, so ties still go to the smallest class. There are never more
    ranks than voters. `Block.named` turns ranks back into classes.

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


def _sorted_by_label(block: Block) -> tuple[CompactLabels, Positions]:  # both (sample, vote)
    # Label and voter packed in one number: sorting those is twice as fast as argsort.
    voters = block.voters
    bits = voters.bit_length()
    fits = block.classes << bits <= 2**32
    kind: type[np.unsignedinteger] = np.uint32 if fits else np.uint64
    keys = block.own_labels.T.astype(kind, order="C") << kind(bits) | np.arange(voters, dtype=kind)
    keys.sort(axis=1)
    return keys >> kind(bits), (keys & kind((1 << bits) - 1)).astype(np.intp)
