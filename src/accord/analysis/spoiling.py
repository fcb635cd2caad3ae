"""What bad networks do to a prediction: a record with random or constant networks added to it."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from accord.analysis.bad_members import good_networks
from accord.errors import ChoiceError, ProbabilitiesMissing
from accord.rules import Rule, find_rule
from accord.store import Rows, Told

Bad = Literal["random", "constant"]


class SpoiltRows(Rows):
    """Other rows with bad networks after their own, drawn anew whenever they are read.

    The bad ones are numbered on from the largest number there is. Constant ones all say class 0,
    as collapsed networks tend to say the same. They have no probabilities.
    """

    def __init__(self, rows: Rows, *, kind: Bad, count: int, seed: int = 0) -> None:
        if kind not in ("random", "constant") or count < 0:
            raise ChoiceError(
                f"bad networks are 'random' or 'constant', none or more; got {count} of {kind!r}"
            )
        self.name = rows.name
        self.facts = rows.facts
        first = max(rows.numbers) + 1
        self.numbers = (*rows.numbers, *range(first, first + count))
        self.epochs = rows.epochs
        self.has_probabilities = False
        self._rows = rows
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

    def told(self) -> tuple[Told, ...]:
        """Return what was told of the real networks, and the first one's progress for others."""
        real = self._rows.told()
        nothing: tuple[dict[str, Any], ...] = ({},) * self.epochs
        bad = (Told(number, real[0].progress, nothing) for number in self.numbers[len(real) :])
        return (*real, *bad)


def accuracy_with_bad_networks(
    rows: Rows,
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
    rule, truth = find_rule(rule), rows.truth()
    found = []
    for count in counts:
        spoilt: Rows = SpoiltRows(rows, kind=kind, count=count, seed=seed)
        if leave_out:
            spoilt = spoilt.select(networks=spoilt.numbered(good_networks(spoilt)))
        found.append(float((rule(spoilt).labels == truth).mean()))
    return np.array(found)
