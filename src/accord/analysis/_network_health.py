"""What bad networks do to a prediction: a record with random or constant networks added to it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, ProbabilitiesMissing
from accord.kernels import count_votes
from accord.rules import Prediction, Rule, find_rule, predict_blocks
from accord.store import NetworkInfo, RecordReader

Kind = Literal["good", "random", "constant", "diverged", "weak"]

LAST: Final = 4  # the last quarter of the epochs is what counts
HALF: Final = 0.5  # of what the others reach; less is bad
NEAR_CHANCE: Final = 0.05  # agreement beyond chance, 0..1, that is as good as none
CONSTANT: Final = 0.98  # of a network's votes for one class


@dataclass(frozen=True)
class Member:
    """One network, as the others see it."""

    network: int  # its own number
    kind: Kind
    agreement: float  # with its best fellow, beyond chance, over the last quarter of the epochs
    at_best: float  # the same at its best epoch
    commonest: float  # the share of its votes for its commonest class, over the last quarter

    @property
    def good(self) -> bool:
        """Whether to keep it."""
        return self.kind == "good"


def members(reader: RecordReader) -> tuple[Member, ...]:
    """Say of each network whether it votes with the others, from the votes alone.

    Two networks agree beyond chance by kappa: 0 if they say the same no more often than the
    frequencies of their classes make likely, 1 if always. A network counts by the fellow it
    agrees with most, so that any number of bad ones cannot outvote two good ones. It is bad if
    that is less than half of the median of those above chance:

    - constant: nearly all of its votes are for one class, and those of others are not;
    - diverged: it once agreed with a fellow as well as the median network does now;
    - random: it agrees with none beyond chance;
    - weak: anything else below half.

    Where no two networks agree beyond chance, as when there is one network or all samples are
    of one class, nobody can be told from the rest and all are called good. Of two networks that
    disagree, it cannot be told which is bad: both count as good.
    """
    kappa, said = _measure(reader)
    last = slice(reader.epochs - max(1, reader.epochs // LAST), None)
    now = _best_fellow(kappa[:, :, last].mean(axis=2))
    once = np.max([_best_fellow(kappa[:, :, epoch]) for epoch in range(reader.epochs)], axis=0)
    shares = said[:, last].sum(axis=1)
    commonest = shares.max(axis=1) / shares.sum(axis=1)
    chance = chance_error(reader)
    usual = _usual(now, chance)
    return tuple(
        Member(
            number,
            _kind(float(now[i]), float(once[i]), float(commonest[i]), usual, chance),
            float(now[i]),
            float(once[i]),
            float(commonest[i]),
        )
        for i, number in enumerate(reader.numbers)
    )


def good_networks(reader: RecordReader) -> list[int]:
    """Return the numbers of the networks worth keeping, as `Record.select(networks=…)` takes."""
    return [member.network for member in members(reader) if member.good]


def network_weights(reader: RecordReader) -> NDArray[np.float64]:
    """Return a weight for each network by its agreement beyond chance; the largest is 1.

    All weigh the same where no two agree beyond chance.
    """
    found = np.array([max(member.agreement, 0.0) for member in members(reader)])
    if found.max() <= chance_error(reader):
        return np.ones(reader.networks)
    return np.asarray(found / found.max())


def weighted_vote(
    reader: RecordReader, weights: Sequence[float] | NDArray[np.float64]
) -> Prediction:
    """Predict by max agreement with networks that weigh differently.

    Counts a table of samples × classes for one block and network at a time. Equal support goes to
    the smaller class.

    Raises:
        ChoiceError: there is not one weight for each network, one is negative or not finite, or
            all are 0.
    """
    found = np.asarray(weights, np.float64)
    _check_weights(reader, found)
    shares = found / found.sum()

    def predict(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        support = sum(
            share * count_votes(one, classes=reader.classes)
            for share, one in zip(shares, labels, strict=True)
        )
        # Sums of equal weights in another order must still tie.
        table = np.round(np.asarray(support) / reader.epochs, 12)
        return table.argmax(axis=1), np.minimum(table.max(axis=1), 1.0)

    return predict_blocks(reader.blocks(), predict, samples=reader.samples)


def _check_weights(reader: RecordReader, weights: NDArray[np.float64]) -> None:
    if weights.shape != (reader.networks,):
        raise ChoiceError(
            f"{reader.name}: one weight for each network is wanted, {reader.networks} in all; got "
            f"shape {weights.shape}"
        )
    if not (np.isfinite(weights).all() and weights.min() >= 0 and weights.any()):
        raise ChoiceError(
            f"{reader.name}: weights must be finite, at least 0 and not all 0; got "
            f"{', '.join(f'{weight:g}' for weight in weights)}. Weigh a bad network 0"
        )


def chance_error(reader: RecordReader) -> float:
    """Return how far beyond chance two unrelated networks may seem to agree: three standard errors.

    Never less than 0.05.
    """
    return max(NEAR_CHANCE, 3 / math.sqrt(reader.samples * max(reader.classes - 1, 1)))


def _usual(now: NDArray[np.float64], chance: float) -> float:
    above = now[now > chance]
    # The lower of two middle ones: a network recorded twice agrees with itself, and must not
    # make others look bad.
    return float(np.quantile(above, 0.5, method="lower")) if above.size else 0.0


def _kind(now: float, once: float, commonest: float, usual: float, chance: float) -> Kind:
    if not usual or now >= HALF * usual:
        return "good"
    if commonest >= CONSTANT:
        return "constant"
    if once >= usual:
        return "diverged"
    return "random" if now <= chance else "weak"


def _best_fellow(kappa: NDArray[np.float64]) -> NDArray[np.float64]:  # (network,)
    others = kappa.copy()
    np.fill_diagonal(others, 0.0 if len(kappa) == 1 else -1.0)
    return np.asarray(others.max(axis=1))


def _measure(reader: RecordReader) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return kappa (network, network, epoch), and votes (network, epoch, class)."""
    equal = np.zeros((reader.networks, reader.networks, reader.epochs))
    said = np.zeros((reader.networks, reader.epochs, reader.classes))
    for block in reader.blocks():
        for first, second in combinations(range(reader.networks), 2):
            same = np.count_nonzero(block.values[first] == block.values[second], axis=1)
            equal[first, second] += same
            equal[second, first] += same
        _add_votes(said, block.values)
    by_chance = np.einsum("iec,jec->ije", said, said) / reader.samples**2
    beyond = equal / reader.samples - by_chance
    room = 1 - by_chance
    return np.divide(beyond, room, out=np.zeros_like(beyond), where=room > 1e-12), said


def _add_votes(said: NDArray[np.float64], labels: NDArray[Any]) -> None:
    networks, epochs, classes = said.shape
    for network in range(networks):
        for epoch in range(epochs):
            said[network, epoch] += np.bincount(labels[network, epoch], minlength=classes)


Bad = Literal["random", "constant"]


class CorruptReader(RecordReader):
    """Other rows with bad networks after their own, drawn anew whenever they are read.

    The bad ones are numbered on from the largest number there is. Constant ones all say class 0,
    as collapsed networks tend to say the same. They have no probabilities.
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
        self._rows = reader
        self._kind = kind
        self._seed = seed

    def read_labels(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return labels (network, epoch, sample)."""
        own = self._rows.networks
        known = self._rows.read_labels([0], epochs, samples)
        labels = np.empty((len(networks), *known.shape[1:]), known.dtype)
        for i, network in enumerate(networks):
            if network < own:
                labels[i] = self._rows.read_labels([network], epochs, samples)[0]
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
        """Raise: there are none for bad networks."""
        raise ProbabilitiesMissing(f"{self.name}: the bad networks added to it only say labels")

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """Return what was told of the real networks, and the first one's progress for others."""
        real = self._rows.networks_info()
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
    """Return a rule's accuracy with so many bad networks added, for each of `counts`.

    With `leave_out`, the rule sees only those that `good_networks` keeps.
    """
    rule, truth = find_rule(rule), reader.truth()
    found = []
    for count in counts:
        spoilt: RecordReader = CorruptReader(reader, kind=kind, count=count, seed=seed)
        if leave_out:
            spoilt = spoilt.select(networks=good_networks(spoilt))
        found.append(float((rule(spoilt).labels == truth).mean()))
    return np.array(found)
