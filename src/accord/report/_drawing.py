"""Helpers for drawing and saving figures.

A `Drawing` is a figure that is drawn when it is needed: `svg_of` returns its text for a page,
`save_figure` writes it to a file.
"""

import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accord._files import write_file
from accord.analysis import MAJORITY, MAX_AGREEMENT
from accord.errors import ChoiceError
from accord.report._mpl import Axes, Figure, FuncFormatter, MaxNLocator, style
from accord.report._theme import INKS, LINES, STYLE, ink


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Move positions apart until all gaps are at least `gap`.

    >>> spread([5.0, 5.0, 40.0], gap=10, low=0, high=50)
    [0.0, 10.0, 40.0]
    """
    order = np.argsort(np.array(wanted), kind="stable")
    groups: list[list[float]] = []  # of positions minus their rank, which must not decrease
    for rank, index in enumerate(order):
        groups.append([wanted[index] - rank * gap])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    moved = [float(np.mean(group)) for group in groups for _ in group]
    ceiling = high - gap * (len(wanted) - 1)
    placed = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        placed[index] = float(max(low, min(moved[rank], ceiling)) + rank * gap)
    return placed


FACES: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', Arial, sans-serif"


def tidy(text: str, *, title: str) -> str:
    """Extract the SVG element and set its accessible name.

    The group `rule:majority` gets `data-rule="majority"` instead of an id, which must be unique.
    """
    text = text[text.index("<svg") :]
    text = re.sub(r' id="rule:([a-z-]+)"', r' data-rule="\1"', text)
    text = re.sub(r' id="[a-z0-9.]+_\d+"', "", text)  # nothing refers to them
    text = re.sub(r"'DejaVu Sans'[^;\"]*", FACES, text)
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", text)
    # A style sheet in one drawing would apply to the whole page.
    text = re.sub(r"<!--.*?-->|<defs>\s*<style.*?</defs>", "", text, flags=re.DOTALL)
    spoken = f'role="img" aria-label="{title}"'
    text = text.replace("<svg ", f'<svg {spoken} stroke-linejoin="round" ', 1)
    return re.sub(r"\s*\n\s*", "\n", text).strip()


def with_variables(svg: str) -> str:
    """Replace colours by CSS variables."""
    for name, colour in INKS.items():
        svg = svg.replace(colour.light, f"var(--ink-{name}, {colour.light})")
    return svg


Size = tuple[int, int]  # width and height, in points

WIDE: Final = (410, 270)
NARROW: Final = (374, 236)
POINTS: Final = 72  # in an inch; the unit of an SVG that matplotlib writes
DOTS: Final = 200  # of a PNG, in an inch
MARGINS: Final = {"left": 42.0, "right": 12.0, "bottom": 40.0, "top": 22.0}  # around axes
LABEL_GAP: Final = 13.0  # between the middles of two labels


class End(NamedTuple):
    """End of a line with its label."""

    rule: str  # `data-rule` of the label
    value: float
    name: str = ""  # the rule's own if empty
    ink: str = ""  # the rule's own if empty


@contextmanager
def styled(salt: str) -> Iterator[None]:
    """Context manager for drawing with the style of the report."""
    with style.context(["default", STYLE | {"svg.hashsalt": salt}]):
        yield


@dataclass(frozen=True)
class Drawing:
    """Lazily drawn figure."""

    name: str  # of the figure, for unique identifiers on a page
    title: str  # read out by screen readers
    draw: Callable[[], Figure]


def svg_of(drawing: Drawing) -> str:
    """Render a drawing as an SVG element with a transparent background.

    The same drawing gives the same text. Several fit into one page; parts of a rule have its name
    as `data-rule`.
    """
    with styled(drawing.name):
        figure = drawing.draw()
        figure.patch.set_visible(False)
        return _svg_text(figure, drawing.title)


def save_figure(drawing: Drawing, path: Path) -> None:
    """Save a drawing to an .svg or .png file atomically.

    Raises:
        ChoiceError: the path has another ending.
    """
    if path.suffix not in {".svg", ".png"}:
        raise ChoiceError(f"{path}: figures are written as .svg or .png; got {path.suffix!r}")
    with styled(drawing.name):
        figure = drawing.draw()
        if path.suffix == ".svg":
            text = _svg_text(figure, drawing.title)
            data = f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()
        else:
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", dpi=DOTS, metadata={"Software": None})
            data = buffer.getvalue()
    write_file(path, data)


def _svg_text(figure: Figure, title: str) -> str:
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    return tidy(buffer.getvalue(), title=title)


def new_figure(size: Size) -> Figure:
    return Figure((size[0] / POINTS, size[1] / POINTS), dpi=POINTS, facecolor=ink("paper"))


def new_axes(size: Size, *, right: float = MARGINS["right"]) -> tuple[Figure, Axes]:
    figure, left = new_figure(size), MARGINS["left"]
    return figure, add_panel(figure, size, left, size[0] - left - right)


def add_panel(figure: Figure, size: Size, left: float, width: float) -> Axes:
    """Add axes that span the height of the figure."""
    bottom, top = MARGINS["bottom"], MARGINS["top"]
    return add_box(figure, size, (left, bottom, width, size[1] - bottom - top))


def add_box(figure: Figure, size: Size, box: tuple[float, float, float, float]) -> Axes:
    left, bottom, width, height = box
    axes = figure.add_axes((left / size[0], bottom / size[1], width / size[0], height / size[1]))
    axes.patch.set_visible(False)
    return axes


def draw_line(
    axes: Axes, name: str, x: Sequence[float] | NDArray[Any], y: Any, **looks: Any
) -> None:
    if len(x) == 1:
        looks = {"marker": "o", "markersize": 6} | looks
    (line,) = axes.plot(x, y, color=ink(name), label=name, **(LINES[name] | looks))
    line.set_gid(f"rule:{name}")


def draw_stairs(axes: Axes, name: str, shares: NDArray[Any], edges: NDArray[Any]) -> None:
    """Draw a histogram as one filled shape."""
    axes.stairs(shares, edges, fill=True, color=ink(name), linewidth=0)


def shares_of(counts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Normalise counts to shares of their sum."""
    return np.asarray(counts / max(1, counts.sum()), np.float64)


def settled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Remove the first quarter of a curve."""
    return np.append(values[len(values) // 4 :], [values.max()])


def percent_axis(axes: Axes, *shown: NDArray[np.float64]) -> None:
    """Fit the y axis to shares and format it as percentages."""
    values = np.concatenate(shown)
    low, high = float(values.min()), float(values.max())
    pad = max(0.06 * (high - low), 0.02)
    axes.set_ylim(max(0.0, low - pad), min(1.004, high + pad))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    share_axis(axes)


def share_axis(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{abs(100 * share):.4g} %"))


def progress_axis(axes: Axes, progress: Sequence[float]) -> None:
    """Set the x axis to the recorded training progress."""
    first, last = min(progress), max(progress)
    axes.set_xlim(*((first, last) if first < last else room_around(progress)))
    whole = all(float(one).is_integer() for one in progress)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=whole, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda epoch, _: f"{epoch:g}"))
    axes.set_xlabel("epochs of training")


def doubling_axis(axes: Axes, sizes: Sequence[int], *, most: int = 9) -> None:
    """Set the ticks of a logarithmic axis to at most `most` sizes."""
    # The last two may lie so close that their labels overlap.
    crowded = len(sizes) > 2 and sizes[-1] < 1.5 * sizes[-2]
    clear = [*sizes[:-2], sizes[-1]] if crowded else list(sizes)
    axes.set_xticks(clear[:: -math.ceil(len(clear) / most)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:g}"))
    axes.minorticks_off()
    axes.set_xlim(*room_around(sizes, log=True))


def room_around(
    sizes: Sequence[float] | NDArray[Any],
    *,
    before: float = 0.05,
    after: float = 0.05,
    log: bool = False,
) -> tuple[float, float]:
    """Compute axis limits with room around the sizes."""
    low, high = float(min(sizes)), float(max(sizes))
    if log:
        room = high / low if high > low else 2.0
        return low / room**before, high * room**after
    room = high - low or 1.0
    return low - before * room, high + after * room


def label_ends(axes: Axes, ends: Sequence[End]) -> None:
    """Label the ends of lines without overlaps."""
    (bottom, top), box = axes.get_ylim(), axes.get_window_extent()
    wanted = [(end.value - bottom) / (top - bottom) for end in ends]
    placed = spread(wanted, gap=LABEL_GAP / box.height, low=0, high=1)
    for end, start, stop in zip(ends, wanted, placed, strict=True):
        looks: dict[str, Any] = {"color": ink(end.ink or end.rule), "transform": axes.transAxes}
        weight = "bold" if end.rule == MAX_AGREEMENT and len(ends) > 2 else "normal"
        leader = [1 + 3 / box.width, 1 + 11 / box.width], [start, stop]
        (line,) = axes.plot(*leader, linewidth=0.8, clip_on=False, **looks)
        at = 1 + 14 / box.width, stop
        text = f"{end.name or end.rule} {100 * end.value:.1f}"
        label = axes.text(*at, text, va="center", fontweight=weight, **looks)
        for artist in (line, label):
            artist.set_gid(f"rule:{end.rule}")


MOST_BARS: Final = 12  # with a label
NOTE: Final = 0.1  # height of a note at the bottom of axes


class Spread(NamedTuple):
    """Mean and standard deviation at each size."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]


def draw_by_networks(axes: Axes, sizes: Sequence[int], spreads: Mapping[str, Spread]) -> None:
    sides = []
    for rule, (mean, deviation) in spreads.items():
        low, high = mean - deviation, mean + deviation
        band = axes.fill_between(sizes, low, high, color=ink(rule), alpha=0.16, linewidth=0)
        band.set_gid(f"rule:{rule}")
        draw_line(axes, rule, sizes, mean, marker="o", markersize=4.5)
        sides += [low, high]
    percent_axis(axes, *sides)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlim(max(0.5, room_around(sizes)[0]), room_around(sizes, after=0.015)[1])
    axes.set_xlabel("networks")
    axes.set_title("accuracy")
    label_ends(axes, [End(rule, float(one.mean[-1])) for rule, one in spreads.items()])


def draw_by_epochs(
    axes: Axes, sizes: Sequence[int], accuracy: NDArray[np.float64], voted: float
) -> None:
    axes.set_xscale("log", base=2)
    draw_line(axes, MAX_AGREEMENT, sizes, accuracy, marker="o", markersize=4.5)
    axes.axhline(voted, color=ink(MAJORITY), gid=f"rule:{MAJORITY}", **LINES[MAJORITY])
    percent_axis(axes, accuracy[len(sizes) > 1 :], np.array([voted]))
    doubling_axis(axes, sizes)
    axes.set_xlim(*room_around(sizes, before=0.1, after=0.015, log=True))
    _name_hidden(axes, sizes, accuracy, clear_of=voted)
    axes.set_xlabel("equally spaced epochs")
    axes.set_title("accuracy")
    label_ends(axes, [End(MAX_AGREEMENT, float(accuracy[-1])), End(MAJORITY, voted)])


def _name_hidden(
    axes: Axes, x: Sequence[float], y: NDArray[np.float64], *, clear_of: float
) -> None:
    """Annotate points that lie below the axes."""
    bottom, top = axes.get_ylim()
    line = (clear_of - bottom) / (top - bottom)
    height = line + 0.02 if 0 <= line < NOTE else 0.02
    for place, value in zip(x, y, strict=True):
        if value < bottom:
            axes.text(
                *(place, height, f"↓ {100 * value:.1f}"),
                color=ink(MAX_AGREEMENT),
                transform=axes.get_xaxis_transform(),
                ha="center",
            )


def draw_final_margins(
    axes: Axes, edges: NDArray[np.float64], right: NDArray[Any], wrong: NDArray[Any]
) -> None:
    """Draw histograms of final margins for right and wrong last votes."""
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
    """Draw the share of wrong predictions by the number of networks that share them."""
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
