"""What `accord trust` found, as text, as JSON, and sample by sample."""

import math
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from accord._files import csv_text, write_file
from accord._record import Record
from accord.analysis import Estimate, NetworkHealth, RiskCoverage, good_networks
from accord.analysis._audit._review_files import Header
from accord.analysis._network_health import chance_error
from accord.analysis._trust._trust_summary import Trust
from accord.analysis._trust._verification_files import check_rewritable
from accord.errors import ChoiceError, counted
from accord.report._cached_results import FIRST, SECOND, Measured
from accord.report._figures import RISKS, coverage_at
from accord.report._record_text import epoch_text
from accord.rules import ABSTAINED

MOST_NETWORKS: Final = 30  # that are listed; above, those that agree least
RULES: Final = {SECOND: "max agreement", FIRST: "the majority vote"}
KINDS: Final = {
    "good": "",
    "random": "agrees with no other network beyond chance",
    "constant": "nearly all of its votes are for one class",
    "diverged": "agreed as well as the others once, and no more",
    "weak": "agrees with others, but less than half as much as they do",
}


def trust_finding(measured: Measured) -> dict[str, Any] | None:
    """Return how much can be answered at small risks; None where the truth is not known."""
    if measured.record.truth is None:
        return None
    curve = measured.risks[SECOND]
    return {
        "risks": [
            {"risk": f"{100 * risk:g} %", "answered": _answered(coverage_at(curve, risk))}
            for risk in RISKS
        ],
        "trained_on": measured.record.reader.sample_info.trained_on,
    }


def networks_finding(measured: Measured) -> dict[str, Any] | None:
    """Return each network as the others see it, and what leaving bad ones out changes.

    None of one network alone.
    """
    record = measured.record
    if record.networks < 2:
        return None
    found = measured.members
    shown = sorted(found, key=lambda one: (one.good, one.agreement))[:MOST_NETWORKS]
    bad = [one for one in found if not one.good]
    accuracies = _accuracies(measured)
    return {
        "rows": [
            _row(one, accuracies) for one in sorted(shown, key=lambda one: (one.good, one.network))
        ],
        "networks": len(found),
        "scored": bool(accuracies),
        "sentence": _sentence(measured, bad),
        "left_out": _left_out(measured) if bad else None,
    }


def forgotten_finding(measured: Measured) -> dict[str, Any] | None:
    """Return how much was forgotten; None of one epoch alone, or without the truth."""
    record = measured.record
    if record.truth is None or record.epochs < 2:
        return None
    found = measured.forgetting
    gone = len(found.forgotten)
    if not gone:
        return {"forgotten": None}
    return {
        "forgotten": f"{gone:,}",
        "samples": f"{record.samples:,}",
        "share": f"{100 * found.share:.1f} %",
        "remembered": f"{measured.remembered:,}",
        "lost": f"{gone - measured.remembered:,}",
        "rescued": f"{100 * measured.remembered / gone:.1f} %",
    }


def _answered(coverage: float | None) -> str:
    if coverage is None:
        return "none"
    return "all" if coverage == 1 else f"{100 * coverage:.1f} %"


def _accuracies(measured: Measured) -> dict[int, float]:
    """Return each network's accuracy at the last epoch by its number; nothing without truth."""
    if measured.record.truth is None:
        return {}
    single = next(one for one in measured.scores if one.per_network is not None)
    return dict(zip(measured.record.reader.numbers, single.per_network or (), strict=True))


def _row(one: NetworkHealth, accuracies: dict[int, float]) -> dict[str, Any]:
    return {
        "network": one.network,
        "kind": one.kind,
        "good": one.good,
        "why": KINDS[one.kind],
        "agreement": one.agreement,
        "at": min(1.0, max(0.0, one.agreement)),
        "accuracy": accuracies.get(one.network),
    }


def _sentence(measured: Measured, bad: Sequence[NetworkHealth]) -> str:
    record = measured.record
    if bad:
        named = ", ".join(f"network {one.network} ({one.kind})" for one in bad)
        does = "does" if len(bad) == 1 else "do"
        return f"{len(bad)} of {record.networks} {does} not vote with the rest: {named}."
    if max(one.agreement for one in measured.members) <= chance_error(record.reader):
        return (
            "No two networks agree beyond chance, so that none can be told from the rest: "
            "have they learnt anything yet?"
        )
    if record.networks == 2:
        return "They vote together. Of two that did not, it could not be told which is bad."
    return f"All {record.networks} vote with the others."


def _left_out(measured: Measured) -> dict[str, Any]:
    """Return what max agreement and the majority vote of the good networks alone would change."""
    record = measured.record
    good = good_networks(record.reader)
    kept = record.select(networks=good)
    now = {
        rule: (record.predict(rule).labels, kept.predict(rule).labels) for rule in (SECOND, FIRST)
    }
    before, after = now[SECOND]
    truth = record.truth
    return {
        "moved": f"{int((before != after).sum()):,}",
        "samples": f"{record.samples:,}",
        "keep": ",".join(map(str, good)),
        "accuracies": None
        if truth is None
        else [
            {
                "rule": RULES[rule],
                "before": f"{100 * float((first == truth).mean()):.1f} %",
                "after": f"{100 * float((second == truth).mean()):.1f} %",
            }
            for rule, (first, second) in now.items()
        ],
    }


TENTHS: Final = 10  # coverages that are told
FEWEST: Final = 100  # samples from which on verifying some tells of the rest
WIDTH: Final = 30  # of a bar for the fullest bin
SAMPLES_HEADER: Final[Header] = {
    "sample": True,
    "id": False,
    "label": True,
    "class": False,
    "score": True,
    "margin": False,
    "answers": False,
}


def trust_text(record: Record, found: Trust, verified: Estimate | None = None) -> str:
    """Return what was found, for people."""
    head = (
        f"{record.path}: {counted(record.networks, 'network')}, {counted(record.epochs, 'epoch')}, "
        f"{counted(record.samples, 'sample')}; labels by {found.rule}"
    )
    parts = [[head], _bins_text(found), _curve_text(found), _answers_text(found)]
    if verified is not None:
        parts.append([_verified_text(verified)])
    elif found.accuracy is None:
        parts.append(_how_to_learn_more(record))
    parts.append([_networks_text(found), _forgotten_text(record, found)])
    return "\n\n".join("\n".join(part) for part in parts if part)


def trust_json(record: Record, found: Trust, verified: Estimate | None = None) -> dict[str, Any]:
    """Return what was found in the form that `accord trust --json` prints."""
    scores, forgotten = found.prediction.scores, found.forgetting
    document: dict[str, Any] = {
        "record": record.path,
        "networks": record.networks,
        "epochs": record.epochs,
        "samples": record.samples,
        "classes": record.classes,
        "rule": found.rule,
        "by": found.by,
        "score": {"mean": float(scores.mean()), "median": float(np.median(scores))},
        "bins": list(_bins(found)),
        "answers": _answers_json(found),
        "bad_networks": {str(one.network): one.kind for one in found.members if not one.good},
        "forgotten": {
            "samples": len(forgotten.forgotten),
            "share": forgotten.share,
            "judged_by": forgotten.judged_by,
            "best_epoch": forgotten.best_epoch,
            "progress": record.progress[forgotten.best_epoch],
            "knew": int(forgotten.knew[forgotten.best_epoch]),
            "rescued": found.rescued,
        },
        "notes": list(found.notes),
    }
    if found.curve is not None:
        document |= {
            "accuracy": found.accuracy,
            "calibration_error": found.bins.error,
            "largest_calibration_error": found.bins.largest_error,
            "area": found.curve.area,
            "thresholds": list(_tenths(found.curve)),
        }
    if verified is not None:
        fields = ("value", "low", "high", "confidence")
        document["verified"] = {name: getattr(verified, name) for name in fields}
    return document


def write_samples(record: Record, found: Trust, path: str | os.PathLike[str]) -> None:
    """Write one row per sample to a .csv file: label, score, margin, and whether to answer.

    The margin is that of max agreement, and left out for other rules; `answers` is 1 or 0, and left
    out if there is no threshold because no true label is known.

    Raises:
        ChoiceError: the file is no .csv.
        RecordExists: the file is there and holds decisions, or something else than such rows.
    """
    target = Path(path)
    if target.suffix != ".csv":
        raise ChoiceError(f"{target}: samples are written as .csv; got {target.suffix!r}")
    check_rewritable(target, "file of samples", header=SAMPLES_HEADER)
    columns: dict[str, Any] = {"sample": np.arange(record.samples)}
    if record.ids is not None:
        columns["id"] = record.ids
    labels = found.prediction.labels
    columns["label"] = labels
    if record.class_names is not None:
        names = np.array([*record.class_names, ""])  # an abstention has no name
        columns["class"] = names[np.where(labels == ABSTAINED, -1, labels)]
    columns["score"] = found.prediction.scores
    if found.by == "margin":
        columns["margin"] = found.sureness
    if found.answers.threshold is not None or found.accuracy is not None:
        columns["answers"] = found.answered.astype(int)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    write_file(target, csv_text(columns, rows).encode())


def _bins(found: Trust) -> Iterator[dict[str, Any]]:
    """Yield each bin that is not empty; how many are right only where that is known."""
    bins, known = found.bins, found.accuracy is not None
    for at in np.flatnonzero(bins.counts):
        told = {
            "from": float(bins.edges[at]),
            "samples": int(bins.counts[at]),
            "score": float(bins.confidence[at]),
        }
        yield told | ({"right": float(bins.accuracy[at])} if known else {})


def _bins_text(found: Trust) -> list[str]:
    most, known = int(found.bins.counts.max()), found.accuracy is not None
    lines = [f"score from  samples{'  right' if known else ''}"]
    for one in _bins(found):
        share = f"  {100 * one['right']:5.1f}" if known else ""
        bar = "#" * max(1, round(WIDTH * one["samples"] / most))
        lines.append(f"{one['from']:10.2f}  {one['samples']:7}{share}  {bar}")
    if found.accuracy is not None:
        lines.append(
            f"{100 * found.accuracy:.1f} % of the samples are labelled right; scores differ from "
            f"shares of right labels by {100 * found.bins.error:.1f} points on average (ECE)"
        )
    return lines


def _tenths(curve: RiskCoverage) -> Iterator[dict[str, float]]:
    """Yield the first threshold that answers 100 %, 90 % … of what can be answered."""
    wanted = curve.coverage[-1] * np.arange(TENTHS, 0, -1) / TENTHS
    places = np.searchsorted(curve.coverage, wanted - 1e-12)
    for at in np.unique(places)[::-1]:
        yield {
            "threshold": float(curve.thresholds[at]),
            "coverage": float(curve.coverage[at]),
            "risk": float(curve.risk[at]),
        }


def _curve_text(found: Trust) -> list[str]:
    if found.curve is None:
        return []
    rows = [
        f"{one['threshold']:{len(found.by) + 5}.3f}  {100 * one['coverage']:8.1f}  "
        f"{100 * one['risk']:5.1f}"
        for one in _tenths(found.curve)
    ]
    return [f"{found.by} from  answered  wrong", *rows]


def _answers_text(found: Trust) -> list[str]:
    answers = found.answers
    if answers.threshold is None:
        return [answers.reason] if found.accuracy is not None else []
    # Rounded down: whoever copies it answers the sample that lies exactly on it too.
    start = math.floor(1e6 * answers.threshold) / 1e6
    asked = "" if answers.target is None else f"for a risk of {100 * answers.target:g} %: "
    lines = [
        f"{asked}from a {found.by} of {start:g} on, {100 * answers.coverage:.1f} % are answered"
    ]
    if answers.risk is not None and answers.bound is not None:
        lines.append(
            f"{100 * answers.risk:.2f} % of the answers are wrong; on samples like these at most "
            f"{100 * answers.bound:.2f} %, with {100 * answers.confidence:g} % confidence"
        )
    return lines


def _answers_json(found: Trust) -> dict[str, Any]:
    fields = ("target", "threshold", "coverage", "risk", "bound", "confidence", "reason")
    return {name: getattr(found.answers, name) for name in fields}


def _verified_text(one: Estimate) -> str:
    return (
        f"by the verified samples, {100 * one.value:.1f} % of the samples are labelled right: "
        f"{100 * one.low:.1f} to {100 * one.high:.1f} %, with {100 * one.confidence:g} % confidence"
    )


def samples_to_verify(samples: int) -> int | None:
    """Return how many of so many samples people had best verify; None where there are too few.

    >>> samples_to_verify(10_000), samples_to_verify(240), samples_to_verify(99)
    (300, 120, None)
    """
    return None if samples < FEWEST else min(300, samples // 2)


def _how_to_learn_more(record: Record) -> list[str]:
    verify = samples_to_verify(record.samples)
    if verify is None:
        return ["How many are right needs true labels, and none were recorded."]
    path = shlex.quote(record.path)
    return [
        "How many are right needs true labels, and none were recorded. A few verified ones do:",
        f"  accord trust {path} --verify {verify} --out queue.csv",
        f"  accord trust {path} --verified queue.csv",
    ]


def _networks_text(found: Trust) -> str:
    bad = [one for one in found.members if not one.good]
    if len(found.members) == 1:
        return "networks: there is one, and no other to compare it with"
    if not found.comparable:
        return "networks: no two agree beyond chance, so that none can be told from the rest"
    if not bad:
        return "networks: none looks bad"
    named = ", ".join(f"network {one.network} is {one.kind}" for one in bad)
    good = ",".join(str(one.network) for one in found.members if one.good)
    return f"networks: {named}. To leave out: --networks {good}"


def _forgotten_text(record: Record, found: Trust) -> str:
    forgotten = found.forgetting
    gone = len(forgotten.forgotten)
    judged = "" if forgotten.judged_by == "truth" else f", as {forgotten.judged_by} judges"
    told = f"forgotten: {counted(gone, 'sample')}, {100 * forgotten.share:.1f} %{judged}"
    if not gone:
        return told
    best = forgotten.best_epoch
    told += f"; {epoch_text(best, record.progress[best])} knew {forgotten.knew[best]} of them"
    return told if found.rescued is None else f"{told}, {found.rule} knows {found.rescued}"
