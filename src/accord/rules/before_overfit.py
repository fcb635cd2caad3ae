"""Before overfit: the epochs after the networks' agreement fell are left out."""

from dataclasses import replace
from typing import Self

import numpy as np

from accord.rules._base import Definition, Prediction
from accord.rules._fitted import check_networks
from accord.rules._overfitting import epochs_before_overfit
from accord.rules.dawid_skene import DawidSkene
from accord.store import ArrayReader, RecordReader, SampleInfo


class BeforeOverfit(DawidSkene):
    """Predict what Dawid–Skene makes of the epochs before the networks' agreement fell.

    Where networks memorise wrong labels early, most epochs are spoilt, and a vote over all of
    them is too. The fall of agreement, which `accord watch` looks for, tells which: the epochs
    from its lowest stretch on have no say. Where agreement has not fallen, all have.

    Args:
        annotators: what is known of them, if it was found before; those of the epochs that have
            no say weigh nothing.
    """

    name = "before-overfit"

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict; the score is the class's posterior probability."""
        before = epochs_before_overfit(reader) if self.annotators is None else None
        if before is None:
            return super().__call__(reader)
        predicted = super().__call__(reader.select(epochs=range(before)))
        return predicted.noting(f"from the first {before} of {reader.epochs} epochs")

    def fit(self, reader: RecordReader) -> Self:
        """Return this rule with the epochs that these samples leave a say, and what they tell.

        Raises:
            ChoiceError: there is only one network.
            PredictionError: expectation-maximisation collapsed or did not settle.
        """
        check_networks(reader, self.name)
        before = epochs_before_overfit(reader) or reader.epochs
        learnt = DawidSkene().fit(reader.select(epochs=range(before))).learnt() or {}
        silent = 0, reader.epochs - before  # epochs; they weigh nothing, whatever their group
        padded = {
            "weights": np.pad(learnt["weights"], silent),
            "groups": np.pad(learnt["groups"], silent, mode="edge"),
        }
        return self.from_arrays({**learnt, **padded}).learnt_from(reader)

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined."""
        sample_info = SampleInfo(record.labels.shape[2], record.classes)
        before = epochs_before_overfit(ArrayReader(record.labels, sample_info))
        kept = slice(before)
        cut = replace(
            record, labels=record.labels[:, kept], probabilities=record.probabilities[:, kept]
        )
        return DawidSkene.by_definition(cut)
