"""How often two networks say the same at each epoch, by network and by group of samples."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, NetworksMissing
from accord.store import Rows

GROUPS: Final = 64  # of samples: enough to see how far they differ, few enough to keep


@dataclass(frozen=True)
class EqualPairs:
    """Shares of equal pairs of networks, counted once and kept in three ways."""

    agreement: NDArray[np.float64]  # (epoch,), over all pairs and samples
    by_network: NDArray[np.float64]  # (network, epoch): one network with each of the others
    by_group: NDArray[np.float64]  # (group, epoch): all pairs, on every n-th sample
    sizes: NDArray[np.intp]  # (group,) -> samples
    numbers: tuple[int, ...]  # the networks' own

    @property
    def networks(self) -> int:
        """How many networks there are."""
        return len(self.by_network)

    @property
    def epochs(self) -> int:
        """How many epochs there are."""
        return len(self.agreement)

    def without(self, network: int) -> NDArray[np.float64]:
        """Return the mean over the pairs that do not hold one network (epoch,).

        Raises:
            ChoiceError: fewer than three networks leave no pair.
        """
        if self.networks < 3:
            raise ChoiceError("of two networks neither can be left out; no pair would be left")
        twice_the_rest = self.by_network.sum(axis=0) - 2 * self.by_network[network]
        return np.asarray(twice_the_rest / (self.networks - 2))

    def then(self, later: "EqualPairs") -> "EqualPairs":
        """Return these epochs and later ones of the same networks and samples."""
        return replace(
            self,
            agreement=np.concatenate([self.agreement, later.agreement]),
            by_network=np.concatenate([self.by_network, later.by_network], axis=1),
            by_group=np.concatenate([self.by_group, later.by_group], axis=1),
        )

    def until(self, epochs: int) -> "EqualPairs":
        """Return the first so many epochs alone."""
        return replace(
            self,
            agreement=self.agreement[:epochs],
            by_network=self.by_network[:, :epochs],
            by_group=self.by_group[:, :epochs],
        )


def count_equal_pairs(rows: Rows, *, groups: int = GROUPS) -> EqualPairs:
    """Compare every two networks at every epoch, reading the rows once.

    Groups of samples are interleaved: sample s belongs to group s mod `groups`.

    Raises:
        NetworksMissing: there is only one network.

    >>> from accord.store import ArrayRows, Facts
    >>> labels = np.array([[[0, 1]], [[0, 0]], [[0, 1]]], np.uint8)
    >>> count_equal_pairs(ArrayRows(labels, Facts(2, 2))).by_network
    array([[0.75],
           [0.5 ],
           [0.75]])
    """
    if rows.networks < 2:
        raise NetworksMissing(
            f"{rows.name}: agreement between networks needs two; there is one. "
            "Record another network of the same samples"
        )
    groups = min(groups, rows.samples)
    by_network = np.zeros((rows.networks, rows.epochs), np.intp)
    by_group = np.zeros((groups, rows.epochs), np.intp)
    for block in rows.blocks():
        equal = _count_equal(by_network, block.values)
        by_group += sum_by_group(equal, start=block.start, groups=groups)
    sizes = group_sizes(rows.samples, groups=groups)
    others = rows.networks - 1
    pairs = rows.networks * others / 2
    return EqualPairs(
        agreement=by_group.sum(axis=0) / (rows.samples * pairs),
        by_network=by_network / (rows.samples * others),
        by_group=by_group / (sizes[:, None] * pairs),
        sizes=sizes,
        numbers=rows.numbers,
    )


def network_agreement(rows: Rows) -> NDArray[np.float64]:
    """Return how often two networks predict the same class, over all pairs and samples (epoch,).

    Raises:
        NetworksMissing: there is only one network.
    """
    return count_equal_pairs(rows, groups=1).agreement


def sum_by_group(
    counts: NDArray[Any],  # (epoch, sample)
    *,
    start: int,
    groups: int,
) -> NDArray[np.intp]:
    """Add up what was counted for each sample, by group (group, epoch).

    Args:
        counts: of consecutive samples.
        start: the number of the first of them.
        groups: how many there are; sample s belongs to group s mod `groups`.

    >>> sum_by_group(np.array([[1, 2, 3]]), start=1, groups=2)
    array([[2],
           [4]])
    """
    members = [counts[:, (group - start) % groups :: groups] for group in range(groups)]
    return np.stack([member.sum(axis=1, dtype=np.intp) for member in members])


def group_sizes(samples: int, *, groups: int) -> NDArray[np.intp]:
    """Return how many samples each group has (group,).

    >>> group_sizes(5, groups=2)
    array([3, 2])
    """
    return np.bincount(np.arange(samples) % groups, minlength=groups)


def _count_equal(
    by_network: NDArray[np.intp],  # (network, epoch), added to
    labels: NDArray[Any],  # (network, epoch, sample)
) -> NDArray[np.uint32]:  # (epoch, sample) -> equal pairs
    equal = np.zeros(labels.shape[1:], np.uint32)
    for first, second in combinations(range(len(labels)), 2):
        same = labels[first] == labels[second]
        shared = np.count_nonzero(same, axis=1)
        by_network[first] += shared
        by_network[second] += shared
        equal += same
    return equal
