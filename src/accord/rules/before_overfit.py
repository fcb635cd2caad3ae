"""Dawid-Skene rule for the epochs before overfitting."""

from typing import Self

import numpy as np

from accord.rules._analysis_context import Context
from accord.rules._base import Prediction
from accord.rules._fitted_rule import check_networks
from accord.rules._overfitting import epochs_before_overfitting, first_epochs
from accord.rules.dawid_skene import DawidSkene, fit_dawid_skene
from accord.store import RecordReader


class BeforeOverfit(DawidSkene):
    """Predict what Dawid–Skene predicts from the epochs before the networks' agreement fell.

    Networks that memorise wrong labels early spoil most epochs, and with them a vote over all
    epochs. The fall of agreement that `accord watch` reports shows where: epochs from its lowest
    stretch on are left out. Where agreement has not fallen, every epoch counts.

    Args:
        annotators: fitted before, by `fit` or `load`; epochs left out have weight 0.
    """

    name = "before-overfit"

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict labels scored by posterior probability."""
        context = Context.of(reader)
        before = epochs_before_overfitting(context) if self.annotators is None else None
        if before is None:
            return super().__call__(context)
        predicted = context.once(first_epochs, before).once(fit_dawid_skene).prediction
        return predicted.with_note(f"from the first {before} of {context.epochs} epochs")

    def fit(self, reader: RecordReader) -> Self:
        """Fit the rule to the epochs before overfitting.

        Raises:
            ChoiceError: there is only one network.
            PredictionError: expectation maximisation collapsed or did not converge.
        """
        check_networks(reader, self.name)
        context = Context.of(reader)
        before = epochs_before_overfitting(context) or context.epochs
        fitted = DawidSkene().fit(context.select(epochs=range(before))).parameters() or {}
        left_out = 0, context.epochs - before  # their group has no effect, as they weigh nothing
        padded = {
            "weights": np.pad(fitted["weights"], left_out),
            "groups": np.pad(fitted["groups"], left_out, mode="edge"),
        }
        return self.from_arrays({**fitted, **padded}).fitted_on(context)
