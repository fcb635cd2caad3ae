"""Text, JSON and CSV output of `accord trust`."""

import math
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from accord._files import write_file
from accord._predictions import encode_csv, prediction_columns
from accord.analysis import Estimate, Overview, RiskCoverage, Trust
from accord.analysis._audit._review_files import Header
from accord.analysis._trust._verified_samples import check_rewritable
from accord.errors import ChoiceError, counted
from accord.report._command_text import (
    after_epochs,
    bad_networks_json,
    bad_networks_text,
    heading,
    record_json,
)
from accord.report._text_table import text_table

TENTHS: Final = 10  # coverages listed
FEWEST: Final = 100  # samples for which verifying some of them is worthwhile
BAR: Final = 30  # characters of the fullest bin
SAMPLES_HEADER: Final[Header] = {
    "sample": True,
    "id": False,
    "label": True,
    "class": False,
    "score": True,
    "margin": False,
    "answers": False,
}


def trust_text(overview: Overview, found: Trust, verified: Estimate | None = None) -> str:
    """Format the results as tables and sentences."""
    parts = [
        [f"{heading(overview)}; labels by {found.rule}"],
        _bins_text(found),
        _curve_text(found),
        _answers_text(found),
    ]
    if verified is not None:
        low, high = 100 * verified.low, 100 * verified.high
        estimate = (
            f"estimated from the verified samples, {100 * verified.value:.1f} % of the labels are "
            f"right: {low:.1f} to {high:.1f} %, with {100 * verified.confidence:g} % confidence"
        )
        parts.append([estimate])
    elif found.accuracy is None:
        parts.append(_next_steps(overview))
    parts.append([_networks_text(found), _forgotten_text(overview, found)])
    return "\n\n".join("\n".join(part) for part in parts if part)


def trust_json(
    overview: Overview, found: Trust, verified: Estimate | None = None
) -> dict[str, Any]:
    scores, forgotten = found.prediction.scores, found.forgetting
    document = record_json(overview) | {
        "rule": found.rule,
        "by": found.by,
        "score": {"mean": float(scores.mean()), "median": float(np.median(scores))},
        "bins": list(_bins(found)),
        "answers": vars(found.answers),
        "bad_networks": bad_networks_json(found.networks),
        "forgotten": {
            "samples": len(forgotten.forgotten),
            "share": forgotten.share,
            "judged_by": forgotten.judged_by,
            "best_epoch": forgotten.best_epoch,
            "progress": overview.progress[forgotten.best_epoch],
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
        names = ("value", "low", "high", "confidence")
        document["verified"] = {name: getattr(verified, name) for name in names}
    return document


def write_samples(overview: Overview, found: Trust, path: str | os.PathLike[str]) -> None:
    """Write the samples with their scores to a .csv file.

    The column `margin` is left out for rules other than max agreement, and `answers`, 1 or 0, if
    true labels and threshold are both unknown.
    """
    target = Path(path)
    if target.suffix != ".csv":
        raise ChoiceError(f"{target}: samples are written as .csv; got {target.suffix!r}")
    check_rewritable(target, "a file of samples", header=SAMPLES_HEADER)
    columns = prediction_columns(found.prediction, overview.sample_info)
    if found.by == "margin":
        columns["margin"] = found.certainty
    if found.answers.threshold is not None or found.accuracy is not None:
        columns["answers"] = found.answered.astype(int)
    write_file(target, encode_csv(columns))


def _bins(found: Trust) -> Iterator[dict[str, Any]]:
    bins, known = found.bins, found.accuracy is not None
    for at in np.flatnonzero(bins.counts):
        one = {
            "from": float(bins.edges[at]),
            "samples": int(bins.counts[at]),
            "score": float(bins.confidence[at]),
        }
        yield one | ({"right": float(bins.accuracy[at])} if known else {})


def _bins_text(found: Trust) -> list[str]:
    most, known = int(found.bins.counts.max()), found.accuracy is not None
    rows = [
        (
            f"{one['from']:.2f}",
            str(one["samples"]),
            *([f"{100 * one['right']:.1f}"] if known else []),
            "#" * max(1, round(BAR * one["samples"] / most)),
        )
        for one in _bins(found)
    ]
    heads = ("score from", "samples", *(["right"] if known else []), "")
    lines = text_table(heads, rows, right=range(len(heads) - 1))
    if found.accuracy is not None:
        lines.append(
            f"{100 * found.accuracy:.1f} % of the labels are right; scores differ from the share "
            f"of right labels by {100 * found.bins.error:.1f} points on average (ECE)"
        )
    return lines


def _tenths(curve: RiskCoverage) -> Iterator[dict[str, float]]:
    """Iterate over thresholds at multiples of 10 % coverage."""
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
        (f"{one['threshold']:.3f}", f"{100 * one['coverage']:.1f}", f"{100 * one['risk']:.1f}")
        for one in _tenths(found.curve)
    ]
    return text_table((f"{found.by} from", "answered", "wrong"), rows, right=range(3))


def _answers_text(found: Trust) -> list[str]:
    answers = found.answers
    if answers.threshold is None:
        return [answers.reason] if found.accuracy is not None else []
    # Rounded down, so that a copied threshold answers the sample that lies exactly on it, too.
    start = math.floor(1e6 * answers.threshold) / 1e6
    target = "" if answers.target is None else f"for a risk of {100 * answers.target:g} %: "
    lines = [f"{target}{100 * answers.coverage:.1f} % are answered, from a {found.by} of {start:g}"]
    if answers.risk is not None and answers.bound is not None:
        lines.append(
            f"{100 * answers.risk:.2f} % of the answers are wrong; on similar samples at most "
            f"{100 * answers.bound:.2f} %, with {100 * answers.confidence:g} % confidence"
        )
    return lines


def samples_to_verify(samples: int) -> int | None:
    """Suggest a number of samples to verify.

    >>> samples_to_verify(10_000), samples_to_verify(240), samples_to_verify(99)
    (300, 120, None)
    """
    return None if samples < FEWEST else min(300, samples // 2)


def _next_steps(overview: Overview) -> list[str]:
    verify = samples_to_verify(overview.samples)
    if verify is None:
        return ["The accuracy requires true labels, and none were recorded."]
    path = shlex.quote(overview.path)
    return [
        "The accuracy requires true labels, and none were recorded. Verify a few samples:",
        f"  accord trust {path} --verify {verify} --out queue.csv",
        f"  accord trust {path} --verified queue.csv",
    ]


def _networks_text(found: Trust) -> str:
    if len(found.networks) == 1:
        return "networks: only one, which cannot be compared"
    if not found.comparable:
        return "networks: no two agree beyond chance, so bad ones cannot be identified"
    return f"networks: {bad_networks_text(found.networks) or 'none is bad'}"


def _forgotten_text(overview: Overview, found: Trust) -> str:
    forgotten = found.forgetting
    gone = len(forgotten.forgotten)
    judged = "" if forgotten.judged_by == "truth" else f", as judged by {forgotten.judged_by}"
    text = f"forgotten: {counted(gone, 'sample')}, {100 * forgotten.share:.1f} %{judged}"
    if not gone:
        return text
    best = forgotten.best_epoch
    text += f"; {forgotten.knew[best]} of them right {after_epochs(overview, best)}"
    return text if found.rescued is None else f"{text}, {found.rescued} by {found.rule}"
