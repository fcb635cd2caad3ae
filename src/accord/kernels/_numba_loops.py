"""Counting loops compiled with numba."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from accord.kernels._blocks import Block, CompactLabels, Votes, spans

Loop = TypeVar("Loop", bound=Callable[..., Any])

GUESSERS = 31  # voters
RUN_AT_ONCE = 256  # samples, whose leaders' votes then fit the L1 cache


def threads() -> int:
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


# Threads of our own around loops without `parallel`: those compile in 0.1-0.9 s instead of 2 s,
# and survive a fork and callers in several threads, which numba's default thread pool does not.
def _compiled(loop: Loop) -> Loop:
    try:
        return cast("Loop", numba.njit(nogil=True, cache=True)(loop))
    except RuntimeError:  # no folder to cache in: a read-only install without a home
        return cast("Loop", numba.njit(nogil=True)(loop))


def guess(block: Block) -> tuple[CompactLabels, Votes]:
    """Guess the winner of each sample and count its votes."""
    labels, votes = np.empty(block.width, block.labels.dtype), np.zeros(block.width, np.intp)
    _guess(_read_only(block.flat_labels), block.start, block.stop, labels)
    _count_matching(_read_only(block.flat_labels), block.start, block.stop, labels, votes)
    return labels, votes


def tabulate(block: Block) -> Votes:  # (sample, class)
    table = np.zeros((block.width, block.classes), np.intp)
    _tabulate(_read_only(block.flat_labels), block.start, block.stop, table)
    return table


def run(block: Block) -> CompactLabels:  # (epoch, sample)
    """Find the winners after each epoch."""
    leaders = np.empty((block.labels.shape[1], block.width), block.labels.dtype)
    for span in spans(block.width, RUN_AT_ONCE):
        leaders[:, span] = _run_part(block.part(span))
    return leaders


def _run_part(block: Block) -> CompactLabels:  # (epoch, sample)
    leaders = np.empty((block.labels.shape[1], block.width), block.labels.dtype)
    votes = np.zeros((block.width, block.classes), np.uint32)
    _run(_read_only(block.labels), block.start, block.stop, votes, leaders)
    return leaders


def _read_only(labels: CompactLabels) -> CompactLabels:
    # numba compiles once for arrays it may write and once for others: show it one kind alone.
    view = labels.view()
    view.flags.writeable = False
    return view


@_compiled
def _guess(
    labels: CompactLabels,  # (voter, sample)
    start: int,
    stop: int,
    label: CompactLabels,  # (sample,), written
) -> None:
    voters, width = len(labels), stop - start
    guessers = min(GUESSERS, voters)
    weight = np.zeros(width, np.int8)
    for guesser in range(guessers):
        row = labels[guesser * voters // guessers, start:stop]
        for i in range(width):
            label[i] = row[i] if weight[i] == 0 else label[i]
            weight[i] += np.int8(1) if row[i] == label[i] else np.int8(-1)


@_compiled
def _count_matching(
    labels: CompactLabels,  # (voter, sample)
    start: int,
    stop: int,
    label: CompactLabels,  # (sample,)
    votes: Votes,  # (sample,), written
) -> None:
    voters, width = len(labels), stop - start
    matching = np.zeros(width, np.uint8)
    for first in range(0, voters, 252):  # fits a byte; a multiple of four
        last = min(first + 252, voters)
        fours = last - (last - first) % 4
        for voter in range(first, fours, 4):
            one, two = labels[voter, start:stop], labels[voter + 1, start:stop]
            three, four = labels[voter + 2, start:stop], labels[voter + 3, start:stop]
            # One read and write of `matching` for four rows: 0.05 ns a vote instead of 0.11.
            for i in range(width):
                matching[i] += np.uint8(one[i] == label[i]) + np.uint8(two[i] == label[i])
                matching[i] += np.uint8(three[i] == label[i]) + np.uint8(four[i] == label[i])
        for voter in range(fours, last):
            row = labels[voter, start:stop]
            for i in range(width):
                matching[i] += np.uint8(row[i] == label[i])
        for i in range(width):
            votes[i] += matching[i]
            matching[i] = 0


@_compiled
def _tabulate(
    labels: CompactLabels,  # (voter, sample)
    start: int,
    stop: int,
    table: Votes,  # (sample, class), written
) -> None:
    for voter in range(len(labels)):
        row = labels[voter, start:stop]
        for i in range(stop - start):
            table[i, row[i]] += 1


@_compiled
def _run(
    labels: CompactLabels,  # (network, epoch, sample)
    start: int,
    stop: int,
    votes: NDArray[np.uint32],  # (sample, class), zeros
    leaders: CompactLabels,  # (epoch, sample), written
) -> None:
    networks, epochs, _ = labels.shape
    width, low = stop - start, np.uint64(2**32 - 1)
    best = np.zeros(width, np.uint64)
    for epoch in range(epochs):
        for network in range(networks):
            row = labels[network, epoch, start:stop]
            for i in range(width):
                label = row[i]
                grown = votes[i, label] + np.uint32(1)
                votes[i, label] = grown
                key = np.uint64(grown) << np.uint64(32) | (low - np.uint64(label))
                best[i] = max(best[i], key)
        for i in range(width):
            leaders[epoch, i] = low - (best[i] & low)
