"""When the networks agree with each other against the given labels, epoch by epoch."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.kernels import count_votes, equally_spaced
from accord.store import Block, Rows

MOST_SAMPLES: Final = 2_000  # that are looked at, evenly spaced
MOST_EPOCHS: Final = 32  # whose votes count; neighbours say much the same

# Votes are added up as whole numbers, so that their order is without effect. On development
# records, eight steps ranked as well as weights that were not rounded; four did not.
STEPS: Final = 8


@dataclass(frozen=True)
class Contradiction:
    """How often networks contradict the given label, and how often in the same way."""

    share: NDArray[np.float64]  # (epoch,): of the votes that contradict it
    both: NDArray[np.float64]  # (epoch,): of pairs of networks that both contradict it
    same: NDArray[np.float64]  # (epoch,): of pairs that contradict it with one and the same class
    chance: NDArray[np.float64]  # (epoch,): of pairs that would do so by chance

    @property
    def weights(self) -> NDArray[np.float64]:
        """What each epoch's votes are worth (epoch,): between 0 and 1.

        Networks that know the given labels by heart never contradict them, and networks that
        know nothing contradict them at random. Between the two are the epochs that tell: two
        networks contradict the label, and agree on the class. The weight is the share of
        pairs that do so beyond chance, times that share among the pairs that contradict it.
        """
        beyond = np.maximum(self.same - self.chance, 0)
        none = np.zeros(len(beyond))
        return np.asarray(np.divide(beyond**2, self.both, out=none, where=self.both > 0))

    @property
    def steps(self) -> NDArray[np.intp]:
        """The weights as whole numbers (epoch,), in eighths of the largest.

        Of more than 32 epochs that are worth something, 32 are kept, equally spaced.
        """
        weights = self.weights
        most = weights.max() or 1.0
        rounded = np.asarray(np.rint(weights * (STEPS / most)), np.intp)
        useful = np.flatnonzero(rounded)
        if len(useful) <= MOST_EPOCHS:
            return rounded
        kept = useful[equally_spaced(len(useful), MOST_EPOCHS)]
        steps = np.zeros_like(rounded)
        steps[kept] = rounded[kept]
        return steps


def measure_contradiction(rows: Rows, given: NDArray[Any]) -> Contradiction:
    """Compare all pairs of networks at each epoch, on at most 2,000 samples, evenly spaced."""
    step = -(-rows.samples // MOST_SAMPLES)
    counts = _Counts(rows.networks, rows.epochs, rows.classes)
    for block in rows.blocks():
        first = -block.start % step
        some = np.ascontiguousarray(block.values[:, :, first::step])
        counts.add(some, given[block.where][first::step].astype(some.dtype))
    return counts.shares()


class _Counts:
    def __init__(self, networks: int, epochs: int, classes: int) -> None:
        self.samples = 0
        self.classes = classes
        self.said = np.zeros((networks, epochs, classes), np.intp)  # against the given label
        self.both = np.zeros(epochs, np.intp)
        self.same = np.zeros(epochs, np.intp)

    def add(self, labels: NDArray[Any], given: NDArray[Any]) -> None:
        against = labels != given  # (network, epoch, sample)
        self.samples += len(given)
        for network, epoch in np.ndindex(labels.shape[:2]):
            said = labels[network, epoch][against[network, epoch]]
            self.said[network, epoch] += np.bincount(said, minlength=self.classes)
        for one, other in combinations(range(len(labels)), 2):
            both = against[one] & against[other]
            self.both += both.sum(axis=1)
            self.same += (both & (labels[one] == labels[other])).sum(axis=1)

    def shares(self) -> Contradiction:
        networks = len(self.said)
        pairs = self.samples * networks * (networks - 1) / 2
        votes = self.said.sum(axis=2)
        of_each = self.said / np.maximum(votes, 1)[:, :, np.newaxis]
        of_all = of_each.sum(axis=0)
        alike = (of_all**2).sum(axis=1) - (of_each**2).sum(axis=(0, 2))
        both = self.both / pairs
        return Contradiction(
            share=votes.sum(axis=0) / (networks * self.samples),
            both=both,
            same=self.same / pairs,
            chance=both * alike / (networks * (networks - 1)),
        )


def add_weighted(block: Block, steps: NDArray[np.intp], *, classes: int) -> NDArray[np.intp]:
    """Add up the weights, in steps, of the votes for each class (sample, class).

    >>> block = Block(0, 1, np.array([[[0], [1]], [[0], [0]]]))  # two networks, two epochs
    >>> add_weighted(block, np.array([1, 3]), classes=2)
    array([[5, 3]])
    """
    table = np.zeros((block.stop - block.start, classes), np.intp)
    for step in np.unique(steps[steps > 0]):
        table += step * count_votes(block.values[:, steps == step], classes=classes)
    return table
