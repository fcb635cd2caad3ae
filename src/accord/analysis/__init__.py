"""Tools for analysing records.

Each function takes the reader of a record, best a `Context`, which keeps rows and results, and
returns a frozen dataclass of numbers. `_audit` finds wrong training labels, `_trust` measures how
far predictions can be trusted, `_report_numbers` gathers what a report shows.
"""

from accord.analysis._accuracy_curves import Curve, Sweep, by_epochs, by_networks, curve
from accord.analysis._audit._audit import audit, audit_probabilities
from accord.analysis._audit._corrected_table import (
    CorrectedTable,
    write_corrected_list,
    write_corrected_table,
)
from accord.analysis._audit._label_studio import labelling_config
from accord.analysis._audit._notes import audit_notes
from accord.analysis._audit._result import Audit
from accord.analysis._audit._review import (
    Decisions,
    Gain,
    corrected_labels,
    expected_gain,
    measure_gain,
    review_queue,
)
from accord.analysis._audit._review_files import (
    read_decisions,
    write_audit,
    write_labels,
    write_probabilities,
    write_queue,
)
from accord.analysis._dynamics import (
    Forgetting,
    MarginHistogram,
    Persistence,
    error_consensus_histogram,
    final_margin_histogram,
    final_margin_of,
    forgetting,
    margin_of,
    persistence,
)
from accord.analysis._network_health import NetworkHealth, good_networks, network_health
from accord.analysis._record_notes import record_notes
from accord.analysis._report_numbers import (
    MAJORITY,
    MAX_AGREEMENT,
    PROBABILITY_AVERAGE,
    ClassRecall,
    Judged,
    Overview,
    Scored,
    Summary,
    WithoutBad,
    summarize,
)
from accord.analysis._scores import (
    Accuracy,
    Changes,
    Score,
    Scores,
    changes,
    compare_rules,
    measure,
    paired_changes,
    score,
)
from accord.analysis._trust._calibration import Calibration, calibration, calibration_of
from accord.analysis._trust._confidence_intervals import share_interval
from accord.analysis._trust._noisy_accuracy import (
    Estimate,
    corrected_accuracy,
    corrected_difference,
    symmetric_confusion,
)
from accord.analysis._trust._trust import (
    TRAINED_ON,
    RiskCoverage,
    Threshold,
    Trust,
    abstain_below,
    choose_threshold,
    measure_trust,
    risk_coverage,
)
from accord.analysis._trust._verified_samples import (
    Sampling,
    Verified,
    choose_to_verify,
    read_verification,
    verified_accuracy,
    write_verification,
)
from accord.analysis._watch import Watch, watch
from accord.rules import network_agreement

__all__ = [
    "MAJORITY",
    "MAX_AGREEMENT",
    "PROBABILITY_AVERAGE",
    "TRAINED_ON",
    "Accuracy",
    "Audit",
    "Calibration",
    "Changes",
    "ClassRecall",
    "CorrectedTable",
    "Curve",
    "Decisions",
    "Estimate",
    "Forgetting",
    "Gain",
    "Judged",
    "MarginHistogram",
    "NetworkHealth",
    "Overview",
    "Persistence",
    "RiskCoverage",
    "Sampling",
    "Score",
    "Scored",
    "Scores",
    "Summary",
    "Sweep",
    "Threshold",
    "Trust",
    "Verified",
    "Watch",
    "WithoutBad",
    "abstain_below",
    "audit",
    "audit_notes",
    "audit_probabilities",
    "by_epochs",
    "by_networks",
    "calibration",
    "calibration_of",
    "changes",
    "choose_threshold",
    "choose_to_verify",
    "compare_rules",
    "corrected_accuracy",
    "corrected_difference",
    "corrected_labels",
    "curve",
    "error_consensus_histogram",
    "expected_gain",
    "final_margin_histogram",
    "final_margin_of",
    "forgetting",
    "good_networks",
    "labelling_config",
    "margin_of",
    "measure",
    "measure_gain",
    "measure_trust",
    "network_agreement",
    "network_health",
    "paired_changes",
    "persistence",
    "read_decisions",
    "read_verification",
    "record_notes",
    "review_queue",
    "risk_coverage",
    "score",
    "share_interval",
    "summarize",
    "symmetric_confusion",
    "verified_accuracy",
    "watch",
    "write_audit",
    "write_corrected_list",
    "write_corrected_table",
    "write_labels",
    "write_probabilities",
    "write_queue",
    "write_verification",
]
