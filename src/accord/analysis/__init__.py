"""What a record tells beyond its labels: scores, curves, wrong labels, persistence, changes."""

from accord.analysis._audit._audit import Audit, audit
from accord.analysis._audit._review import corrected_labels, measure_gain, review_queue
from accord.analysis._audit._review_files import (
    labelling_config,
    read_decisions,
    write_labels,
    write_queue,
)
from accord.analysis._curves import Curve, Sweep, by_epochs, by_networks, curve
from accord.analysis._dynamics import (
    Forgetting,
    MarginHistogram,
    Persistence,
    epochs_to_fuse,
    error_consensus_histogram,
    final_margin_histogram,
    final_margin_of,
    forgetting,
    margin_of,
    persistence,
)
from accord.analysis._network_health import (
    CorruptReader,
    Member,
    accuracy_with_bad_networks,
    good_networks,
    members,
    network_weights,
    weighted_vote,
)
from accord.analysis._scores import (
    Accuracy,
    Changes,
    Score,
    changes,
    measure,
    paired_changes,
    score,
)
from accord.analysis._trust._calibration import (
    Calibration,
    Isotonic,
    Temperature,
    brier_score,
    calibration,
    calibration_of,
    fit_isotonic,
    fit_temperature,
)
from accord.analysis._trust._intervals import share_interval
from accord.analysis._trust._noisy_accuracy import (
    Estimate,
    corrected_accuracy,
    corrected_difference,
    symmetric_confusion,
)
from accord.analysis._trust._trust import (
    RiskCoverage,
    Threshold,
    abstain_below,
    choose_threshold,
    risk_coverage,
)
from accord.analysis._trust._verification import Sampling, choose_to_verify, verified_accuracy
from accord.analysis._watch import Watch, watch
from accord.rules._overfitting import network_agreement

__all__ = [
    "Accuracy",
    "Audit",
    "Calibration",
    "Changes",
    "CorruptReader",
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
    "corrected_labels",
    "curve",
    "epochs_to_fuse",
    "error_consensus_histogram",
    "final_margin_histogram",
    "final_margin_of",
    "fit_isotonic",
    "fit_temperature",
    "forgetting",
    "good_networks",
    "labelling_config",
    "margin_of",
    "measure",
    "measure_gain",
    "members",
    "network_agreement",
    "network_weights",
    "paired_changes",
    "persistence",
    "read_decisions",
    "review_queue",
    "risk_coverage",
    "score",
    "share_interval",
    "symmetric_confusion",
    "verified_accuracy",
    "watch",
    "weighted_vote",
    "write_labels",
    "write_queue",
]
