"""What a record tells with no true label: whether it overfits, and which labels look wrong."""

from typing import Any, Final

from accord.analysis import Audit
from accord.analysis.labels.audit import UNDECIDED
from accord.analysis.labels.audit_notes import audit_notes
from accord.errors import PredictionError, RecordError
from accord.report.captions import epoch_words
from accord.report.measured import Measured

MOST_SUSPECTS: Final = 20  # labels that are listed


def overfit_finding(measured: Measured) -> dict[str, Any] | None:
    """Return the verdict on overfit; None where there is nothing to compare."""
    record = measured.record
    if record.networks < 2 or record.epochs < 2:
        return None
    found = measured.watch
    return {
        "alarm": found.alarm,
        "reason": found.reason,
        "fall": f"{100 * found.fall:.1f}",
        "sure": f"{100 * found.sure:.2f} %",
        "epoch": found.best_epoch,
        "when": epoch_words(measured, found.best_epoch),
        "trained_on": record.rows.facts.trained_on,
    }


def label_finding(measured: Measured) -> dict[str, Any] | None:
    """Return what an audit of the given labels found, or why there could be none.

    None where nobody could ask: no given labels were recorded, or of one network alone.
    """
    record = measured.record
    if record.given is None or record.networks < 2:
        return None
    try:
        found = measured.audit
    except (RecordError, PredictionError) as error:  # the latter of very many classes
        return {"refused": str(error)}
    flagged = int(found.flagged.sum())
    return {
        "refused": None,
        "flagged": f"{flagged:,}",
        "samples": f"{record.samples:,}",
        "rate": f"{100 * found.flagged.mean():.1f} %",
        "by_all": f"{100 * found.noise_rate:.1f} %" if found.undecided > UNDECIDED else None,
        "score": _score(found),
        "notes": audit_notes(found, record.rows.facts),
        "by_id": record.ids is not None,
        "suspects": _suspects(measured, found),
    }


def _score(found: Audit) -> str | None:
    if found.score is None:
        return None
    score = found.score
    said = f"Against the true labels, which had no say: AUROC {score.auroc:.3f}"
    if not found.flagged.any():
        return f"{said}."
    return (
        f"{said}; {100 * score.precision:.1f} % of the suspects are wrong, and "
        f"{100 * score.recall:.1f} % of the wrong labels are among them."
    )


def _suspects(measured: Measured, found: Audit) -> list[dict[str, Any]]:
    record = measured.record
    names = record.class_names or tuple(str(label) for label in range(record.classes))
    return [
        {
            "sample": str(sample if record.ids is None else record.ids[sample]),
            "given": names[found.given[sample]],
            "proposed": names[found.proposed[sample]],
            "suspicion": f"{found.suspicion[sample]:.3f}",
        }
        for sample in found.ranking[:MOST_SUSPECTS].tolist()
        if found.flagged[sample]
    ]
