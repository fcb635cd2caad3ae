"""Figures of the paper."""

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np

from accord.errors import ChoiceError
from accord.report._drawing import (
    MARGINS,
    Drawing,
    End,
    Size,
    Spread,
    add_box,
    draw_by_epochs,
    draw_by_networks,
    draw_error_consensus,
    draw_final_margins,
    draw_line,
    label_ends,
    new_figure,
    percent_axis,
    progress_axis,
    room_around,
    settled,
    share_axis,
)
from accord.report._mpl import Axes, Figure, MaxNLocator
from accord.report._theme import LINES, ink

Numbers = Mapping[str, Any]

LINE: Final = 14.0  # height of a line of text
LETTER: Final = 6.8  # width of a wide letter, in bold


class Cell(NamedTuple):
    """Size of a panel in points."""

    width: int
    height: int
    right: float  # for labels beside the axes
    most: int  # in a row


def draw_grid(
    panels: Sequence[Numbers], cell: Cell, draw: Callable[[Axes, Numbers], None]
) -> Figure:
    left, bottom = MARGINS["left"], MARGINS["bottom"]
    letters = int((cell.width - left) / LETTER)
    names = [textwrap.wrap(panel["name"], letters) for panel in panels]
    top = MARGINS["top"] + 4 + LINE * max(map(len, names))
    inner = cell.width - left - cell.right, cell.height - bottom - MARGINS["top"] - LINE - 4
    height = inner[1] + bottom + top
    columns = min(len(panels), cell.most)
    size = columns * cell.width, round(math.ceil(len(panels) / columns) * height)
    figure = new_figure(size)
    for place, (panel, name) in enumerate(zip(panels, names, strict=True)):
        row, column = divmod(place, columns)
        x, y = column * cell.width + left, size[1] - (row + 1) * height
        draw(add_box(figure, size, (x, y + bottom, *inner)), panel)
        at = x / size[0], (y + height - 8) / size[1]
        figure.text(*at, "\n".join(name), color=ink("text"), fontweight="bold", va="top")
    return figure


class Look(NamedTuple):
    """Label and style of a curve."""

    name: str
    ink: str
    line: str  # rule whose style it has


CLEAN: Final = "soft-agreement"  # ink of networks trained on clean labels
LOOKS: Final = {
    **{rule: Look(rule, rule, rule) for rule in ("single", "majority", "max-agreement")},
    "clean-single": Look("single, clean subset", CLEAN, "single"),
    "clean-majority": Look("majority, clean subset", CLEAN, "majority"),
}


def draw_curves(axes: Axes, panel: Numbers) -> None:
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


def draw_turned(axes: Axes, panel: Numbers) -> None:
    """Draw the shares of votes that max agreement corrects and breaks."""
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


WIDTH: Final = 560
ROW: Final = 24.0  # from one strip to the next
GAP: Final = 12.0  # between the strips of networks and of votes
STRIP: Final = 0.74  # of a row
LEFT, RIGHT, TOP = 100.0, 118.0, 68.0  # around the strips: names, last classes, a heading
EDGE: Final = 12.0  # at the left
PICTURE: Final = 72.0  # the height of three strips
MOST_LETTERS: Final = 12  # of a class name
MOST_IN_HEAD: Final = 76  # letters of the setting
OTHERS: Final = ("soft-agreement", "probability-average")  # inks of the most frequent other classes
REST: Final = "grid"  # ink of all others


class Strip(NamedTuple):
    """Strip with the class of a network or rule at each epoch."""

    name: str
    classes: Sequence[int]
    middle: float  # points from the top


def illustration_figure(panel: Numbers) -> Figure:
    """Draw the classes predicted for a sample over the epochs."""
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
        picture = add_box(figure, size, box)
        picture.imshow(np.array(panel["picture"], np.uint8), interpolation="nearest")
        picture.set_anchor("N")
        picture.set_axis_off()
    return figure


def _head(figure: Figure, size: Size, panel: Numbers) -> None:
    name = textwrap.shorten(panel["name"], MOST_IN_HEAD, placeholder=" …")
    figure.text(EDGE / size[0], 1 - 10 / size[1], name, fontweight="bold", va="top")
    chosen = (
        f"sample {panel['sample']}, true class {_class_name(panel, panel['truth'])}: "
        f"the middle one of {panel['rescued']:,} that max agreement rescues"
    )
    figure.text(EDGE / size[0], 1 - 26 / size[1], chosen, color=ink("quiet"), va="top")


def _strips(panel: Numbers) -> list[Strip]:
    networks = [f"network {number}" for number in panel["numbers"]]
    names = [*networks, "majority", "max-agreement"]
    classes = [*panel["predicted"], panel["majority"], panel["max_agreement"]]
    middles = [(row + 0.5) * ROW + GAP * (row >= len(networks)) for row in range(len(names))]
    return [Strip(*strip) for strip in zip(names, classes, middles, strict=True)]


def _inks(panel: Numbers) -> dict[int, str]:
    votes = Counter(label for labels in panel["predicted"] for label in labels)
    wrong = panel["majority"][-1]
    others = sorted(set(votes) - {panel["truth"], wrong}, key=lambda label: (-votes[label], label))
    named = dict(zip(others, OTHERS, strict=False))
    return dict.fromkeys(others, REST) | named | {panel["truth"]: "right", wrong: "wrong"}


def _draw_strips(axes: Axes, strips: Sequence[Strip], panel: Numbers, inks: dict[int, str]) -> None:
    progress = panel["progress"]
    edges = [2 * progress[0] - progress[1], *progress]  # the box of an epoch ends at its progress
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
    spans: dict[int, list[tuple[float, float]]] = {}
    for label, stretch in groupby(range(len(classes)), key=lambda epoch: classes[epoch]):
        epochs = list(stretch)
        start, stop = edges[epochs[0]], edges[epochs[-1] + 1]
        spans.setdefault(label, []).append((start, stop - start))
    return spans


def _name_end(axes: Axes, strip: Strip, panel: Numbers, inks: dict[int, str]) -> None:
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
    """Draw a legend of classes above the strips."""
    looks: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    for name, shade in legend:
        axes.annotate("■", (0, 1), (beside, 9), color=ink(shade), fontsize=11, **looks)
        colour = ink("quiet" if shade == REST else shade)
        written = axes.annotate(name, (0, 1), (beside + 13, 10), color=colour, **looks)
        beside += 13 + written.get_window_extent().width + 14


def _legend(panel: Numbers, inks: dict[int, str]) -> list[tuple[str, str]]:
    order = ["right", "wrong", *OTHERS]
    named = [(name, label) for label, name in inks.items() if name != REST]
    ranked = sorted(named, key=lambda one: order.index(one[0]))
    rest = [("other classes", REST)] if REST in inks.values() else []
    return [(_class_name(panel, label), name) for name, label in ranked] + rest


def _class_name(panel: Numbers, label: int) -> str:
    name = str(panel["class_names"][str(label)])
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1].rstrip()}…"


def paper_figure(numbers: Numbers) -> Drawing:
    """Create a figure of the paper from its numbers.

    Raises:
        ChoiceError: the paper has no such figure.
    """
    number = numbers["figure"]
    if number not in FIGURES:
        raise ChoiceError(f"no figure {number}. Figures: {', '.join(map(str, FIGURES))}")
    return Drawing(f"paper-{number}", numbers["title"], partial(FIGURES[number], numbers["panels"]))


def _of_panels(cell: Cell, draw: Callable[[Axes, Numbers], None]) -> "Draw":
    return lambda panels: draw_grid(panels, cell, draw)


def _error_consensus(axes: Axes, panel: Numbers) -> None:
    draw_error_consensus(axes, np.array(panel["wrong_predictions"]))


def _final_margins(axes: Axes, panel: Numbers) -> None:
    draw_final_margins(axes, *(np.array(panel[name]) for name in ("edges", "right", "wrong")))
    axes.set_title("share of the right, or wrong, last votes")  # a longer one does not fit


def _by_networks(axes: Axes, panel: Numbers) -> None:
    spreads = {
        rule: Spread(np.array(one["mean"]), np.array(one["deviation"]))
        for rule, one in panel["rules"].items()
    }
    draw_by_networks(axes, panel["sizes"], spreads)


def _by_epochs(axes: Axes, panel: Numbers) -> None:
    draw_by_epochs(axes, panel["sizes"], np.array(panel["max-agreement"]), panel["majority"])


Draw = Callable[[Sequence[Numbers]], Figure]

BARS: Final = Cell(width=286, height=236, right=12, most=3)
LABELLED: Final = Cell(width=374, height=244, right=131, most=2)
LONG_LABELS: Final = Cell(width=410, height=264, right=160, most=2)
FIGURES: Final[dict[int, Draw]] = {
    1: lambda panels: illustration_figure(*panels),
    2: _of_panels(BARS, _error_consensus),
    3: _of_panels(LONG_LABELS, draw_curves),
    4: _of_panels(BARS, _final_margins),
    5: _of_panels(LONG_LABELS, draw_curves),
    6: _of_panels(LABELLED, _by_networks),
    7: _of_panels(LABELLED, _by_epochs),
    8: _of_panels(LABELLED, draw_turned),
    10: _of_panels(LONG_LABELS, draw_curves),
}
