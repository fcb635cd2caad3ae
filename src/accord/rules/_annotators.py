"""Confusion matrices of networks at epochs."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError, counted
from accord.kernels._blocks import TABLE_CELLS, Labels, Positions
from accord.kernels._votes import LOGARITHM_BITS, POSTERIOR_BITS, WEIGHT_BITS, on_grid
from accord.store import Block

JOINT_ROWS: Final = 2**10  # of a joint table, fits the L2 cache
DENSE_FROM: Final = 2  # the share of cells above 0 from which tables count as dense is 1 in this
CELLS_AT_ONCE: Final = 2**23  # of evidence (sample, class), or of logarithms, 64 MiB
LEAST: Final = 1e-10  # votes that each label has at least, so that it has a logarithm
MAX_CELLS: Final = 2**29  # of confusion matrices, 4 GiB

Evidence = NDArray[np.float64]  # (sample, class)
Posterior = NDArray[np.float64]  # (sample, class), rows add up to 1


@dataclass(frozen=True)
class Part:
    """Block of samples with the joined labels of neighbouring epochs."""

    where: slice
    rows: list[list[Positions]]  # by network, by group of `voters_at_once` epochs: (sample,)


Posteriors = Iterable[tuple[Part, Posterior]]


def voters_at_once(classes: int) -> int:
    """Compute the number of voters in a joint table.

    >>> voters_at_once(10), voters_at_once(200)
    (3, 1)
    """
    return max(1, int(math.log(JOINT_ROWS, max(2, classes))))


def join(labels: Labels, classes: int) -> Positions:  # (voter, sample) -> (sample,)
    """Convert the labels of several voters to rows of a joint table.

    Rows come in the smallest type that holds them, so that they take less memory than the labels.
    """
    kind = np.min_scalar_type(classes ** len(labels) - 1)
    rows: Positions = labels[0].astype(kind)
    for more in labels[1:]:
        rows *= kind.type(classes)
        rows += more.astype(kind, copy=False)
    return rows


def add_evidence(
    evidence: Evidence,  # changed
    rows: Positions,  # (sample,), of the joint table: see `join`
    tables: NDArray[np.float64],  # (voter, label, class)
) -> None:
    """Add the evidence of several voters to each sample.

    One joint table of all voters is looked up once per sample: three voters cost little more than
    one.

    >>> evidence = np.zeros((2, 2))
    >>> table = np.array([[0.5, 0.0], [0.0, 2.0]])
    >>> add_evidence(evidence, join(np.array([[1, 0], [0, 0]]), 2), np.stack([table, table]))
    >>> evidence
    array([[0.5, 2. ],
           [1. , 0. ]])
    """
    classes, joint = tables.shape[-1], tables[0]
    for table in tables[1:]:
        joint = (joint[:, np.newaxis] + table).reshape(-1, classes)
    # All at once, the rows taken would leave the cache: 3.9 ns a cell instead of 0.9 (100 classes).
    width = max(1, TABLE_CELLS // classes)
    for start in range(0, len(rows), width):
        span = slice(start, start + width)
        # Labels were checked when they were recorded; without `clip`, take checks each again.
        evidence[span] += joint.take(rows[span], axis=0, mode="clip")


class ExpectedClasses:
    """Posterior class probabilities arranged for counting.

    Most samples have one or two possible classes: counting need not walk through all of them.
    """

    def __init__(self, posterior: Posterior) -> None:
        self._classes = posterior.shape[1]
        self._sample, self._class = np.nonzero(posterior)
        self._share = posterior[self._sample, self._class]
        dense = self._share.size * DENSE_FROM > posterior.size
        # Two classes to a complex number, so that `np.add.at` adds both at once: a third of the
        # time of `np.bincount`.
        even = np.pad(posterior, ((0, 0), (0, self._classes % 2))) if dense else None
        self._pairs = None if even is None else np.ascontiguousarray(even.view(np.complex128).T)

    def count(
        self,
        rows: Positions,  # (sample,), of the joint table: see `join`
        voters: int,
    ) -> NDArray[np.float64]:  # (voter, label, class)
        """Count the labels of each voter by expected class.

        >>> expected = ExpectedClasses(np.array([[1.0, 0.0], [0.25, 0.75]]))
        >>> expected.count(join(np.array([[0, 0], [0, 1]]), 2), 2).tolist()
        [[[1.25, 0.75], [0.0, 0.0]], [[1.0, 0.0], [0.25, 0.75]]]
        """
        classes, size = self._classes, self._classes**voters
        if self._pairs is not None:
            rows, sums = rows.astype(np.intp), np.zeros((len(self._pairs), size), np.complex128)
            for total, share in zip(sums, self._pairs, strict=True):
                np.add.at(total, rows, share)
            joint = np.ascontiguousarray(sums.T).view(np.float64)[:, :classes]
        else:
            cells = rows.take(self._sample).astype(np.intp)
            cells *= classes
            cells += self._class
            counts = np.bincount(cells, weights=self._share, minlength=size * classes)
            joint = np.asarray(counts, np.float64)
        found = np.empty((voters, classes, classes))
        for voter in reversed(range(voters)):
            joint = joint.reshape(-1, classes, classes)  # all voters before, its label, class
            found[voter] = joint.sum(axis=0)
            joint = joint.sum(axis=1)
        return found


@dataclass(frozen=True)
class Annotators:
    """Confusion matrices of annotators and class frequencies."""

    prior: NDArray[np.float64]  # (class,), adding up to 1
    confusion: NDArray[np.float64]  # (network, group, label, class), columns add up to 1
    groups: NDArray[np.intp]  # (epoch,) -> the group of neighbouring epochs that share matrices
    weights: NDArray[np.float64]  # (epoch,), weight of each vote

    def posteriors(self, parts: Iterable[Part]) -> Iterator[tuple[Part, Posterior]]:
        """Compute the posteriors in small parts."""
        at_once = voters_at_once(len(self.prior))
        small = self.confusion.size <= CELLS_AT_ONCE  # else logarithms are computed for each part
        tables = on_grid(np.log(self.confusion), LOGARITHM_BITS) if small else None
        weights = on_grid(self.weights, WEIGHT_BITS)
        prior = on_grid(np.log(self.prior), LOGARITHM_BITS)
        for part in parts:
            evidence = np.tile(prior, (part.where.stop - part.where.start, 1))
            for network, joined in enumerate(part.rows):
                if tables is None:
                    table = on_grid(np.log(self.confusion[network]), LOGARITHM_BITS)
                else:
                    table = tables[network]
                for number, rows in enumerate(joined):
                    some = slice(number * at_once, (number + 1) * at_once)
                    if weights[some].any():
                        weighted = weights[some, np.newaxis, np.newaxis] * table[self.groups[some]]
                        add_evidence(evidence, rows, weighted)
            yield part, to_posterior(evidence)


def to_posterior(evidence: NDArray[np.float64]) -> Posterior:
    """Convert log-likelihoods to rounded probabilities.

    >>> to_posterior(np.log([[1.0, 3.0], [1.0, 1e-10]]))
    array([[0.25, 0.75],
           [1.  , 0.  ]])
    """
    shares: Posterior = evidence - evidence.max(axis=1, keepdims=True)
    np.exp(shares, out=shares)  # in place: with many classes this is the largest table
    shares /= shares.sum(axis=1, keepdims=True)
    np.rint(np.ldexp(shares, POSTERIOR_BITS, out=shares), out=shares)
    return np.ldexp(shares, -POSTERIOR_BITS, out=shares)


def small_parts(blocks: Iterable[Block], *, classes: int, tables: int = 1) -> Iterator[Part]:
    """Split blocks into small parts with joined labels, for tables (sample, class)."""
    width, at_once = max(1, CELLS_AT_ONCE // (classes * tables)), voters_at_once(classes)
    for block in blocks:
        for start in range(block.start, block.stop, width):
            stop = min(start + width, block.stop)
            values = block.values[:, :, start - block.start : stop - block.start]
            rows: list[list[Positions]] = [[] for _ in values]
            for joined, labels in zip(rows, values, strict=True):
                for first in range(0, len(labels), at_once):
                    joined.append(join(labels[first : first + at_once], classes))
            yield Part(slice(start, stop), rows)


@dataclass
class VoteCounts:
    """Counts of votes by expected true class."""

    votes: NDArray[np.float64]  # (network, group, label, class)
    correct: NDArray[np.float64]  # (epoch,), the votes for the true class
    sizes: NDArray[np.float64]  # (class,), the samples it has

    @classmethod
    def empty(cls, *, networks: int, classes: int, groups: NDArray[np.intp]) -> Self:
        shape = networks, int(groups.max()) + 1, classes, classes
        if math.prod(shape) > MAX_CELLS:
            raise PredictionError(
                f"{counted(networks, 'network')} × {counted(shape[1], 'group')} of epochs with "
                f"{classes} × {classes} confusion matrices would take "
                f"{8 * math.prod(shape) / 2**30:.0f} GiB; the most is {8 * MAX_CELLS / 2**30:.0f}. "
                "Use weighted-agreement, which needs none."
            )
        return cls(np.zeros(shape), np.zeros(len(groups)), np.zeros(classes))

    def add(self, posteriors: Posteriors, groups: NDArray[np.intp]) -> None:
        """Count votes weighted by the posteriors."""
        classes = len(self.sizes)
        at_once = voters_at_once(classes)
        for part, posterior in posteriors:
            expected = ExpectedClasses(posterior)
            self.sizes += posterior.sum(axis=0)
            for votes, joined in zip(self.votes, part.rows, strict=True):
                for number, rows in enumerate(joined):
                    epochs = slice(number * at_once, (number + 1) * at_once)
                    found = expected.count(rows, len(groups[epochs]))
                    np.add.at(votes, groups[epochs], found)
                    self.correct[epochs] += np.trace(found, axis1=1, axis2=2)

    def prior(self) -> NDArray[np.float64]:
        """Estimate the class frequencies."""
        sizes = np.maximum(self.sizes, LEAST)
        return np.asarray(sizes / sizes.sum())

    def reliability(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:  # (epoch,)
        """Estimate the accuracy beyond chance of each epoch from its shares (epoch, class)."""
        correct = self.correct / (len(self.votes) * self.sizes.sum())
        return np.asarray(np.maximum(correct - shares @ self.prior(), 0))

    def confusion(self, *, shared: float) -> NDArray[np.float64]:
        """Estimate the confusion matrices of annotators in place.

        To an annotator's votes on each class are added `shared` votes, distributed as those of all
        networks together at that time. The counts are gone afterwards.
        """
        together = self.votes.sum(axis=0)
        together += LEAST
        together /= together.sum(axis=-2, keepdims=True)
        together *= shared
        for votes in self.votes:
            votes += together
            np.maximum(votes, LEAST, out=votes)
            votes /= votes.sum(axis=-2, keepdims=True)
        return self.votes
