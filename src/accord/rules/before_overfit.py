"""Before overfit: the epochs after the networks' agreement fell are left out."""

from dataclasses import replace

from accord.rules.dawid_skene import DawidSkene
from accord.rules.overfit.epochs_before import epochs_before_overfit
from accord.rules.rule import Definition, Prediction, Rule
from accord.store import ArrayRows, Facts, Rows


class BeforeOverfit(Rule):
    """Predict what Dawid–Skene makes of the epochs before the networks' agreement fell.

    Where networks memorise wrong labels early, most epochs are spoilt, and a vote over all of
    them is too. The fall of agreement, which `accord watch` looks for, tells which: the epochs
    from its lowest stretch on have no say. Where agreement has not fallen, all have.
    """

    name = "before-overfit"
    reads = "all"
    ordered = True

    def __call__(self, rows: Rows) -> Prediction:
        """Predict; the score is the class's posterior probability."""
        before = epochs_before_overfit(rows)
        if before is None:
            return DawidSkene()(rows)
        predicted = DawidSkene()(rows.select(epochs=range(before)))
        return predicted.noting(f"from the first {before} of {rows.epochs} epochs")

    def left_out(self, rows: Rows) -> str:
        """Say why the rule cannot predict these rows: Dawid–Skene's matrices are too large."""
        return DawidSkene().left_out(rows)

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined."""
        facts = Facts(record.labels.shape[2], record.classes)
        before = epochs_before_overfit(ArrayRows(record.labels, facts))
        kept = slice(before)
        cut = replace(
            record, labels=record.labels[:, kept], probabilities=record.probabilities[:, kept]
        )
        return DawidSkene.by_definition(cut)
