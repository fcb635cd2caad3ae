"""Panels that the report and the paper's figures share, each drawn from plain numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accord.report.canvas import Axes, MaxNLocator
from accord.report.drawing import (
    End,
    doubling_axis,
    draw_line,
    draw_stairs,
    label_ends,
    percent_axis,
    room_around,
    share_axis,
    shares_of,
)
from accord.report.looks import LINES, ink
from accord.report.measured import FIRST, SECOND

MOST_BARS: Final = 12  # that bear their value
NOTE: Final = 0.1  # of the axes' height, that a note at their bottom takes


class Spread(NamedTuple):
    """Mean and standard deviation at each size."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]


def draw_by_networks(axes: Axes, sizes: Sequence[int], spreads: Mapping[str, Spread]) -> None:
    """Draw accuracy by ensemble size: for each rule a mean, and a band around it."""
    sides = {
        rule: (mean - deviation, mean + deviation) for rule, (mean, deviation) in spreads.items()
    }
    for rule, (low, high) in sides.items():
        band = axes.fill_between(sizes, low, high, color=ink(rule), alpha=0.16, linewidth=0)
        band.set_gid(f"rule:{rule}")
        draw_line(axes, rule, sizes, spreads[rule].mean, marker="o", markersize=4.5)
    percent_axis(axes, *(side for both in sides.values() for side in both))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlim(max(0.5, room_around(sizes)[0]), room_around(sizes, after=0.015)[1])
    axes.set_xlabel("networks")
    axes.set_title("accuracy")
    label_ends(axes, [End(rule, float(one.mean[-1])) for rule, one in spreads.items()])


def draw_by_epochs(
    axes: Axes, sizes: Sequence[int], accuracy: NDArray[np.float64], voted: float
) -> None:
    """Draw max agreement by number of equally spaced epochs, against the last majority vote."""
    axes.set_xscale("log", base=2)
    draw_line(axes, SECOND, sizes, accuracy, marker="o", markersize=4.5)
    axes.axhline(voted, color=ink(FIRST), gid=f"rule:{FIRST}", **LINES[FIRST])
    percent_axis(axes, accuracy[len(sizes) > 1 :], np.array([voted]))
    doubling_axis(axes, sizes)
    axes.set_xlim(*room_around(sizes, before=0.1, after=0.015, log=True))
    _name_hidden(axes, sizes, accuracy, clear_of=voted)
    axes.set_xlabel("equally spaced epochs")
    axes.set_title("accuracy")
    label_ends(axes, [End(SECOND, float(accuracy[-1])), End(FIRST, voted)])


def _name_hidden(
    axes: Axes, x: Sequence[float], y: NDArray[np.float64], *, clear_of: float
) -> None:
    """Tell of points below the axes: at the bottom, or above a line that lies there."""
    bottom, top = axes.get_ylim()
    line = (clear_of - bottom) / (top - bottom)
    height = line + 0.02 if 0 <= line < NOTE else 0.02
    for place, value in zip(x, y, strict=True):
        if value < bottom:
            axes.text(
                *(place, height, f"↓ {100 * value:.1f}"),
                color=ink(SECOND),
                transform=axes.get_xaxis_transform(),
                ha="center",
            )


def draw_final_margins(
    axes: Axes, edges: NDArray[np.float64], right: NDArray[Any], wrong: NDArray[Any]
) -> None:
    """Draw final margins, samples with a right last vote upwards, with a wrong one downwards."""
    sides = (("right", right, 1), ("wrong", wrong, -1))
    for side, counts, sign in sides:
        draw_stairs(axes, side, sign * shares_of(counts), edges)
    axes.axhline(0, color=ink("quiet"), linewidth=0.8)
    axes.axvline(0, color=ink("quiet"), linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_xlim(-1, 1)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["-1", "-0.5", "0", "0.5", "1"])
    axes.use_sticky_edges = False
    axes.margins(y=0.16)  # room for a note above and below, clear of the bars
    share_axis(axes)
    axes.set_xlabel("final margin")
    axes.set_title("share of the samples whose last vote is right, or wrong")
    for side, counts, sign in sides:
        samples = "sample" if counts.sum() == 1 else "samples"
        text, height = f"{side}: {counts.sum():,} {samples}", 0.5 + 0.45 * sign
        axes.text(0.02, height, text, color=ink(side), transform=axes.transAxes, va="center")


def draw_error_consensus(axes: Axes, counts: NDArray[Any]) -> None:
    """Draw the share of wrong predictions that so many networks make together."""
    sizes, shares = np.arange(1, len(counts) + 1), shares_of(counts)
    bars = axes.bar(sizes, shares, width=0.68, color=ink("wrong"), linewidth=0)
    if len(sizes) <= MOST_BARS:
        axes.bar_label(bars, [f"{100 * share:.0f} %" for share in shares], padding=3)
    axes.xaxis.set_major_locator(MaxNLocator(MOST_BARS, integer=True))
    axes.set_xlim(0.4, len(counts) + 0.6)
    axes.set_ylim(0, 1.12 * shares.max() or 1)
    share_axis(axes)
    axes.set_xlabel("networks that give the same wrong class")
    axes.set_title("share of the wrong predictions")
