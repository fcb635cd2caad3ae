"""What a record tells beyond its labels: scores, curves, histograms, persistence, changes."""

from accord.analysis.accuracy import Accuracy, measure
from accord.analysis.between_networks import network_agreement
from accord.analysis.changes import Changes, changes, paired_changes
from accord.analysis.curves import Curve, Sweep, by_epochs, by_networks, curve
from accord.analysis.histograms import (
    MarginHistogram,
    error_consensus_histogram,
    final_margin_histogram,
    final_margin_of,
    margin_of,
)
from accord.analysis.persistence import Persistence, persistence
from accord.analysis.scores import Score, score

__all__ = [
    "Accuracy",
    "Changes",
    "Curve",
    "MarginHistogram",
    "Persistence",
    "Score",
    "Sweep",
    "by_epochs",
    "by_networks",
    "changes",
    "curve",
    "error_consensus_histogram",
    "final_margin_histogram",
    "final_margin_of",
    "margin_of",
    "measure",
    "network_agreement",
    "paired_changes",
    "persistence",
    "score",
]
