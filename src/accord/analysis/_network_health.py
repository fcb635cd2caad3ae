"""Detection of bad networks from their votes."""

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from accord.rules import Context
from accord.store import RecordReader

Kind = Literal["good", "random", "constant", "diverged", "weak"]

HALF: Final = 0.5  # of the median agreement, below which a network is bad
NEAR_CHANCE: Final = 0.05  # agreement beyond chance, 0..1, that is as good as none
CONSTANT: Final = 0.98  # of a network's votes for one class


@dataclass(frozen=True)
class NetworkHealth:
    """Agreement of one network with the others."""

    network: int  # its number
    kind: Kind
    agreement: float  # with the network closest to it, beyond chance, last quarter of the epochs
    at_best: float  # the same at its best epoch
    commonest: float  # the share of its votes for its commonest class, over the last quarter

    @property
    def good(self) -> bool:
        """Whether the network agrees with the others."""
        return self.kind == "good"


def network_health(reader: RecordReader) -> tuple[NetworkHealth, ...]:
    """Measure the agreement of each network with the others.

    Agreement beyond chance is kappa: 0 if two networks agree no more often than the frequencies of
    their classes make likely, 1 if always. A network counts by the one it agrees with most, so
    that any number of bad ones cannot outvote two good ones. It is bad if that is less than half
    of the median of those above chance:

    - constant: nearly all of its votes are for one class, and those of others are not;
    - diverged: it once agreed with a network as well as the median network does now;
    - random: it agrees with none beyond chance;
    - weak: anything else below half.

    Where no two networks agree beyond chance, as with one network or one class, they cannot be
    compared and all are called good. Of two networks that disagree, both count as good.
    """
    reader.check_complete("the health of networks")
    context = Context.of(reader)
    kappa, sizes = context.once(measure_kappa)
    last = last_quarter(context)
    now = _best_partner(kappa[:, :, last].mean(axis=2))
    once = np.max([_best_partner(kappa[:, :, at]) for at in range(context.epochs)], axis=0)
    votes = sizes[:, last].sum(axis=1)
    commonest = votes.max(axis=1) / votes.sum(axis=1)
    chance = chance_error(context)
    above = now[now > chance]
    # The lower of two middle ones: a network recorded twice agrees with itself, and must not
    # make others look bad.
    usual = float(np.quantile(above, 0.5, method="lower")) if above.size else 0.0
    found = []
    for i, number in enumerate(context.numbers):
        measured = float(now[i]), float(once[i]), float(commonest[i])
        found.append(NetworkHealth(number, _kind(*measured, usual, chance), *measured))
    return tuple(found)


def good_networks(reader: RecordReader) -> list[int]:
    """Find the networks that agree with the others."""
    return [one.network for one in network_health(reader) if one.good]


def chance_error(reader: RecordReader) -> float:
    return max(NEAR_CHANCE, 3 / math.sqrt(reader.samples * max(reader.classes - 1, 1)))


def last_quarter(reader: RecordReader) -> slice:
    return slice(reader.epochs - max(1, reader.epochs // 4), None)


def _kind(now: float, once: float, commonest: float, usual: float, chance: float) -> Kind:
    if not usual or now >= HALF * usual:
        return "good"
    if commonest >= CONSTANT:
        return "constant"
    if once >= usual:
        return "diverged"
    return "random" if now <= chance else "weak"


def _best_partner(kappa: NDArray[np.float64]) -> NDArray[np.float64]:  # (network,)
    others = kappa.copy()
    np.fill_diagonal(others, 0.0 if len(kappa) == 1 else -1.0)
    return np.asarray(others.max(axis=1))


def measure_kappa(context: Context) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute kappa between networks and the votes by class."""
    networks, epochs, classes = context.networks, context.epochs, context.classes
    equal = np.zeros((networks, networks, epochs))
    sizes = np.zeros((networks, epochs, classes))
    for block in context.blocks():
        for first, second in combinations(range(networks), 2):
            same = np.count_nonzero(block.values[first] == block.values[second], axis=1)
            equal[first, second] += same
            equal[second, first] += same
        for network, epoch in np.ndindex(networks, epochs):
            row = block.values[network, epoch]
            sizes[network, epoch] += np.bincount(row, minlength=classes)
    by_chance = np.einsum("iec,jec->ije", sizes, sizes) / context.samples**2
    beyond = equal / context.samples - by_chance
    room = 1 - by_chance
    return np.divide(beyond, room, out=np.zeros_like(beyond), where=room > 1e-12), sizes
