"""The report: one self-contained HTML page about a record."""

import json
import math
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

from accord._files import write_file
from accord._record import Record
from accord._version import __version__
from accord.analysis import Changes, Score
from accord.errors import missing_extra
from accord.report._cached_results import ClassRecall, Measured
from accord.report._drawing import with_variables
from accord.report._figures import draw_figure
from accord.report._record_text import gain_sentence, score_note
from accord.report._sentences import CAPTIONS, TITLES, label_finding, overfit_finding
from accord.report._theme import INKS
from accord.report._trust_text import (
    forgotten_finding,
    networks_finding,
    samples_to_verify,
    trust_finding,
)

try:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup
except ImportError as error:
    raise missing_extra("writing a report", "jinja2", extra="report", cause=error) from error

# Each figure, and the fewest networks and epochs with which it says anything.
WITH_TRUTH: Final = {
    "accuracy": (1, 2),
    "networks": (2, 1),
    "epochs": (1, 2),
    "final-margin": (1, 2),
    "error-consensus": (2, 1),
    "persistence": (1, 2),
}
WITHOUT_TRUTH: Final = {"margin": (1, 1)}
OVERFIT: Final = {"agreement": (2, 2)}
TRUST: Final = {"reliability": (1, 1), "risk-coverage": (1, 1)}
FORGOTTEN: Final = {"forgotten": (1, 2)}
MOST_CLASSES: Final = 30  # above, only those that change most are shown
MOST_CHANGED: Final = 10
MOST_TOLD: Final = 300  # characters of one fact that the recorders were told


def write_report(record: Record, out: Path) -> None:
    """Write one self-contained HTML page about a record, whole or not at all.

    Without true labels it shows what can be shown. The same record gives the same page.

    Raises:
        ExtraMissing: jinja2 or matplotlib is not installed.
        StorageError: the page cannot be written.
    """
    page = report_page(record).encode(errors="replace")  # a path need not be UTF-8
    write_file(out, page)


def report_page(record: Record) -> str:
    """Return the page as text."""
    measured = Measured(record)
    template = resources.files("accord.report").joinpath("page.html.jinja").read_text("utf-8")
    # Paths and class names are the user's: nothing is put into the page unescaped but our figures.
    page = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(template)
    scored = record.truth is not None
    forgotten = forgotten_finding(measured)
    return page.render(
        path=record.path,
        facts=_facts(record),
        told=_told(
            [told.metadata for told in record.reader.networks_info()], record.reader.numbers
        ),
        figures=_figures(measured, WITH_TRUTH if scored else WITHOUT_TRUTH),
        results=_results(measured) if scored else None,
        overfit=overfit_finding(measured),
        watched=_figures(measured, OVERFIT),
        labels=label_finding(measured),
        trust=trust_finding(measured),
        trusted=_figures(measured, TRUST if scored else {}),
        networks=networks_finding(measured),
        forgotten=forgotten,
        forgot=_figures(measured, FORGOTTEN if forgotten and forgotten["forgotten"] else {}),
        moved=None if scored else _moved(measured),
        verify=samples_to_verify(record.samples),
        notes=list(_notes(record)),
        inks=INKS,
        points=_points,
        version=__version__,
    )


def _moved(measured: Measured) -> str:
    samples = measured.record.samples
    return f"{measured.moved:,} of {samples:,} {'sample' if samples == 1 else 'samples'}"


def _facts(record: Record) -> dict[str, str]:
    sizes = ("networks", "epochs", "samples", "classes")
    kept = ("truth", "given", "ids", "class_names")
    has = [name.replace("_", " ") for name in kept if getattr(record, name) is not None]
    has += ["probabilities"] if record.reader.has_probabilities else []
    return {
        **{name: f"{getattr(record, name):,}" for name in sizes},
        "split": record.split,
        "also recorded": ", ".join(has) or "nothing",
    }


def _notes(record: Record) -> Iterator[str]:
    if record.epochs == 1:
        yield (
            "Only one epoch was recorded. Max agreement is then the majority vote of that epoch: "
            "record more epochs for it to do its work."
        )
    if record.networks == 1:
        yield (
            "Only one network was recorded: its own epochs vote, and figures that compare "
            "networks are left out."
        )


def _figures(measured: Measured, wanted: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    have = measured.record.networks, measured.record.epochs
    return [
        {
            "name": name,
            "title": TITLES[name],
            "svg": Markup(with_variables(draw_figure(name, measured))),  # noqa: S704
            "caption": CAPTIONS[name](measured),
        }
        for name, (networks, epochs) in wanted.items()
        if have[0] >= networks and have[1] >= epochs
    ]


def _results(measured: Measured) -> dict[str, Any]:
    scores, recalls = measured.scores, measured.recalls
    shown = recalls if len(recalls) <= MOST_CLASSES else _most_changed(recalls)
    return {
        "sentence": gain_sentence(scores),
        "changes": _changes(measured.changes),
        "rules": [_rule(one, measured.recommended) for one in scores],
        "rules_from": _floor([one.accuracy for one in scores]),
        "recalls": shown,
        "recalls_from": _floor([value for one in shown for value in (one.first, one.second)]),
        "classes": len(recalls),
        "absent": measured.record.classes - len(recalls),
    }


def _changes(changes: Changes) -> dict[str, str]:
    chance = "less than 0.001" if changes.p_value < 0.001 else f"{changes.p_value:.2g}"
    return {
        "turned_right": f"{changes.turned_right:,}",
        "turned_wrong": f"{changes.turned_wrong:,}",
        "samples": f"{changes.samples:,}",
        "difference": _points(changes.difference),
        "interval": f"{_points(changes.low)} to {_points(changes.high)}",
        "confidence": f"{100 * changes.confidence:g} %",
        "chance": chance,
    }


def _points(share: float) -> str:
    points = round(100 * share, 1)
    return f"{points:+.1f}" if points else "0.0"


def _rule(one: Score, recommended: str) -> dict[str, Any]:
    return {
        "name": one.rule,
        "accuracy": one.accuracy,
        "balanced": one.balanced_accuracy,
        "note": score_note(one),
        "recommended": one.rule == recommended,
        "oracle": one.oracle,
    }


def _floor(shares: Sequence[float]) -> float:
    """Return where an axis up to 1 begins: a tenth below the smallest share, 0.9 at most."""
    return min(0.9, math.floor(10 * min(shares)) / 10)


def _most_changed(recalls: Sequence[ClassRecall]) -> list[ClassRecall]:
    most = sorted(recalls, key=lambda one: -abs(one.change))[:MOST_CHANGED]
    return sorted(most, key=lambda one: -one.change)


def _told(abouts: Sequence[dict[str, Any]], numbers: Sequence[int]) -> dict[str, str]:
    """Return what the recorders were told: once where all were told the same."""
    flat = [dict(_flatten(about)) for about in abouts]
    told = {}
    for key in dict.fromkeys(key for about in flat for key in about):
        values = [about.get(key, "not told") for about in flat]
        one = len(set(values)) == 1
        each = (f"network {number}: {value}" for number, value in zip(numbers, values, strict=True))
        told[key] = _shorten(values[0] if one else "; ".join(each))
    return told


def _flatten(about: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in about.items():
        if isinstance(value, dict) and value:
            yield from _flatten(value, f"{above}{key}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{above}{key}", text


def _shorten(text: str) -> str:
    return text if len(text) <= MOST_TOLD else f"{text[:MOST_TOLD]} … ({len(text):,} characters)"
