"""Annotators with known habits: how often each says what, given the true class."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError, counted
from accord.kernels._blocks import TABLE_CELLS, Labels, Positions, spans
from accord.kernels._votes import LOGARITHM_BITS, POSTERIOR_BITS, WEIGHT_BITS, on_grid
from accord.store import Block

JOINED_ROWS = 2**10
DENSE_FROM = 2  # one cell in so many holds a share

Evidence = NDArray[np.float64]  # (sample, class)
Posterior = NDArray[np.float64]  # (sample, class), rows add up to 1


def voters_at_once(classes: int) -> int:
    """Return of how many voters' labels one table is made; its rows should fit the L2 cache.

    >>> voters_at_once(10), voters_at_once(200)
    (3, 1)
    """
    return max(1, int(math.log(JOINED_ROWS, max(2, classes))))


def add_evidence(
    evidence: Evidence,  # changed
    said: Labels,  # (voter, sample), of a few voters: see `voters_at_once`
    tables: NDArray[np.float64],  # (voter, label, class)
) -> None:
    """Add to each sample the rows of the voters' tables that belong to the labels they gave it.

    One table for all that the voters can say together is looked up once for each sample:
    three voters cost a little more than one.

    >>> evidence = np.zeros((2, 2))
    >>> table = np.array([[0.5, 0.0], [0.0, 2.0]])
    >>> add_evidence(evidence, np.array([[1, 0], [0, 0]]), np.stack([table, table]))
    >>> evidence
    array([[0.5, 2. ],
           [1. , 0. ]])
    """
    classes, joined = tables.shape[-1], tables[0]
    for table in tables[1:]:
        joined = (joined[:, np.newaxis] + table).reshape(-1, classes)
    rows = _join(said, classes)
    # All at once, the rows taken would leave the cache: 3.9 ns a cell instead of 0.9 (100 classes).
    for span in spans(len(rows), max(1, TABLE_CELLS // classes)):
        # Labels were checked when they were recorded; without `clip`, take checks each again.
        evidence[span] += joined.take(rows[span], axis=0, mode="clip")


class Expected:
    """The classes that samples are expected to have, the impossible ones left out.

    Most samples have one class or two: what counts them need not walk through all classes.
    """

    def __init__(self, posterior: Posterior) -> None:
        self._classes = posterior.shape[1]
        self._sample, self._class = np.nonzero(posterior)
        self._share = posterior[self._sample, self._class]
        dense = self._share.size * DENSE_FROM > posterior.size
        self._columns = np.ascontiguousarray(posterior.T) if dense else None

    def count_confusion(
        self,
        said: Labels,  # (voter, sample), of a few voters: see `voters_at_once`
    ) -> NDArray[np.float64]:  # (voter, label, class)
        """Count how often each voter said each label for each class.

        >>> expected = Expected(np.array([[1.0, 0.0], [0.25, 0.75]]))
        >>> expected.count_confusion(np.array([[0, 0], [0, 1]])).tolist()
        [[[1.25, 0.75], [0.0, 0.0]], [[1.0, 0.0], [0.25, 0.75]]]
        """
        voters, classes = len(said), self._classes
        together = self._count(_join(said, classes), classes**voters)
        found = np.empty((voters, classes, classes))
        for voter in reversed(range(voters)):
            together = together.reshape(-1, classes, classes)  # all before, its label, class
            found[voter] = together.sum(axis=0)
            together = together.sum(axis=1)
        return found

    def _count(self, rows: Positions, size: int) -> NDArray[np.float64]:  # (row, class)
        if self._columns is not None:
            counted = [np.bincount(rows, weights=one, minlength=size) for one in self._columns]
            return np.stack(counted, axis=1)
        cells = rows.take(self._sample)
        cells *= self._classes
        cells += self._class
        size *= self._classes
        return np.asarray(np.bincount(cells, weights=self._share, minlength=size), np.float64)


def _join(said: Labels, classes: int) -> Positions:  # (voter, sample) -> (sample,)
    rows: Positions = said[0].astype(np.intp)
    for labels in said[1:]:
        rows *= classes
        rows += labels
    return rows


CELLS_AT_ONCE: Final = 2**22  # (sample, class) cells of evidence, 32 MiB
LEAST: Final = 1e-10  # votes that each label has at least, so that it has a logarithm
LARGEST: Final = 2**29  # cells of confusion matrices, 4 GiB


@dataclass(frozen=True)
class Annotators:
    """What is known of each (network, epoch), and of how frequent the classes are."""

    prior: NDArray[np.float64]  # (class,), adding up to 1
    confusion: NDArray[np.float64]  # (network, group, label, class): columns add up to 1
    groups: NDArray[np.intp]  # (epoch,) -> the group of neighbouring epochs that share matrices
    weights: NDArray[np.float64]  # (epoch,): how much of a full vote each of its votes counts

    def tables(self) -> NDArray[np.float64]:  # (network, group, label, class)
        """Return the evidence of each label for each class, on a grid."""
        return on_grid(np.log(self.confusion), LOGARITHM_BITS)

    def posteriors(self, blocks: Iterator[Block]) -> Iterator[tuple[Block, Posterior]]:
        """Return the posterior of a few samples at a time, each with their labels."""
        tables, weights = self.tables(), on_grid(self.weights, WEIGHT_BITS)
        prior = on_grid(np.log(self.prior), LOGARITHM_BITS)
        for part in small_parts(blocks, classes=len(prior)):
            evidence = np.tile(prior, (part.stop - part.start, 1))
            for network, epochs in self._voters(weights):
                votes = weights[epochs, np.newaxis, np.newaxis]
                weighted = votes * tables[network, self.groups[epochs]]
                add_evidence(evidence, part.values[network, epochs], weighted)
            yield part, to_posterior(evidence)

    def _voters(self, weights: NDArray[np.float64]) -> Iterator[tuple[int, NDArray[np.intp]]]:
        epochs, size = np.flatnonzero(weights), voters_at_once(len(self.prior))
        for network in range(len(self.confusion)):
            for first in range(0, len(epochs), size):
                yield network, epochs[first : first + size]


def to_posterior(evidence: NDArray[np.float64]) -> Posterior:
    """Turn logarithms of likelihoods into probabilities, on a grid.

    >>> to_posterior(np.log([[1.0, 3.0], [1.0, 1e-10]]))
    array([[0.25, 0.75],
           [1.  , 0.  ]])
    """
    powers = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    return on_grid(powers / powers.sum(axis=1, keepdims=True), POSTERIOR_BITS)


def small_parts(blocks: Iterator[Block], *, classes: int) -> Iterator[Block]:
    """Cut blocks so that a table of (sample, class) stays small."""
    for block in blocks:
        for span in spans(block.stop - block.start, max(1, CELLS_AT_ONCE // classes)):
            start, stop = block.start + span.start, block.start + span.stop
            yield Block(start, stop, block.values[:, :, span])


@dataclass
class Tally:
    """Votes by true class, as far as that is known: what annotators are estimated from."""

    votes: NDArray[np.float64]  # (network, group, label, class)
    right: NDArray[np.float64]  # (epoch,), how many votes are right
    sizes: NDArray[np.float64]  # (class,), how many samples it has

    @classmethod
    def empty(cls, *, networks: int, classes: int, groups: NDArray[np.intp]) -> "Tally":
        """Return a tally without votes."""
        shape = networks, int(groups.max()) + 1, classes, classes
        _check_size(shape)
        return cls(np.zeros(shape), np.zeros(len(groups)), np.zeros(classes))

    def add(self, labels: NDArray[Any], posterior: Posterior, groups: NDArray[np.intp]) -> None:
        """Count some samples' votes, (network, epoch, sample)."""
        expected, size = Expected(posterior), voters_at_once(len(self.sizes))
        self.sizes += posterior.sum(axis=0)
        for votes, said in zip(self.votes, labels, strict=True):
            for epochs in spans(len(groups), size):
                found = expected.count_confusion(said[epochs])
                np.add.at(votes, groups[epochs], found)
                self.right[epochs] += np.trace(found, axis1=1, axis2=2)

    def prior(self) -> NDArray[np.float64]:
        """Estimate how frequent each class is."""
        sizes = np.maximum(self.sizes, LEAST)
        return np.asarray(sizes / sizes.sum())

    def reliability(self, said: NDArray[np.float64]) -> NDArray[np.float64]:  # (epoch,)
        """Estimate how much more often than by chance each epoch's votes are right.

        Args:
            said: (epoch, class), the share of an epoch's votes for a class.
        """
        right = self.right / (len(self.votes) * self.sizes.sum())
        return np.asarray(np.maximum(right - said @ self.prior(), 0))

    def confusion(self, *, shared: float) -> NDArray[np.float64]:
        """Estimate how often each annotator says what, given the class.

        To what an annotator said of a class are added `shared` votes, spread as all
        networks together spread theirs at that time.
        """
        together = _columns(self.votes.sum(axis=0) + LEAST)
        return _columns(np.maximum(self.votes + shared * together, LEAST))


def _columns(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(votes / votes.sum(axis=-2, keepdims=True))


def _check_size(shape: tuple[int, ...]) -> None:
    networks, groups, classes, _ = shape
    if networks * groups * classes**2 > LARGEST:
        raise PredictionError(
            f"{counted(networks, 'network')} × {counted(groups, 'group')} of epochs with "
            f"{classes} × {classes} confusion matrices would take "
            f"{8 * networks * groups * classes**2 / 2**30:.0f} GiB; "
            f"the most is {8 * LARGEST / 2**30:.0f}. Use weighted-agreement, which needs none."
        )
