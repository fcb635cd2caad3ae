"""Figure 1 of the paper, of a real sample: what each network, their vote and max agreement say."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np

from accord.report.canvas import Axes, Figure
from accord.report.drawing import MARGINS, Size, add_box, new_figure, progress_axis
from accord.report.looks import ink

WIDTH: Final = 560
ROW: Final = 24.0  # points from one strip to the next
GAP: Final = 12.0  # between the networks' strips and the votes'
STRIP: Final = 0.74  # of a row
LEFT, RIGHT, TOP = 100.0, 118.0, 68.0  # around the strips: names, last classes, a heading
EDGE: Final = 12.0  # left of all else
PICTURE: Final = 72.0  # its side: as high as three strips
MOST_LETTERS: Final = 12  # of a class's name
MOST_IN_HEAD: Final = 76  # letters, of the setting's name
OTHERS: Final = ("soft-agreement", "probability-average")  # inks of classes that come up most
REST: Final = "grid"  # the ink of all others


class Strip(NamedTuple):
    """One line of the figure: who speaks, and the class at each epoch."""

    name: str
    classes: Sequence[int]
    middle: float  # in points, from the top


def illustration_figure(panel: dict[str, Any]) -> Figure:
    """Draw a sample's strips of classes over the epochs, and name the classes that they show."""
    strips = _strips(panel)
    inks = _inks(panel)
    left = LEFT + (PICTURE + EDGE if panel["picture"] else 0)
    height = strips[-1].middle + ROW / 2
    size = round(WIDTH + left - LEFT), round(height + TOP + MARGINS["bottom"])
    figure = new_figure(size)
    axes = add_box(figure, size, (left, MARGINS["bottom"], size[0] - left - RIGHT, height))
    _draw_strips(axes, strips, panel, inks)
    axes.set_ylim(height, 0)
    _name_classes(axes, _legend(panel, inks), EDGE - left)
    _head(figure, size, panel)
    if panel["picture"]:
        box = EDGE, MARGINS["bottom"] + height - PICTURE, PICTURE, PICTURE
        _show_picture(add_box(figure, size, box), panel["picture"])
    return figure


def _head(figure: Figure, size: Size, panel: dict[str, Any]) -> None:
    name = textwrap.shorten(panel["name"], MOST_IN_HEAD, placeholder=" …")
    figure.text(EDGE / size[0], 1 - 10 / size[1], name, fontweight="bold", va="top")
    chosen = (
        f"sample {panel['sample']}, true class {_class_name(panel, panel['truth'])}: "
        f"the middle one of {panel['rescued']:,} that max agreement rescues"
    )
    figure.text(EDGE / size[0], 1 - 26 / size[1], chosen, color=ink("quiet"), va="top")


def _strips(panel: dict[str, Any]) -> list[Strip]:
    networks = [f"network {number}" for number in panel["numbers"]]
    votes = ["majority", "max-agreement"]
    classes = [*panel["predicted"], panel["majority"], panel["max_agreement"]]
    gaps = [0.0] * len(networks) + [GAP] * len(votes)
    rows = enumerate(zip([*networks, *votes], classes, gaps, strict=True))
    return [Strip(name, said, gap + (row + 0.5) * ROW) for row, (name, said, gap) in rows]


def _inks(panel: dict[str, Any]) -> dict[int, str]:
    votes = Counter(label for said in panel["predicted"] for label in said)
    wrong = panel["majority"][-1]
    others = sorted(set(votes) - {panel["truth"], wrong}, key=lambda label: (-votes[label], label))
    named = dict(zip(others, OTHERS, strict=False))
    return dict.fromkeys(others, REST) | named | {panel["truth"]: "right", wrong: "wrong"}


def _draw_strips(
    axes: Axes, strips: Sequence[Strip], panel: dict[str, Any], inks: dict[int, str]
) -> None:
    progress = panel["progress"]
    edges = [2 * progress[0] - progress[1], *progress]  # an epoch's box ends where it is recorded
    for strip in strips:
        for label, spans in _spans(strip.classes, edges).items():
            low = strip.middle - STRIP * ROW / 2
            axes.broken_barh(spans, (low, STRIP * ROW), color=ink(inks[label]), linewidth=0)
        _name_end(axes, strip, panel, inks)
    axes.set_yticks([strip.middle for strip in strips], [strip.name for strip in strips])
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    progress_axis(axes, progress)
    axes.set_xlim(edges[0], edges[-1])


def _spans(classes: Sequence[int], edges: Sequence[float]) -> dict[int, list[tuple[float, float]]]:
    """Return (start, width) of each stretch of equal classes, by class."""
    spans: dict[int, list[tuple[float, float]]] = {}
    for label, stretch in groupby(range(len(classes)), key=lambda epoch: classes[epoch]):
        epochs = list(stretch)
        start, stop = edges[epochs[0]], edges[epochs[-1] + 1]
        spans.setdefault(label, []).append((start, stop - start))
    return spans


def _name_end(axes: Axes, strip: Strip, panel: dict[str, Any], inks: dict[int, str]) -> None:
    label = strip.classes[-1]
    mark = "✓" if label == panel["truth"] else "✗"
    axes.annotate(
        f"{mark} {_class_name(panel, label)}",
        (1, strip.middle),
        (8, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        va="center",
        color=ink("quiet" if inks[label] == REST else inks[label]),
        fontweight="bold" if strip.name == "max-agreement" else "normal",
    )


def _name_classes(axes: Axes, legend: Sequence[tuple[str, str]], beside: float) -> None:
    """Write names of classes above the strips, each beside its colour, from `beside` on."""
    looks: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    for name, shade in legend:
        axes.annotate("■", (0, 1), (beside, 9), color=ink(shade), fontsize=11, **looks)
        colour = ink("quiet" if shade == REST else shade)
        written = axes.annotate(name, (0, 1), (beside + 13, 10), color=colour, **looks)
        beside += 13 + written.get_window_extent().width + 14


def _legend(panel: dict[str, Any], inks: dict[int, str]) -> list[tuple[str, str]]:
    order = ["right", "wrong", *OTHERS]
    named = [(name, label) for label, name in inks.items() if name != REST]
    ranked = sorted(named, key=lambda one: order.index(one[0]))
    rest = [("other classes", REST)] if REST in inks.values() else []
    return [(_class_name(panel, label), name) for name, label in ranked] + rest


def _class_name(panel: dict[str, Any], label: int) -> str:
    name = str(panel["class_names"][str(label)])
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1].rstrip()}…"


def _show_picture(axes: Axes, picture: Sequence[Any]) -> None:
    axes.imshow(np.array(picture, np.uint8), interpolation="nearest")
    axes.set_anchor("N")
    axes.set_axis_off()
