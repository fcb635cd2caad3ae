"""Record what networks predict while Keras trains them: `RecordPredictions`, a callback."""

from accord.recorders.keras import RecordPredictions

__all__ = ["RecordPredictions"]
