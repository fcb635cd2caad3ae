"""Detection of bad networks from their votes.

`network_health` judges each network; `CorruptReader` adds bad networks to a record, to measure what
they do to a rule.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, ProbabilitiesMissing
from accord.kernels import count_votes
from accord.rules import Context, Prediction, Rule, find_rule
from accord.store import NetworkInfo, RecordReader

Kind = Literal["good", "random", "constant", "diverged", "weak"]
Bad = Literal["random", "constant"]

LAST: Final = 4  # the last quarter of the epochs counts
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
    context = Context.of(reader)
    kappa, sizes = context.once(_measure_kappa)
    last = slice(context.epochs - max(1, context.epochs // LAST), None)
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


def network_weights(reader: RecordReader) -> NDArray[np.float64]:
    """Compute network weights from the agreement beyond chance.

    The largest weight is 1. Weights are equal if no two networks agree beyond chance.
    """
    found = np.array([max(one.agreement, 0.0) for one in network_health(reader)])
    if found.max() <= chance_error(reader):
        return np.ones(reader.networks)
    return np.asarray(found / found.max())


def weighted_vote(
    reader: RecordReader, weights: Sequence[float] | NDArray[np.float64]
) -> Prediction:
    """Predict by max agreement with weighted networks.

    Raises:
        ChoiceError: there is not one weight for each network, one is negative or not finite, or
            all are 0.
    """
    found = np.asarray(weights, np.float64)
    if found.shape != (reader.networks,):
        raise ChoiceError(
            f"{reader.name}: expected one weight for each of {reader.networks} networks; got "
            f"shape {found.shape}"
        )
    if not (np.isfinite(found).all() and found.min() >= 0 and found.any()):
        raise ChoiceError(
            f"{reader.name}: weights must be finite, at least 0 and not all 0; got "
            f"{', '.join(f'{weight:g}' for weight in found)}. Give a bad network weight 0"
        )
    shares, predicted = found / found.sum(), Prediction.empty(reader.samples)
    for block in reader.blocks():
        support = sum(
            share * count_votes(one, classes=reader.classes)
            for share, one in zip(shares, block.values, strict=True)
        )
        # Sums of equal weights in another order must still tie.
        table = np.round(np.asarray(support) / reader.epochs, 12)
        predicted.labels[block.where] = table.argmax(axis=1)
        predicted.scores[block.where] = np.minimum(table.max(axis=1), 1.0)
    return predicted


def chance_error(reader: RecordReader) -> float:
    """Compute the largest agreement expected by chance."""
    return max(NEAR_CHANCE, 3 / math.sqrt(reader.samples * max(reader.classes - 1, 1)))


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


def _measure_kappa(context: Context) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


class CorruptReader(RecordReader):
    """Reader that appends bad networks to a record.

    The bad ones are numbered from the largest number on. Constant ones all predict class 0,
    as collapsed networks tend to agree. They have no probabilities.
    """

    def __init__(self, reader: RecordReader, *, kind: Bad, count: int, seed: int = 0) -> None:
        if kind not in ("random", "constant") or count < 0:
            raise ChoiceError(
                f"bad networks are 'random' or 'constant', none or more; got {count} of {kind!r}"
            )
        self.name = reader.name
        self.sample_info = reader.sample_info
        first = max(reader.numbers) + 1
        self.numbers = (*reader.numbers, *range(first, first + count))
        self.epochs = reader.epochs
        self.has_probabilities = False
        self._reader = reader
        self._kind = kind
        self._seed = seed

    def read_labels(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Read labels of networks, epochs and samples."""
        own = self._reader.networks
        known = self._reader.read_labels([0], epochs, samples)
        labels = np.empty((len(networks), *known.shape[1:]), known.dtype)
        for i, network in enumerate(networks):
            if network < own:
                labels[i] = self._reader.read_labels([network], epochs, samples)[0]
            else:
                labels[i] = [self._bad_row(network, epoch)[samples] for epoch in epochs]
        return labels

    def _bad_row(self, network: int, epoch: int) -> NDArray[np.intp]:
        if self._kind == "constant":
            return np.zeros(self.samples, np.intp)
        generator = np.random.default_rng([self._seed, network, epoch])
        return generator.integers(0, self.classes, self.samples)

    def read_probabilities(
        self,
        networks: Sequence[int],  # noqa: ARG002
        epochs: Sequence[int],  # noqa: ARG002
        samples: slice,  # noqa: ARG002
    ) -> NDArray[Any]:
        """Raise an error because bad networks have no probabilities."""
        raise ProbabilitiesMissing(f"{self.name}: the bad networks added to it have labels alone")

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """Get the metadata of each network."""
        real = self._reader.networks_info()
        nothing: tuple[dict[str, Any], ...] = ({},) * self.epochs
        bad = (
            NetworkInfo(number, real[0].progress, nothing) for number in self.numbers[len(real) :]
        )
        return (*real, *bad)


def accuracy_with_bad_networks(
    reader: RecordReader,
    counts: Sequence[int],
    *,
    kind: Bad = "random",
    rule: str | Rule = "max-agreement",
    leave_out: bool = False,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Compute the accuracy of a rule with bad networks added.

    With `leave_out`, the rule uses only the networks that `good_networks` returns.
    """
    rule, truth = find_rule(rule), reader.truth()
    found = []
    for count in counts:
        context = Context(CorruptReader(reader, kind=kind, count=count, seed=seed))
        if leave_out:
            context = context.select(networks=good_networks(context))
        found.append(float((rule(context).labels == truth).mean()))
    return np.array(found)
