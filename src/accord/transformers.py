"""Record what networks predict while transformers trains them: `RecordPredictions`, a callback."""

from accord.recorders.transformers import RecordPredictions

__all__ = ["RecordPredictions"]
