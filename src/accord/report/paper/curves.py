"""Panels of lines that only the paper's figures have."""

from typing import Any, Final, NamedTuple

import numpy as np

from accord.report.canvas import Axes, MaxNLocator
from accord.report.drawing import (
    End,
    draw_line,
    label_ends,
    percent_axis,
    progress_axis,
    room_around,
    settled,
    share_axis,
)
from accord.report.looks import LINES, ink


class Look(NamedTuple):
    """How a curve is written and drawn."""

    name: str
    ink: str
    line: str  # whose style it takes


CLEAN: Final = "soft-agreement"  # the ink of what was trained on clean labels
LOOKS: Final = {
    "single": Look("single", "single", "single"),
    "majority": Look("majority", "majority", "majority"),
    "max-agreement": Look("max-agreement", "max-agreement", "max-agreement"),
    "clean-single": Look("single, clean subset", CLEAN, "single"),
    "clean-majority": Look("majority, clean subset", CLEAN, "majority"),
}


def draw_curves(axes: Axes, panel: dict[str, Any]) -> None:
    """Draw accuracy over the epochs, one line for each curve."""
    ends, shown = [], []
    for rule, curve in panel["curves"].items():
        look, accuracy = LOOKS[rule], np.array(curve["accuracy"])
        (line,) = axes.plot(curve["progress"], accuracy, color=ink(look.ink), **LINES[look.line])
        line.set_gid(f"rule:{rule}")
        ends.append(End(rule, float(accuracy[-1]), look.name, look.ink))
        shown.append(settled(accuracy))
    percent_axis(axes, *shown)
    progress_axis(axes, [one for curve in panel["curves"].values() for one in curve["progress"]])
    axes.set_title("accuracy")
    label_ends(axes, ends)


def draw_turned(axes: Axes, panel: dict[str, Any]) -> None:
    """Draw the share of votes that max agreement turns right, and that it turns wrong."""
    sizes = panel["samples_per_class"]
    sides = {"right": np.array(panel["turned_right"]), "wrong": np.array(panel["turned_wrong"])}
    for side, shares in sides.items():
        draw_line(axes, side, sizes, shares, marker="o", markersize=4.5, clip_on=False)
    highest = max(float(shares.max()) for shares in sides.values())
    axes.set_ylim(0, 1.1 * highest or 0.01)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    share_axis(axes)
    axes.set_xlim(*(room_around(sizes, after=0.015) if len(sizes) > 1 else (0, 2 * sizes[0])))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("training samples per class")
    axes.set_title("share of the votes that max agreement changes")
    label_ends(axes, [End(side, float(y[-1]), f"turned {side}") for side, y in sides.items()])
