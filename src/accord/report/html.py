"""HTML report on a record.

`render` fills the template with a `Summary`: figures from `_figures`, captions and findings from
`_sentences`. Nothing here reads a record. The same summary gives the same page.
"""

import json
import math
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

from accord._files import write_file
from accord._version import __version__
from accord.analysis import TRAINED_ON, Changes, Overview, Score, Scored, Scores, Summary
from accord.errors import missing_extra
from accord.report._command_text import (
    AGAINST_GIVEN,
    ESTIMATED,
    estimate_text,
    gained_points,
    headline,
    measured_name,
    score_note,
    signed,
)
from accord.report._drawing import svg_of, with_variables
from accord.report._figures import record_figure
from accord.report._sentences import (
    CAPTIONS,
    forgotten_finding,
    is_given,
    label_finding,
    networks_finding,
    overfit_finding,
    title_of,
    trust_finding,
)
from accord.report._theme import INKS
from accord.report._trust_text import samples_to_verify

try:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup
except ImportError as error:
    raise missing_extra("writing a report", "jinja2", extra="report", cause=error) from error

# Each figure, and the fewest networks and epochs for which it is meaningful.
WITH_LABELS: Final = {"accuracy": (1, 2), "networks": (2, 1), "epochs": (1, 2)}
WITH_TRUTH: Final = {
    **WITH_LABELS,
    "final-margin": (1, 2),
    "error-consensus": (2, 1),
    "persistence": (1, 2),
}
WITHOUT_TRUTH: Final = {"margin": (1, 1)}
OVERFIT: Final = {"agreement": (2, 2)}
TRUST: Final = {"reliability": (1, 1), "risk-coverage": (1, 1)}
FORGOTTEN: Final = {"forgotten": (1, 2)}
MOST_CLASSES: Final = 30  # of more, only those that change most are listed
MOST_CHANGED: Final = 10
MOST_SHOWN: Final = 300  # characters of one value of the metadata


def write_report(summary: Summary, out: Path) -> None:
    """Write the HTML report of a summary to a file atomically.

    Raises:
        ExtraMissing: jinja2 or matplotlib is not installed.
        StorageError: the page cannot be written.
    """
    page = render(summary).encode(errors="replace")  # a path need not be UTF-8
    write_file(out, page)


def render(summary: Summary) -> str:
    """Render the HTML report of a summary."""
    template = resources.files("accord.report").joinpath("page.html.jinja").read_text("utf-8")
    # Paths and class names come from users: everything is escaped except our own figures.
    page = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(template)
    overview, scored, samples = summary.overview, summary.scored, summary.overview.samples
    forgotten = forgotten_finding(summary)
    return page.render(
        path=overview.path,
        overview=_overview(overview),
        metadata=_metadata(summary.metadata, overview.numbers),
        figures=_figures(summary, _wanted(summary)),
        results=None if scored is None else _results(summary, scored),
        overfit=overfit_finding(summary),
        watched=_figures(summary, OVERFIT),
        labels=label_finding(summary),
        trust=trust_finding(summary),
        trusted=_figures(summary, {} if summary.judged is None else TRUST),
        networks=networks_finding(summary),
        forgotten=forgotten,
        forgot=_figures(summary, FORGOTTEN if forgotten and forgotten["forgotten"] else {}),
        moved=f"{summary.moved:,} of {samples:,} {'sample' if samples == 1 else 'samples'}",
        verify=samples_to_verify(samples),
        notes=list(_notes(summary)),
        trained_on=overview.trained_on,
        measured=measured_name(overview),
        inks=INKS,
        points=signed,
        version=__version__,
    )


def _overview(overview: Overview) -> dict[str, str]:
    sizes = ("networks", "epochs", "samples", "classes")
    optional = ("truth", "given", "ids", "class_names")
    info = overview.sample_info
    has = [name.replace("_", " ") for name in optional if getattr(info, name) is not None]
    has += ["probabilities"] if overview.has_probabilities else []
    return {
        **{name: f"{getattr(overview, name):,}" for name in sizes},
        "split": info.split,
        "also recorded": ", ".join(has) or "nothing",
    }


def _wanted(summary: Summary) -> dict[str, tuple[int, int]]:
    if summary.scored is None:
        return WITHOUT_TRUTH
    return WITH_TRUTH if summary.judged is not None else {**WITH_LABELS, **WITHOUT_TRUTH}


def _notes(summary: Summary) -> Iterator[str]:
    notes = summary.notes
    if summary.scored is not None:
        notes = summary.scored.found.notes
    elif summary.overview.trained_on:
        notes = TRAINED_ON, *notes
    for note in notes:
        yield f"{note[0].upper()}{note[1:]}."


def _figures(summary: Summary, wanted: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    overview = summary.overview
    return [
        {
            "name": name,
            "title": title_of(name, summary),
            "svg": Markup(with_variables(svg_of(record_figure(name, summary)))),  # noqa: S704
            "caption": CAPTIONS[name](summary),
        }
        for name, (networks, epochs) in wanted.items()
        if overview.networks >= networks and overview.epochs >= epochs
    ]


def _results(summary: Summary, scored: Scored) -> dict[str, Any]:
    recalls = shown = scored.recalls
    if len(recalls) > MOST_CLASSES:
        most = sorted(recalls, key=lambda one: -abs(one.change))[:MOST_CHANGED]
        shown = sorted(most, key=lambda one: -one.change)
    overview, found = summary.overview, scored.found
    estimated = any(one.corrected for one in found.scores)
    return {
        "sentence": headline(overview, found),
        "against": AGAINST_GIVEN if is_given(summary) else "",
        "estimated": ESTIMATED if estimated else "",
        "gain": None if found.gain is None else _gain(found, found.gain),
        "rules": [_rule(overview, one, found.recommended) for one in found.scores],
        "rules_from": _floor([one.accuracy for one in found.scores]),
        "recalls": shown,
        "recalls_from": _floor(
            [value for one in shown for value in (one.majority, one.max_agreement)]
        ),
        "classes": len(recalls),
        "absent": summary.overview.classes - len(recalls),
    }


def _gain(found: Scores, gain: Changes) -> dict[str, Any]:
    return {
        "rule": found.recommended,
        "turned_right": f"{gain.turned_right:,}",
        "turned_wrong": f"{gain.turned_wrong:,}",
        "samples": f"{gain.samples:,}",
        "difference": f"{gained_points(found):+.1f}",
        "significant": gain.significant,
        "interval": f"{signed(gain.low)} to {signed(gain.high)}",
        "confidence": f"{100 * gain.confidence:g} %",
        "p_value": "less than 0.001" if gain.p_value < 0.001 else f"{gain.p_value:.2g}",
    }


def _rule(overview: Overview, one: Score, recommended: str | None) -> dict[str, Any]:
    return {
        "name": one.rule,
        "accuracy": one.accuracy,
        "corrected": estimate_text(one),
        "balanced": one.balanced_accuracy,
        "note": score_note(overview, one),
        "recommended": one.rule == recommended,
        "oracle": one.oracle,
    }


def _floor(shares: Sequence[float]) -> float:
    """Compute the start of an axis that ends at 1."""
    return min(0.9, math.floor(10 * min(shares)) / 10)


def _metadata(networks: Sequence[dict[str, Any]], numbers: Sequence[int]) -> dict[str, str]:
    flat = [dict(_flatten(one)) for one in networks]
    shown = {}
    for key in dict.fromkeys(key for one in flat for key in one):
        values = [one.get(key, "not recorded") for one in flat]
        each = (f"network {number}: {value}" for number, value in zip(numbers, values, strict=True))
        shown[key] = _shorten(values[0] if len(set(values)) == 1 else "; ".join(each))
    return shown


def _flatten(metadata: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in metadata.items():
        if isinstance(value, dict) and value:
            yield from _flatten(value, f"{above}{key}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{above}{key}", text


def _shorten(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} … ({len(text):,} characters)"
