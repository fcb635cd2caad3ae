"""Weighted agreement: max agreement with epochs that weigh what they are worth."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from accord.errors import SourceError
from accord.rules._base import Definition, Prediction
from accord.rules._epoch_weights import (
    Likeness,
    Weights,
    equal_weights,
    explained,
    find_disputed,
    likeness_by_definition,
    measure_likeness,
    predict_weighted,
    reliability,
    vote_by_definition,
    weigh_by_power,
)
from accord.rules._fitted import Arrays, FittedRule, check_networks, check_numbers, check_voters
from accord.rules._overfitting import epochs_before_early_overfit
from accord.store import ArrayReader, RecordReader, SampleInfo

# Of the likeness of epochs where votes are in dispute. On 70 records with three classes or more it
# is 0.97 or more; on eight of two networks that had learnt little after 6 or 15 epochs, 0 to 0.91.
EXPLAINED: Final = 0.95
ONE_NETWORK = "one network alone cannot tell its good epochs: all weigh the same"
ONE_CLASS = "with one class there is nothing to tell: all epochs weigh the same"
TWO_CLASSES = "with two classes agreement tells nothing of an epoch: all weigh the same"


class WeightedAgreement(FittedRule):
    """Predict the class with the largest sum of weights of the epochs that voted for it.

    An epoch weighs the more, the more its votes agree with what other networks say far from it
    in training, on the half of the samples where votes are most divided: that agreement to the
    fourth power. Of networks so poor that nothing holds there, all samples count. Where networks
    overfit early, epochs from the lowest stretch of their agreement on weigh nothing. No label is
    used. One network alone has equal weights, and so have two classes where nothing was
    overfitted early, as any two wrong votes are then the same: max agreement.

    Args:
        weights: of the epochs, if they were found before; see `fit` and `load`.
    """

    name = "weighted-agreement"
    reads = "all"
    ordered = True
    arrays = ("weights",)

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = weights

    @property
    def vote_weights(self) -> Weights | None:  # type: ignore[override]
        """The epochs' weights; None before `fit`."""
        return self.weights

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict; the score is the share of the weights that the class has."""
        if self.weights is None:
            fitted, note = _weigh(reader)
            return predict_weighted(reader, fitted).noting(note)
        check_voters(reader, self.name, epochs=len(self.weights))
        if self.voters is not None:
            self.voters.check(reader, self.name, networks=False)  # of each it learnt the same
        return self._cautioned(predict_weighted(reader, self.weights))

    def fit(self, reader: RecordReader) -> Self:
        """Return this rule with the epochs' weights found on these samples.

        Raises:
            ChoiceError: there is only one network.
        """
        check_networks(reader, self.name)
        weights, _ = _weigh(reader)
        return type(self)(weights).learnt_from(reader)

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


def _weigh(reader: RecordReader) -> tuple[Weights, str]:
    """Return the epochs' weights, and a note where there is nothing to weigh them by."""
    if reader.networks == 1:
        return equal_weights(reader.epochs), ONE_NETWORK
    before = epochs_before_early_overfit(reader)
    if before is None and reader.classes <= 2:
        return equal_weights(reader.epochs), TWO_CLASSES if reader.classes == 2 else ONE_CLASS
    kept = reader if before is None else reader.select(epochs=range(before))
    disputed = measure_likeness(kept, find_disputed(kept))
    weights = weigh_by_power(_reliability(disputed, lambda: measure_likeness(kept)))
    return _pad(weights, reader.epochs), ""


def _reliability(disputed: Likeness, whole: Callable[[], Likeness]) -> NDArray[np.float64]:
    """Tell epochs by the samples in dispute or, if what is told does not hold there, by all."""
    found = reliability(disputed.across)
    if not found.any() or explained(disputed.across, found) >= EXPLAINED:
        return found
    return reliability(whole().across)


def _pad(weights: Weights, epochs: int) -> Weights:
    """Let the epochs after those that were compared weigh nothing."""
    return np.pad(weights, (0, epochs - len(weights)))


def _weights_by_definition(record: Definition) -> Weights:
    networks, epochs, samples = record.labels.shape
    rows = ArrayReader(record.labels, SampleInfo(samples, record.classes))
    before = epochs_before_early_overfit(rows)
    if networks == 1 or (before is None and record.classes <= 2):
        return equal_weights(epochs)
    kept = record.labels[:, :before]
    divided = [_margin(kept[:, :, sample]) for sample in range(samples)]
    below = [sample for sample in range(samples) if divided[sample] < np.median(divided)]
    disputed = likeness_by_definition(replace(record, labels=kept[:, :, below or range(samples)]))
    found = _reliability(disputed, lambda: likeness_by_definition(replace(record, labels=kept)))
    return _pad(weigh_by_power(found), epochs)


def _margin(votes: NDArray[Any]) -> int:  # (network, epoch)
    first, second = sorted([*np.bincount(votes.ravel()), 0])[:-3:-1]
    return int(first - second)
