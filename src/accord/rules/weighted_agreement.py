"""Weighted agreement rule."""

from typing import Final, Self

import numpy as np

from accord.errors import SourceError
from accord.rules._analysis_context import Context
from accord.rules._base import Prediction
from accord.rules._epoch_weights import (
    Weights,
    disputed_samples,
    equal_weights,
    explained,
    likeness_among,
    measure_likeness,
    power_weights,
    predict_weighted,
    reliability,
)
from accord.rules._fitted_rule import Arrays, FittedRule, check_networks, check_numbers, check_sizes
from accord.rules._overfitting import epochs_before_early_overfitting, first_epochs
from accord.store import RecordReader

# Of the likeness of epochs where votes are in dispute. On 70 records with three classes or more it
# is 0.97 or more; on eight of two networks that had learnt little after 6 or 15 epochs, 0 to 0.91.
EXPLAINED: Final = 0.95
ONE_NETWORK: Final = "the epochs of a single network cannot be compared: all have equal weights"
ONE_CLASS: Final = "with one class there is nothing to compare: all epochs have equal weights"
TWO_CLASSES: Final = (
    "with two classes agreement does not show which epochs are good: all have equal weights"
)


class WeightedAgreement(FittedRule):
    """Predict the class with the largest sum of weights of the epochs that voted for it.

    The weight of an epoch is the fourth power of how much its votes agree, beyond chance, with
    other networks' votes far from it in training, on the half of the samples where votes are most
    divided; on all samples where networks are so poor that this explains nothing. Where networks
    overfit early, epochs from the lowest stretch of their agreement on have no weight. No label is
    used. With one network, or with two classes and no early overfitting, all weights are equal,
    because any two wrong votes are then the same: max agreement.

    Args:
        weights: of the epochs, fitted before by `fit` or `load`.
    """

    name = "weighted-agreement"
    reads = "all"
    ordered = True
    arrays = ("weights",)

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = weights

    @property
    def vote_weights(self) -> Weights | None:  # type: ignore[override]
        """Weights of the epochs."""
        return self.weights

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict labels scored by their share of the weights."""
        if self.weights is None:
            context = Context.of(reader)
            weights, note = _fit_weights(context)
            return predict_weighted(context, weights).with_note(note)
        check_sizes(reader, self.name, epochs=len(self.weights))
        if self.voters is not None:
            self.voters.check(reader, self.name, networks=False)  # weights are of all networks
        return self._with_caution(predict_weighted(reader, self.weights))

    def fit(self, reader: RecordReader) -> Self:
        """Fit the weights to a record.

        Raises:
            ChoiceError: there is only one network.
        """
        check_networks(reader, self.name)
        weights, _ = _fit_weights(Context.of(reader))
        return type(self)(weights).fitted_on(reader)

    def parameters(self) -> Arrays | None:
        """Get the weights."""
        return None if self.weights is None else {"weights": self.weights}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Create the rule from its weights.

        Raises:
            SourceError: the array holds no weights.
        """
        weights = arrays["weights"]
        check_numbers("weights", weights, (None,))
        if not weights.any():
            raise SourceError("weights must not all be 0: no epoch would count")
        return cls(weights)


def _fit_weights(context: Context) -> tuple[Weights, str]:
    """Estimate the weights of the epochs."""
    if context.networks == 1:
        return equal_weights(context.epochs), ONE_NETWORK
    before = epochs_before_early_overfitting(context)
    if before is None and context.classes <= 2:
        return equal_weights(context.epochs), TWO_CLASSES if context.classes == 2 else ONE_CLASS
    kept = context if before is None else context.once(first_epochs, before)
    disputed = likeness_among(kept, disputed_samples(kept))
    found = reliability(disputed.across)
    if found.any() and explained(disputed.across, found) < EXPLAINED:
        found = reliability(kept.once(measure_likeness).across)
    return np.pad(power_weights(found), (0, context.epochs - kept.epochs)), ""
