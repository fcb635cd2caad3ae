"""What a record tells beyond its labels: scores, curves, wrong labels, persistence, changes."""

from accord.analysis.accuracy import Accuracy, measure
from accord.analysis.bad_members import (
    Member,
    good_networks,
    members,
    network_weights,
    weighted_vote,
)
from accord.analysis.changes import Changes, changes, paired_changes
from accord.analysis.curves import Curve, Sweep, by_epochs, by_networks, curve
from accord.analysis.forgetting import Forgetting, epochs_to_fuse, forgetting
from accord.analysis.histograms import (
    MarginHistogram,
    error_consensus_histogram,
    final_margin_histogram,
    final_margin_of,
    margin_of,
)
from accord.analysis.labels.audit import Audit, audit
from accord.analysis.overfit.alarm import Watch, watch
from accord.analysis.persistence import Persistence, persistence
from accord.analysis.scores import Score, score
from accord.analysis.spoiling import SpoiltRows, accuracy_with_bad_networks
from accord.analysis.trust.bounds import share_interval
from accord.analysis.trust.calibration import Calibration, brier_score, calibration, calibration_of
from accord.analysis.trust.isotonic import Isotonic, fit_isotonic
from accord.analysis.trust.noisy_scores import (
    Estimate,
    corrected_accuracy,
    corrected_difference,
    symmetric_confusion,
)
from accord.analysis.trust.selective import (
    RiskCoverage,
    Threshold,
    abstain_below,
    choose_threshold,
    risk_coverage,
)
from accord.analysis.trust.temperature import Temperature, fit_temperature
from accord.analysis.trust.verified import Sampling, choose_to_verify, verified_accuracy
from accord.rules.overfit.equal_pairs import network_agreement

__all__ = [
    "Accuracy",
    "Audit",
    "Calibration",
    "Changes",
    "Curve",
    "Estimate",
    "Forgetting",
    "Isotonic",
    "MarginHistogram",
    "Member",
    "Persistence",
    "RiskCoverage",
    "Sampling",
    "Score",
    "SpoiltRows",
    "Sweep",
    "Temperature",
    "Threshold",
    "Watch",
    "abstain_below",
    "accuracy_with_bad_networks",
    "audit",
    "brier_score",
    "by_epochs",
    "by_networks",
    "calibration",
    "calibration_of",
    "changes",
    "choose_threshold",
    "choose_to_verify",
    "corrected_accuracy",
    "corrected_difference",
    "curve",
    "epochs_to_fuse",
    "error_consensus_histogram",
    "final_margin_histogram",
    "final_margin_of",
    "fit_isotonic",
    "fit_temperature",
    "forgetting",
    "good_networks",
    "margin_of",
    "measure",
    "members",
    "network_agreement",
    "network_weights",
    "paired_changes",
    "persistence",
    "risk_coverage",
    "score",
    "share_interval",
    "symmetric_confusion",
    "verified_accuracy",
    "watch",
    "weighted_vote",
]
