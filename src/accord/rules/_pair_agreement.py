"""Agreement between pairs of networks."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, NetworksMissing
from accord.rules._analysis_context import Context
from accord.store import RecordReader

ONE_CLASS: Final = 0.95  # of the samples: a network predicts nothing else
MOST_SAMPLES: Final = 2_000  # of each block, evenly spaced, for which this is checked
GROUPS: Final = 64  # of samples: enough to estimate their scatter, few enough to keep


@dataclass(frozen=True)
class PairAgreement:
    """Agreement between pairs of networks at each epoch."""

    agreement: NDArray[np.float64]  # (epoch,), over all pairs and samples
    by_network: NDArray[np.float64]  # (network, epoch), one network with each of the others
    by_group: NDArray[np.float64]  # (group, epoch), all pairs on every n-th sample
    sizes: NDArray[np.intp]  # (group,) -> samples
    numbers: tuple[int, ...]  # of the networks
    untrained: NDArray[np.bool_]  # (epoch,), whether most networks predict one class for all

    @property
    def networks(self) -> int:
        return len(self.by_network)

    @property
    def epochs(self) -> int:
        return len(self.agreement)

    def without(self, network: int) -> NDArray[np.float64]:
        """Compute the mean agreement without the network at one position."""
        if self.networks < 3:
            raise ChoiceError("of two networks neither can be left out; no pair would be left")
        twice_the_rest = self.by_network.sum(axis=0) - 2 * self.by_network[network]
        return np.asarray(twice_the_rest / (self.networks - 2))

    def then(self, later: "PairAgreement") -> "PairAgreement":
        """Append later epochs."""
        return replace(
            self,
            agreement=np.concatenate([self.agreement, later.agreement]),
            by_network=np.concatenate([self.by_network, later.by_network], axis=1),
            by_group=np.concatenate([self.by_group, later.by_group], axis=1),
            untrained=np.concatenate([self.untrained, later.untrained]),
        )

    def first(self, epochs: int) -> "PairAgreement":
        return replace(
            self,
            agreement=self.agreement[:epochs],
            by_network=self.by_network[:, :epochs],
            by_group=self.by_group[:, :epochs],
            untrained=self.untrained[:epochs],
        )

    def levelled(self) -> "PairAgreement":
        """Set the agreement of untrained networks at the start to that of the epoch after them.

        Networks that predict one class for all samples agree fully: their agreement rises from
        nothing, it has not fallen.
        """
        start = int(np.append(self.untrained, False).argmin())
        if start in (0, self.epochs):
            return self
        at = np.maximum(np.arange(self.epochs), start)
        return replace(
            self,
            agreement=self.agreement[at],
            by_network=self.by_network[:, at],
            by_group=self.by_group[:, at],
        )


def measure_pair_agreement(reader: RecordReader, *, groups: int = GROUPS) -> PairAgreement:
    """Measure the agreement between pairs of networks.

    Groups of samples are interleaved: sample s belongs to group s mod `groups`.

    >>> from accord.store import ArrayReader, SampleInfo
    >>> labels = np.array([[[0, 1]], [[0, 0]], [[0, 1]]], np.uint8)
    >>> measure_pair_agreement(ArrayReader(labels, SampleInfo(2, 2))).by_network
    array([[0.75],
           [0.5 ],
           [0.75]])
    """
    if reader.networks < 2:
        raise NetworksMissing(
            f"{reader.name}: agreement between networks needs two; there is one. "
            "Record another network of the same samples"
        )
    groups = min(groups, reader.samples)
    by_network = np.zeros((reader.networks, reader.epochs), np.intp)
    by_group = np.zeros((groups, reader.epochs), np.intp)
    commonest, checked = np.zeros((reader.networks, reader.epochs)), 0
    for block in reader.blocks():
        equal = np.zeros(block.values.shape[1:], np.uint32)  # (epoch, sample) -> equal pairs
        for first, second in combinations(range(reader.networks), 2):
            same = block.values[first] == block.values[second]
            shared = np.count_nonzero(same, axis=1)
            by_network[first] += shared
            by_network[second] += shared
            equal += same
        by_group += sum_by_group(equal, start=block.start, groups=groups)
        some = block.values[:, :, :: -(-(block.stop - block.start) // MOST_SAMPLES)]
        middle = np.sort(some, axis=2)[:, :, some.shape[2] // 2]  # the class of most, if any is
        commonest += (some == middle[:, :, np.newaxis]).sum(axis=2)
        checked += some.shape[2]
    sizes = group_sizes(reader.samples, groups=groups)
    others = reader.networks - 1
    pairs = reader.networks * others / 2
    return PairAgreement(
        agreement=by_group.sum(axis=0) / (reader.samples * pairs),
        by_network=by_network / (reader.samples * others),
        by_group=by_group / (sizes[:, None] * pairs),
        sizes=sizes,
        numbers=reader.numbers,
        untrained=np.asarray((commonest >= ONE_CLASS * checked).mean(axis=0) > 0.5),
    )


def network_agreement(reader: RecordReader) -> NDArray[np.float64]:
    """Compute the mean agreement between networks at each epoch.

    Raises:
        NetworksMissing: there is only one network.
    """
    return Context.of(reader).once(measure_pair_agreement).agreement


def sum_by_group(
    counts: NDArray[Any],  # (epoch, sample), of consecutive samples
    *,
    start: int,
    groups: int,
) -> NDArray[np.intp]:  # (group, epoch)
    """Sum counts over the samples of each group.

    The first sample has position `start`.

    >>> sum_by_group(np.array([[1, 2, 3]]), start=1, groups=2)
    array([[2],
           [4]])
    """
    parts = [counts[:, (group - start) % groups :: groups] for group in range(groups)]
    return np.stack([part.sum(axis=1, dtype=np.intp) for part in parts])


def group_sizes(samples: int, *, groups: int) -> NDArray[np.intp]:
    """Compute the number of samples in each group.

    >>> group_sizes(5, groups=2)
    array([3, 2])
    """
    return np.bincount(np.arange(samples) % groups, minlength=groups)
