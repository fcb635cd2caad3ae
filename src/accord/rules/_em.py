"""Dawid and Skene's expectation-maximisation over a record's votes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.kernels._votes import POSTERIOR_BITS, agreement, on_grid
from accord.rules._annotators import LARGEST, Annotators, Tally, small_parts
from accord.rules._epoch_weights import Likeness, Weights, independent_epochs, weigh
from accord.store import Block, RecordReader

MOST_ROUNDS: Final = 50
SETTLED: Final = 1000  # once fewer than one sample in so many changes its class
VOTES_PER_CELL: Final = 10  # that a network's confusion matrix should have on average
LEAST_GROUPS: Final = 4  # of epochs, however few samples there are
LOUDER: Final = (1, 2, 4, 8, 16)  # times as many votes, until the classes keep their places

Reader = Callable[[], Iterator[Block]]


@dataclass(frozen=True)
class Fit:
    """What expectation-maximisation arrived at."""

    annotators: Annotators
    rounds: int
    settled: bool  # whether the last round changed next to nothing
    lost: tuple[int, ...]  # classes that most of the samples they began with have left

    @property
    def collapsed(self) -> bool:
        """Whether the classes no longer mean what they meant at the start."""
        return bool(self.lost)


def group_epochs(
    epochs: int, *, samples: int, classes: int
) -> NDArray[np.intp]:  # (epoch,) -> group
    """Group neighbouring epochs so that a group has enough votes for its confusion matrices.

    Ten classes and 10,000 samples leave each epoch to itself; with many classes, neighbours
    share matrices, in at least four groups.

    >>> group_epochs(12, samples=10_000, classes=10).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    >>> group_epochs(12, samples=10_000, classes=45).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    """
    wanted = -(-VOTES_PER_CELL * classes**2 // samples)
    width = max(1, min(wanted, epochs // LEAST_GROUPS))
    return np.arange(epochs) // width


def fit_in_memory(reader: RecordReader) -> bool:
    """Tell whether the confusion matrices of these rows are small enough to hold."""
    groups = group_epochs(reader.epochs, samples=reader.samples, classes=reader.classes)
    return reader.networks * (int(groups[-1]) + 1) * reader.classes**2 <= LARGEST


def fit_annotators(
    reader: RecordReader,
    start: NDArray[Any],  # (sample,), a class for each
    *,
    likeness: Likeness,
    weights: Weights,
) -> Fit:
    """Find annotators and classes that explain each other, beginning with the classes given.

    Votes that count for too little leave the classes of poor networks to swallow each other. So
    where classes change places, it begins anew with twice as many votes, up to sixteen times.
    """
    read = reader.blocks
    for louder in LOUDER:
        fit = _fit_once(reader, read, start, likeness, weights, louder=louder)
        if not fit.collapsed:
            break
    return fit


def _fit_once(
    reader: RecordReader,
    read: Reader,
    start: NDArray[Any],
    likeness: Likeness,
    weights: Weights,
    *,
    louder: int,
) -> Fit:
    """Search once, each vote counting for so many times its share.

    Each round reads the rows once, or not at all if they fit in memory. The epochs' weights are
    found anew in each round after the first, from how often each is right.
    """
    groups = group_epochs(reader.epochs, samples=reader.samples, classes=reader.classes)
    tally = _tally(reader, groups, _certain(read, start, reader.classes))
    found, settled = start, False
    for rounds in range(1, MOST_ROUNDS + 1):
        if rounds > 1:
            weights = weigh(likeness.within, tally.reliability(likeness.said))
        votes = full_votes(weights, likeness, reader.networks, louder=louder)
        annotators = estimate(tally, groups, votes)
        before = found
        tally, found = _round(reader, read, annotators)
        settled = has_settled(before, found)
        if settled:
            break
    return Fit(annotators, rounds, settled, lost_classes(start, found, classes=reader.classes))


def has_settled(before: NDArray[Any], after: NDArray[Any]) -> bool:
    """Tell whether fewer than one sample in a thousand changed its class."""
    return bool(np.count_nonzero(before != after) * SETTLED < len(before))


def estimate(tally: Tally, groups: NDArray[np.intp], weights: Weights) -> Annotators:
    """Estimate annotators; each shares, of each class, as many votes as there are classes."""
    classes = len(tally.sizes)
    return Annotators(tally.prior(), tally.confusion(shared=classes), groups, weights)


def lost_classes(before: NDArray[Any], after: NDArray[Any], *, classes: int) -> tuple[int, ...]:
    """Return the classes most of whose samples went to one other class.

    >>> lost_classes(np.array([0, 0, 1, 1, 1]), np.array([0, 0, 0, 0, 1]), classes=2)
    (1,)
    """
    moved = np.zeros((classes, classes), np.intp)
    np.add.at(moved, (before, after), 1)
    kept = np.diag(moved)
    return tuple(int(lost) for lost in np.flatnonzero(moved.max(axis=1) > kept))


def full_votes(weights: Weights, likeness: Likeness, networks: int, *, louder: int = 1) -> Weights:
    """Turn weights that add up to 1 into shares of a full vote, or so many times as much.

    Votes are not independent: as full votes they would make every posterior 0 or 1. The
    networks share their training labels, so that together they count as one with as many
    independent epochs as it has; but each counts at least as one vote. None is made to count
    as more than one.
    """
    votes = max(independent_epochs(likeness, weights), networks)
    shares = weights * votes / networks
    return np.maximum(shares, np.minimum(louder * shares, 1.0))


def _round(
    reader: RecordReader, read: Reader, annotators: Annotators
) -> tuple[Tally, NDArray[np.intp]]:
    found = np.empty(reader.samples, np.intp)

    def expected() -> Iterator[tuple[Block, NDArray[np.float64]]]:
        for part, posterior in annotators.posteriors(read()):
            found[part.where] = posterior.argmax(axis=1)
            yield part, posterior

    return _tally(reader, annotators.groups, expected()), found


def _tally(
    reader: RecordReader,
    groups: NDArray[np.intp],
    expected: Iterator[tuple[Block, NDArray[np.float64]]],
) -> Tally:
    tally = Tally.empty(networks=reader.networks, classes=reader.classes, groups=groups)
    for part, posterior in expected:
        tally.add(part.values, posterior, groups)
    return tally


def _certain(
    read: Reader, labels: NDArray[Any], classes: int
) -> Iterator[tuple[Block, NDArray[np.float64]]]:
    for part in small_parts(read(), classes=classes):
        size = part.stop - part.start
        posterior = np.zeros((size, classes))
        posterior[np.arange(size), labels[part.where]] = 1
        yield part, posterior


def plain_dawid_skene(
    labels: NDArray[Any],  # (voter, sample)
    *,
    classes: int,
    rounds: int,
) -> NDArray[np.float64]:  # (sample, class)
    """Run so many rounds of Dawid and Skene's own method, started from the shares of votes.

    Every voter has a confusion matrix of its own and a full vote; nothing is smoothed,
    shared or weighted. For comparison with other programs; the rule `dawid-skene` does more.

    >>> plain_dawid_skene(np.array([[0, 1], [0, 1], [1, 1]]), classes=2, rounds=3).argmax(axis=1)
    array([0, 1])
    """
    voters, samples = labels.shape
    block = Block(0, samples, labels[np.newaxis])
    groups, full = np.arange(voters), np.ones(voters)
    posterior = on_grid(agreement(labels, classes=classes), POSTERIOR_BITS)
    for _ in range(rounds):
        tally = Tally.empty(networks=1, classes=classes, groups=groups)
        tally.add(block.values, posterior, groups)
        annotators = Annotators(tally.prior(), tally.confusion(shared=0), groups, full)
        parts = annotators.posteriors(iter([block]))
        posterior = np.concatenate([found for _, found in parts])
    return posterior
