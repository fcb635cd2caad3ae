"""Annotators with known habits: how often each says what, given the true class."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError, counted
from accord.kernels.blocks import spans
from accord.kernels.confusion import Expected, Posterior, add_evidence, voters_at_once
from accord.kernels.exact import LOGARITHM_BITS, POSTERIOR_BITS, WEIGHT_BITS, on_grid
from accord.store import Block

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
