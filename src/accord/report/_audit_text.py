"""Text and JSON output of `accord audit`."""

import math
from typing import Any, Final

import numpy as np

from accord.analysis import Audit, Overview
from accord.analysis._audit._result import UNDECIDED
from accord.analysis._audit._review import Gain
from accord.errors import counted
from accord.report._command_text import heading, record_json
from accord.report._text_table import text_table
from accord.store import SampleInfo

MOST_RANKED: Final = 1000  # samples in JSON
MOST_LISTED: Final = 10  # samples, and pairs of classes, in text
MOST_CLASSES: Final = 100  # with a confusion matrix in JSON


def audit_json(overview: Overview, audit: Audit, gain: Gain | None = None) -> dict[str, Any]:
    document = record_json(overview) | {
        "noise_rate": audit.noise_rate,
        "flagged": int(audit.flagged.sum()),
        "noise_rates": [None if math.isnan(rate) else rate for rate in audit.noise_rates.tolist()],
        "weights": audit.weights.tolist(),
        "unpredicted": list(audit.unpredicted),
        "never_predicted": list(audit.never_predicted),
        "notes": list(audit.notes),
        "ranking": audit.ranking[:MOST_RANKED].tolist(),
    }
    ids, ranking = overview.sample_info.ids, document["ranking"]
    document["ids"] = ranking if ids is None else ids[ranking].tolist()
    if overview.classes <= MOST_CLASSES:
        document["confusion"] = audit.confusion.tolist()
    if audit.score is not None:
        scores = vars(audit.score).items()
        document |= {key: None if math.isnan(value) else value for key, value in scores}
    if gain is not None:
        document["review"] = vars(gain) | {"actual": gain.actual}
    return document


def audit_text(overview: Overview, audit: Audit) -> str:
    flagged = int(audit.flagged.sum())
    wrong = f"{counted(flagged, 'label')} {'is' if flagged == 1 else 'are'} probably wrong"
    percent = f"{100 * flagged / overview.samples:.1f} %"
    rate = f"{wrong}: {percent}"
    if audit.fitted_at_once:
        rate = f"{counted(flagged, 'label')} flagged: {percent}, which is no estimate of the rest"
    lines = [heading(overview, classes=True), "", rate]
    if audit.undecided > UNDECIDED:
        lines.append(f"noise rate by the mean posterior: {100 * audit.noise_rate:.1f} %")
    if audit.score is not None:
        found = "; no label is flagged"
        if flagged:
            found = f", precision {audit.score.precision:.3f}, recall {audit.score.recall:.3f}"
        lines.append(f"against the true labels: AUROC {audit.score.auroc:.4f}{found}")
    if flagged:
        info = overview.sample_info
        lines += ["", *_corrections(audit, info), "", *_most_suspicious(audit, info)]
    return "\n".join(lines)


def gain_text(gain: Gain) -> str:
    labels = counted(gain.reviewed, "label")
    expected = f"{100 * gain.expected:.1f} in 100 should be wrong"
    chance = f"in random order {100 * gain.by_chance:.1f}"
    if gain.changed is None or gain.actual is None:
        return f"{labels} to review; {expected}, {chance}"
    found = (
        f"{labels} reviewed, {gain.changed} changed ({gain.as_proposed} as "
        f"proposed): {100 * gain.actual:.1f} in 100 were wrong; {expected}, {chance}"
    )
    if gain.right is None:
        return found
    return f"{found}; {counted(gain.right, 'decision')} {'is' if gain.right == 1 else 'are'} true"


def _corrections(audit: Audit, sample_info: SampleInfo) -> list[str]:
    moves = np.stack([audit.given, audit.proposed], axis=1)[audit.flagged]
    pairs, samples = np.unique(moves, axis=0, return_counts=True)
    order = np.argsort(-samples, kind="stable")[:MOST_LISTED]
    rows = [
        (sample_info.names[one], sample_info.names[other], str(samples[pair]))
        for pair, (one, other) in zip(order, pairs[order], strict=True)
    ]
    return text_table(("given", "proposed", "samples"), rows, right=(2,))


def _most_suspicious(audit: Audit, sample_info: SampleInfo) -> list[str]:
    rows = [
        (
            str(sample if sample_info.ids is None else sample_info.ids[sample]),
            sample_info.names[audit.given[sample]],
            sample_info.names[audit.proposed[sample]],
            f"{audit.suspicion[sample]:.3f}",
            f"{audit.log_odds[sample]:.1f}",
        )
        for sample in audit.most_suspicious(MOST_LISTED)
    ]
    kind = "sample" if sample_info.ids is None else "id"
    heads = kind, "given", "proposed", "suspicion", "log odds"
    return text_table(heads, rows, right=(3, 4))
