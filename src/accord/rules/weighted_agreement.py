"""Weighted agreement: max agreement with epochs that weigh what they are worth."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from accord.errors import SourceError
from accord.rules.epoch_weights import (
    Likeness,
    Weights,
    equal_weights,
    find_disputed,
    likeness_by_definition,
    measure_likeness,
    reliability,
    weigh_by_power,
)
from accord.rules.fitted import (
    Arrays,
    FittedRule,
    check_networks,
    check_numbers,
    check_voters,
)
from accord.rules.overfit.epochs_before import epochs_before_early_overfit
from accord.rules.rule import Definition, Prediction
from accord.rules.weighted_votes import predict_weighted, vote_by_definition
from accord.store import ArrayRows, Facts, Rows

ONE_NETWORK = "one network alone cannot tell its good epochs: all weigh the same"
ONE_CLASS = "with one class there is nothing to tell: all epochs weigh the same"
TWO_CLASSES = "with two classes agreement tells nothing of an epoch: all weigh the same"


class WeightedAgreement(FittedRule):
    """Predict the class with the largest sum of weights of the epochs that voted for it.

    An epoch weighs the more, the more its votes agree with what other networks say far from it
    in training, on the half of the samples where votes are most divided: that agreement to the
    fourth power. Where networks overfit early, epochs from the lowest stretch of their
    agreement on weigh nothing. No label is used. One network alone has equal weights, and so
    have two classes where nothing was overfitted early, as any two wrong votes are then the
    same: max agreement.

    Args:
        weights: of the epochs, if they were found before; see `fit` and `load`.
    """

    name = "weighted-agreement"
    reads = "all"
    ordered = True
    arrays = ("weights",)

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = weights

    def __call__(self, rows: Rows) -> Prediction:
        """Predict; the score is the share of the weights that the class has."""
        if self.weights is None:
            fitted, note = _weigh(rows)
            return predict_weighted(rows, fitted).noting(note)
        check_voters(rows, self.name, epochs=len(self.weights))
        if self.voters is not None:
            self.voters.check(rows, self.name, networks=False)  # of each it learnt the same
        return self._cautioned(predict_weighted(rows, self.weights))

    def fit(self, rows: Rows) -> Self:
        """Return this rule with the epochs' weights found on these samples.

        Raises:
            ChoiceError: there is only one network.
        """
        check_networks(rows, self.name)
        weights, _ = _weigh(rows)
        return type(self)(weights).learnt_from(rows)

    def learnt(self) -> Arrays | None:
        """Return the weights."""
        return None if self.weights is None else {"weights": self.weights}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the rule with these weights.

        Raises:
            SourceError: they are no weights.
        """
        weights = arrays["weights"]
        check_numbers("weights", weights, (None,))
        if not weights.any():
            raise SourceError("weights must not all be 0: no epoch would have a say")
        return cls(weights)

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined."""
        return vote_by_definition(record, _weights_by_definition(record))


def _weigh(rows: Rows) -> tuple[Weights, str]:
    """Return the epochs' weights, and a note where there is nothing to weigh them by."""
    if rows.networks == 1:
        return equal_weights(rows.epochs), ONE_NETWORK
    before = epochs_before_early_overfit(rows)
    if before is None and rows.classes <= 2:
        return equal_weights(rows.epochs), TWO_CLASSES if rows.classes == 2 else ONE_CLASS
    kept = rows if before is None else rows.select(epochs=range(before))
    likeness = measure_likeness(kept, find_disputed(kept))
    return _spread(likeness, epochs=rows.epochs), ""


def _spread(likeness: Likeness, *, epochs: int) -> Weights:
    """Weigh the epochs that were compared; those after them weigh nothing."""
    weights = weigh_by_power(reliability(likeness.across))
    return np.pad(weights, (0, epochs - len(weights)))


def _weights_by_definition(record: Definition) -> Weights:
    networks, epochs, samples = record.labels.shape
    rows = ArrayRows(record.labels, Facts(samples, record.classes))
    before = epochs_before_early_overfit(rows)
    if networks == 1 or (before is None and record.classes <= 2):
        return equal_weights(epochs)
    kept = record.labels[:, :before]
    divided = [_margin(kept[:, :, sample]) for sample in range(samples)]
    below = [sample for sample in range(samples) if divided[sample] < np.median(divided)]
    disputed = replace(record, labels=kept[:, :, below or range(samples)])
    return _spread(likeness_by_definition(disputed), epochs=epochs)


def _margin(votes: NDArray[Any]) -> int:  # (network, epoch)
    first, second = sorted([*np.bincount(votes.ravel()), 0])[:-3:-1]
    return int(first - second)
