"""An audit as text and as JSON."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from accord.analysis.labels.audit import Audit
from accord.analysis.labels.review import Gain
from accord.store import Facts, Rows

MOST_RANKED: Final = 1000  # samples in the JSON
MOST_LISTED: Final = 10  # samples, and pairs of classes, in the text
MOST_CLASSES: Final = 100  # whose confusion is printed as JSON


def audit_json(rows: Rows, audit: Audit, gain: Gain | None = None) -> dict[str, Any]:
    """Return an audit in the form that `accord audit --json` prints."""
    document: dict[str, Any] = {
        "record": rows.name,
        "networks": rows.networks,
        "epochs": rows.epochs,
        "samples": rows.samples,
        "classes": rows.classes,
        "noise_rate": audit.noise_rate,
        "flagged": int(audit.flagged.sum()),
        "noise_rates": [None if math.isnan(rate) else rate for rate in audit.noise_rates.tolist()],
        "weights": audit.weights.tolist(),
        "unpredicted": list(audit.unpredicted),
        "ranking": audit.ranking[:MOST_RANKED].tolist(),
    }
    if rows.classes <= MOST_CLASSES:
        document["confusion"] = audit.confusion.tolist()
    if audit.score is not None:
        document |= {key: _number(value) for key, value in vars(audit.score).items()}
    if gain is not None:
        document["review"] = vars(gain) | {"actual": gain.actual}
    return document


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def audit_text(rows: Rows, audit: Audit) -> str:
    """Describe an audit: the noise, the likeliest corrections, the most suspicious samples."""
    flagged = int(audit.flagged.sum())
    lines = [
        f"{rows.name}: {rows.networks} networks, {rows.epochs} epochs, {rows.samples} samples, "
        f"{rows.classes} classes",
        "",
        f"{flagged} labels are probably wrong: {100 * audit.noise_rate:.1f} %",
    ]
    if audit.score is not None:
        score = audit.score
        lines.append(
            f"against the true labels: AUROC {score.auroc:.4f}, precision {score.precision:.3f}, "
            f"recall {score.recall:.3f}"
        )
    if flagged:
        lines += ["", *_corrections(audit, rows.facts), "", *_most_suspicious(audit, rows.facts)]
    return "\n".join(lines)


def audit_notes(audit: Audit, facts: Facts) -> list[str]:
    """Return what a reader should know before trusting an audit."""
    notes = [_unpredicted_note(audit, facts)] if audit.unpredicted else []
    if np.count_nonzero(audit.weights) == 1:
        notes.append(
            "the votes of one epoch alone count: the ranking holds, but the number of wrong "
            "labels may be far too low. Record more epochs"
        )
    return notes


def _unpredicted_note(audit: Audit, facts: Facts) -> str:
    names = ", ".join(_name(label, facts) for label in audit.unpredicted)
    sizes = audit.confusion.sum(axis=1)
    samples = int(sum(sizes[label] for label in audit.unpredicted))
    return (
        f"no network ever predicts {names}: the {samples} labels given so could not be judged "
        "and are ranked last"
    )


def gain_text(gain: Gain) -> str:
    """Say what a review should find, or what it found."""
    labels = "label" if gain.reviewed == 1 else "labels"
    expected = f"{100 * gain.expected:.1f} in 100 should be wrong"
    chance = f"in random order {100 * gain.by_chance:.1f}"
    if gain.changed is None or gain.actual is None:
        return f"{gain.reviewed} {labels} to review; {expected}, {chance}"
    found = (
        f"{gain.reviewed} {labels} reviewed, {gain.changed} changed ({gain.as_proposed} as "
        f"proposed): {100 * gain.actual:.1f} in 100 were wrong; {expected}, {chance}"
    )
    return found if gain.right is None else f"{found}; {gain.right} decisions are true"


def _corrections(audit: Audit, facts: Facts) -> list[str]:
    moves = audit.confusion - np.diag(np.diag(audit.confusion))
    order = np.argsort(-moves, axis=None, kind="stable")[:MOST_LISTED]
    pairs = np.transpose(np.unravel_index(order, moves.shape)).tolist()
    rows = [
        (_name(one, facts), _name(other, facts), str(moves[one, other]))
        for one, other in pairs
        if moves[one, other]
    ]
    return _table(("given", "proposed", "samples"), rows)


def _most_suspicious(audit: Audit, facts: Facts) -> list[str]:
    rows = [
        (
            str(sample if facts.ids is None else facts.ids[sample]),
            _name(int(audit.given[sample]), facts),
            _name(int(audit.proposed[sample]), facts),
            f"{audit.suspicion[sample]:.3f}",
        )
        for sample in audit.ranking[:MOST_LISTED]
        if audit.flagged[sample]
    ]
    return _table(("sample" if facts.ids is None else "id", "given", "proposed", "suspicion"), rows)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Set columns of text, the last one, of numbers, to the right."""
    widths = [max(len(text) for text in column) for column in zip(heads, *rows, strict=True)]
    return [
        "  ".join(
            [*(text.ljust(width) for text, width in zip(row[:-1], widths[:-1], strict=True)),
             row[-1].rjust(widths[-1])]
        )
        for row in (heads, *rows)
    ]  # fmt: skip


def _name(label: int, facts: Facts) -> str:
    return str(label) if facts.class_names is None else facts.class_names[label]
