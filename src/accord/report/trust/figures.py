"""Figures of trust: reliability, risk by coverage, and what each epoch knew of the forgotten."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis import Calibration, RiskCoverage
from accord.report.canvas import Axes, Figure, FuncFormatter
from accord.report.drawing import (
    LABEL_GAP,
    NARROW,
    WIDE,
    End,
    draw_line,
    label_ends,
    new_axes,
    percent_axis,
    progress_axis,
    share_axis,
)
from accord.report.looks import LINES, ink
from accord.report.measured import AVERAGE, FIRST, SECOND, Measured
from accord.report.spacing import spread

RISKS: Final = (0.05, 0.01)  # whose coverage is marked
MOST_POINTS: Final = 150  # of a curve; more would not be seen
FEW: Final = 0.05  # of the samples, among which a risk says little
ROOM: Final = 0.75  # of the samples, up to which a label fits to the right of a diamond
DOTS: Final = (2.0, 8.0)  # the sizes of a bin with few samples, and of the fullest one
SAID: Final = {SECOND: "share of votes", AVERAGE: "mean probability"}  # what scores are


def reliability_figure(measured: Measured) -> Figure:
    """Draw how often labels are right by their score; on the diagonal, it is the chance of it."""
    figure, axes = new_axes(NARROW, right=131)
    axes.plot([0, 1], [0, 1], color=ink("quiet"), linewidth=0.9, linestyle=(0, (1, 2)))
    for rule, found in measured.reliability.items():
        _draw_bins(axes, rule, found)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.004)
    share_axis(axes)
    _percent_below(axes)
    axes.set_xlabel("score of the label")
    axes.set_title("share of the labels that are right")
    _label_errors(axes, measured.reliability)
    return figure


def risk_coverage_figure(measured: Measured) -> Figure:
    """Draw the share of wrong labels among the samples that are answered, the surest first."""
    figure, axes = new_axes(NARROW, right=131)
    for rule, curve in measured.risks.items():
        draw_line(axes, rule, *_thinned(curve))
    shown = [curve.risk[curve.coverage >= FEW] for curve in measured.risks.values()]
    percent_axis(axes, np.zeros(1), *shown)
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, 1)
    _percent_below(axes)
    for risk in RISKS:
        _mark_risk(axes, risk, coverage_at(measured.risks[SECOND], risk))
    axes.set_xlabel("share of the samples that are answered")
    axes.set_title("share of the answers that are wrong")
    label_ends(axes, [End(rule, float(one.risk[-1])) for rule, one in measured.risks.items()])
    return figure


def forgotten_figure(measured: Measured) -> Figure:
    """Draw how much of what the last vote forgot each epoch knew, and what max agreement knows."""
    figure, axes = new_axes(WIDE, right=148)
    found, progress = measured.forgetting, measured.progress
    gone = max(1, len(found.forgotten))
    knew, kept = found.knew / gone, measured.remembered / gone
    draw_line(axes, FIRST, progress, knew)
    axes.axhline(kept, color=ink(SECOND), gid=f"rule:{SECOND}", **LINES[SECOND])
    percent_axis(axes, knew, np.array([0.0, kept]))
    progress_axis(axes, progress)
    label_ends(axes, [End(FIRST, float(knew[-1])), End(SECOND, kept)])
    axes.set_title("share of the forgotten samples that are right")
    return figure


def coverage_at(curve: RiskCoverage, risk: float) -> float | None:
    """Return the largest coverage at which no more than a share `risk` is wrong; None: nowhere.

    Coverages of very few samples are left out: there, luck alone may keep any risk.

    >>> curve = RiskCoverage(np.array([0.9, 0.5]), np.array([0.6, 1.0]), np.array([0.01, 0.1]))
    >>> coverage_at(curve, 0.05), coverage_at(curve, 0.001)
    (0.6, None)
    """
    kept = np.flatnonzero((curve.risk <= risk) & (curve.coverage >= FEW))
    return float(curve.coverage[kept[-1]]) if kept.size else None


def _draw_bins(axes: Axes, rule: str, found: Calibration) -> None:
    full = found.counts > 0
    x, y = found.confidence[full], found.accuracy[full]
    draw_line(axes, rule, x, y, marker="")
    small, large = DOTS
    sizes = small + (large - small) * np.sqrt(found.counts[full] / found.counts.max())
    dots = axes.scatter(x, y, sizes**2, color=ink(rule), linewidths=0, zorder=6, clip_on=False)
    dots.set_gid(f"rule:{rule}")


def _label_errors(axes: Axes, found: dict[str, Calibration]) -> None:
    """Write each score's name and its calibration error beside the last bin."""
    box = axes.get_window_extent()
    ends = [float(one.accuracy[one.counts > 0][-1]) for one in found.values()]
    room = LABEL_GAP / box.height
    places = spread(ends, gap=2.4 * room, low=room, high=1 - room)
    for (rule, one), place in zip(found.items(), places, strict=True):
        text = axes.text(
            *(1 + 14 / box.width, place, f"{SAID[rule]}\nECE {100 * one.error:.1f} points"),
            color=ink(rule),
            transform=axes.transAxes,
            va="center",
            linespacing=1.35,
        )
        text.set_gid(f"rule:{rule}")


def _thinned(curve: RiskCoverage) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return some points of the curve, the last one among them, and none of very few samples."""
    first, last = int(np.searchsorted(curve.coverage, FEW)), len(curve.coverage) - 1
    size = min(MOST_POINTS, last - first + 1)
    places = np.linspace(first, last, size).round().astype(int)
    return curve.coverage[places], curve.risk[places]


def _mark_risk(axes: Axes, risk: float, coverage: float | None) -> None:
    if coverage is None or coverage == 1:
        return
    colour = ink(SECOND)
    axes.plot([0, coverage], [risk, risk], color=colour, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.plot(
        *([coverage], [risk], "D"),
        color=colour,
        markerfacecolor=ink("paper"),
        markersize=6,
        zorder=6,
    )
    # Below the curve, where nothing is; close to the right end, above its left side.
    right = coverage <= ROOM
    axes.annotate(
        f"{100 * risk:g} % wrong",
        (coverage, risk),
        xytext=(8, -6) if right else (-8, 8),
        textcoords="offset points",
        ha="left" if right else "right",
        va="center",
        color=colour,
        bbox={"facecolor": ink("paper"), "edgecolor": "none", "pad": 1.0},
        zorder=7,
    )


def _percent_below(axes: Axes, ticks: Sequence[float] = (0, 0.25, 0.5, 0.75, 1)) -> None:
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g} %"))
