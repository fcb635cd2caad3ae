"""Record what networks predict while Lightning trains them: `RecordPredictions`, a callback."""

from accord.recorders.lightning import RecordPredictions

__all__ = ["RecordPredictions"]
