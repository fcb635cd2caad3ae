"""Figures of a record."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis import (
    MAJORITY,
    MAX_AGREEMENT,
    PROBABILITY_AVERAGE,
    Calibration,
    RiskCoverage,
    Summary,
)
from accord.errors import ChoiceError
from accord.report._command_text import after_epochs, measured_name
from accord.report._drawing import (
    LABEL_GAP,
    NARROW,
    WIDE,
    Drawing,
    End,
    Spread,
    add_panel,
    doubling_axis,
    draw_by_epochs,
    draw_by_networks,
    draw_error_consensus,
    draw_final_margins,
    draw_line,
    draw_stairs,
    label_ends,
    new_axes,
    new_figure,
    percent_axis,
    progress_axis,
    room_around,
    settled,
    share_axis,
    shares_of,
    spread,
)
from accord.report._mpl import Axes, Figure, FuncFormatter
from accord.report._sentences import FEW, RISKS, coverage_at, title_of
from accord.report._theme import LINES, ink

MOST_POINTS: Final = 150  # maximum number of points of a curve
ROOM: Final = 0.75  # of the samples, up to which a label fits to the right of a diamond
SMALLEST, LARGEST = 2.0, 8.0  # sizes of a bin with few samples, and of the fullest one
DIAMOND: Final[dict[str, Any]] = {"markerfacecolor": ink("paper"), "markersize": 6, "zorder": 6}
SCORES: Final = {MAX_AGREEMENT: "share of votes", PROBABILITY_AVERAGE: "mean probability"}


def reliability_figure(summary: Summary) -> Figure:
    judged = summary.require_judged()
    figure, axes = new_axes(NARROW, right=131)
    axes.plot([0, 1], [0, 1], color=ink("quiet"), linewidth=0.9, linestyle=(0, (1, 2)))
    for rule, found in judged.reliability.items():
        full = found.counts > 0
        x, y = found.confidence[full], found.accuracy[full]
        draw_line(axes, rule, x, y, marker="")
        sizes = SMALLEST + (LARGEST - SMALLEST) * np.sqrt(found.counts[full] / found.counts.max())
        dots = axes.scatter(x, y, sizes**2, color=ink(rule), linewidths=0, zorder=6, clip_on=False)
        dots.set_gid(f"rule:{rule}")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.004)
    share_axis(axes)
    _percent_below(axes)
    axes.set_xlabel("score of the label")
    axes.set_title("share of the labels that are right")
    _label_errors(axes, judged.reliability)
    return figure


def risk_coverage_figure(summary: Summary) -> Figure:
    judged = summary.require_judged()
    figure, axes = new_axes(NARROW, right=131)
    for rule, curve in judged.risks.items():
        draw_line(axes, rule, *_thinned(curve))
    shown = [curve.risk[curve.coverage >= FEW] for curve in judged.risks.values()]
    percent_axis(axes, np.zeros(1), *shown)
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, 1)
    _percent_below(axes)
    for risk in RISKS:
        _mark_risk(axes, risk, coverage_at(judged.risks[MAX_AGREEMENT], risk))
    axes.set_xlabel("share of the samples that are answered")
    axes.set_title("share of the answers that are wrong")
    label_ends(axes, [End(rule, float(one.risk[-1])) for rule, one in judged.risks.items()])
    return figure


def forgotten_figure(summary: Summary) -> Figure:
    """Draw the share of forgotten samples predicted right at each epoch."""
    judged = summary.require_judged()
    figure, axes = new_axes(WIDE, right=148)
    found, progress = judged.forgetting, summary.overview.progress
    gone = max(1, len(found.forgotten))
    knew, kept = found.knew / gone, judged.remembered / gone
    draw_line(axes, MAJORITY, progress, knew)
    axes.axhline(
        kept, color=ink(MAX_AGREEMENT), gid=f"rule:{MAX_AGREEMENT}", **LINES[MAX_AGREEMENT]
    )
    percent_axis(axes, knew, np.array([0.0, kept]))
    progress_axis(axes, progress)
    label_ends(axes, [End(MAJORITY, float(knew[-1])), End(MAX_AGREEMENT, kept)])
    axes.set_title("share of the forgotten samples that are right")
    return figure


def _label_errors(axes: Axes, found: dict[str, Calibration]) -> None:
    box = axes.get_window_extent()
    ends = [float(one.accuracy[one.counts > 0][-1]) for one in found.values()]
    room = LABEL_GAP / box.height
    places = spread(ends, gap=2.4 * room, low=room, high=1 - room)
    for (rule, one), place in zip(found.items(), places, strict=True):
        text = axes.text(
            *(1 + 14 / box.width, place, f"{SCORES[rule]}\nECE {100 * one.error:.1f} points"),
            color=ink(rule),
            transform=axes.transAxes,
            va="center",
            linespacing=1.35,
        )
        text.set_gid(f"rule:{rule}")


def _thinned(curve: RiskCoverage) -> tuple[NDArray[Any], NDArray[Any]]:
    """Select points of a risk-coverage curve for drawing."""
    first, last = int(np.searchsorted(curve.coverage, FEW)), len(curve.coverage) - 1
    size = min(MOST_POINTS, last - first + 1)
    places = np.linspace(first, last, size).round().astype(int)
    return curve.coverage[places], curve.risk[places]


def _mark_risk(axes: Axes, risk: float, coverage: float | None) -> None:
    if coverage is None or coverage == 1:
        return
    colour = ink(MAX_AGREEMENT)
    axes.plot([0, coverage], [risk, risk], color=colour, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.plot([coverage], [risk], "D", color=colour, **DIAMOND)
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


def _percent_below(axes: Axes) -> None:
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g} %"))


BANNER: Final = (560, 270)  # width and height, in points


def accuracy_figure(
    summary: Summary, rules: Sequence[str] | None = None, size: tuple[int, int] = WIDE
) -> Figure:
    scored = summary.require_scored()
    figure, axes = new_axes(size, right=148)
    curves = {rule: scored.curves[rule] for rule in rules or scored.curves}
    progress = summary.overview.progress
    for rule, curve in curves.items():
        draw_line(axes, rule, progress, curve.accuracy)
    best = scored.best_epoch
    height = float(curves[MAJORITY].accuracy[best])
    _mark_best(axes, progress[best], height, progress[-1])
    ends = [End(rule, float(curve.accuracy[-1])) for rule, curve in curves.items()]
    percent_axis(axes, *(settled(curve.accuracy) for curve in curves.values()))
    progress_axis(axes, progress)
    label_ends(axes, [*ends, End("oracle-best-epoch", height, "best epoch (oracle)")])
    axes.set_title(measured_name(summary.overview))
    return figure


def _mark_best(axes: Axes, x: float, y: float, end: float) -> None:
    rule = "oracle-best-epoch"
    looks: dict[str, Any] = {"color": ink(rule), "gid": f"rule:{rule}", "clip_on": False}
    axes.plot([x, end], [y, y], linewidth=0.8, linestyle=(0, (1, 2)), zorder=3, **looks)
    axes.plot([x], [y], "D", **DIAMOND, **looks)


def networks_figure(summary: Summary) -> Figure:
    figure, axes = new_axes(NARROW, right=131)
    sweeps = summary.require_scored().by_networks
    spreads = {rule: Spread(sweep.mean, sweep.spread) for rule, sweep in sweeps.items()}
    draw_by_networks(axes, sweeps[MAJORITY].sizes, spreads)
    axes.set_title(measured_name(summary.overview))
    return figure


def epochs_figure(summary: Summary) -> Figure:
    scored = summary.require_scored()
    figure, axes = new_axes(NARROW, right=131)
    voted = float(scored.curves[MAJORITY].accuracy[-1])
    draw_by_epochs(axes, scored.by_epochs.sizes, scored.by_epochs.mean, voted)
    axes.set_title(measured_name(summary.overview))
    return figure


def final_margin_figure(summary: Summary) -> Figure:
    figure, axes = new_axes(NARROW)
    histogram = summary.require_judged().final_margins
    draw_final_margins(axes, histogram.edges, histogram.right, histogram.wrong)
    return figure


def margin_figure(summary: Summary) -> Figure:
    figure, axes = new_axes(NARROW)
    counts = summary.margins
    draw_stairs(axes, MAX_AGREEMENT, shares_of(counts), np.linspace(0, 1, len(counts) + 1))
    axes.set_xlim(0, 1)
    share_axis(axes)
    axes.set_xlabel("margin")
    axes.set_title("share of the samples")
    return figure


def error_consensus_figure(summary: Summary) -> Figure:
    figure, axes = new_axes(NARROW)
    draw_error_consensus(axes, summary.require_judged().error_consensus)
    return figure


def persistence_figure(summary: Summary) -> Figure:
    figure = new_figure(NARROW)
    begun, lasting = (add_panel(figure, NARROW, left, 140) for left in (36, 222))
    found, progress = summary.require_judged().persistence, summary.overview.progress
    lengths = np.arange(1, len(progress) + 1)
    predictions = summary.overview.networks * summary.overview.samples
    later = slice(1, None)  # at the first epoch, all begin a run
    for side, onsets, runs in (
        ("right", found.right_onsets, found.right_lengths),
        ("wrong", found.wrong_onsets, found.wrong_lengths),
    ):
        draw_line(begun, side, progress[later], onsets[later] / predictions)
        draw_line(lasting, side, lengths, np.cumsum(shares_of(runs)[::-1])[::-1])
    for axes, title in ((begun, "new runs"), (lasting, "runs that last")):
        axes.set_ylim(bottom=0)
        share_axis(axes)
        axes.set_title(title)
    progress_axis(begun, progress)
    begun.legend(
        frameon=False,
        labelcolor="linecolor",
        ncols=2,
        loc="lower right",
        bbox_to_anchor=(1.16, 0.98),
        handlelength=1.9,
        handletextpad=0.4,
        columnspacing=0.9,
    )
    lasting.set_xscale("log", base=2)
    doubling_axis(lasting, [2**power for power in range(len(progress).bit_length())], most=6)
    lasting.set_xlim(*room_around(lengths, log=True))
    lasting.set_xlabel("epochs or more")
    return figure


def agreement_figure(summary: Summary) -> Figure:
    figure, axes = new_axes(WIDE)
    progress, found = summary.overview.progress, summary.watch
    assert found is not None
    values = found.agreement
    draw_line(axes, "agreement", progress, values)
    percent_axis(axes, settled(values), values[found.best_epoch :])
    progress_axis(axes, progress)
    if found.verdict:
        best = found.best_epoch
        name = "last good epoch" if found.alarm else "best epoch"
        text = f"{name}: {after_epochs(summary.overview, best)}"
        _mark_epoch(axes, progress[best], values[best], text, alarm=found.alarm)
    axes.set_title("share of predictions that two networks share")
    return figure


def _mark_epoch(axes: Axes, x: float, y: float, text: str, *, alarm: bool) -> None:
    colour = ink("wrong" if alarm else "quiet")
    low, high = axes.get_xlim()
    if alarm:
        axes.axvspan(x, high, color=colour, alpha=0.08, linewidth=0)
    axes.axvline(x, color=colour, linewidth=1, linestyle=(0, (3, 2)))
    axes.plot([x], [y], "D", color=colour, clip_on=False, **DIAMOND)
    left = x < (low + high) / 2
    axes.annotate(
        text,
        (x, 0),
        xycoords=axes.get_xaxis_transform(),
        xytext=(6 if left else -6, 10),
        textcoords="offset points",
        ha="left" if left else "right",
        color=colour,
    )


FIGURES: Final[dict[str, Callable[[Summary], Figure]]] = {
    "accuracy": accuracy_figure,
    # Three rules in the format of a banner, as in the README.
    "overfit": partial(accuracy_figure, rules=("single", MAJORITY, MAX_AGREEMENT), size=BANNER),
    "networks": networks_figure,
    "epochs": epochs_figure,
    "final-margin": final_margin_figure,
    "margin": margin_figure,
    "error-consensus": error_consensus_figure,
    "persistence": persistence_figure,
    "agreement": agreement_figure,
    "reliability": reliability_figure,
    "risk-coverage": risk_coverage_figure,
    "forgotten": forgotten_figure,
}


def record_figure(name: str, summary: Summary) -> Drawing:
    """Create a figure of a record by name.

    Raises:
        ChoiceError: no figure has that name.
        TruthMissing: the figure requires true labels.
    """
    if name not in FIGURES:
        raise ChoiceError(f"no figure is called {name!r}. Figures: {', '.join(FIGURES)}")
    return Drawing(name, title_of(name, summary), partial(FIGURES[name], summary))
