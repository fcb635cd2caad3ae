"""What every figure is drawn with: axes of a set size, lines, ticks, labels, files."""

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError
from accord.report.canvas import Axes, Figure, FuncFormatter, MaxNLocator, style
from accord.report.looks import LINES, STYLE, ink
from accord.report.measured import SECOND
from accord.report.spacing import spread
from accord.report.svg import tidy
from accord.store.places import Folder

Size = tuple[int, int]  # width and height, in points

WIDE: Final = (410, 270)
NARROW: Final = (374, 236)
POINTS: Final = 72  # in an inch; the unit of an SVG that matplotlib writes
DOTS: Final = 200  # of a PNG, in an inch
MARGINS: Final = {"left": 42.0, "right": 12.0, "bottom": 40.0, "top": 22.0}  # around axes
LABEL_GAP: Final = 13.0  # between the middles of two labels


class End(NamedTuple):
    """The end of a line, and what is written beside it."""

    rule: str  # which the label bears as `data-rule`
    value: float
    name: str = ""  # the rule's own if empty
    ink: str = ""  # the rule's own if empty


@contextmanager
def styled(salt: str) -> Iterator[None]:
    """Set the user's own settings, which may ask for TeX, aside while we draw.

    The salt makes identifiers the same every time, and different from those of other figures.
    """
    with style.context(["default", STYLE | {"svg.hashsalt": salt}]):
        yield


def svg_of(figure: Figure, *, title: str) -> str:
    """Return a figure as the text of an SVG element that is read out as `title`."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    return tidy(buffer.getvalue(), title=title)


def check_ending(path: Path) -> None:
    """Refuse a file that is neither an .svg nor a .png."""
    if path.suffix not in {".svg", ".png"}:
        raise ChoiceError(f"{path}: figures are written as .svg or .png; got {path.suffix!r}")


def write_figure(figure: Figure, path: Path, *, title: str) -> None:
    """Write a figure to an .svg or .png file, whole or not at all."""
    check_ending(path)
    if path.suffix == ".svg":
        text = svg_of(figure, title=title)
        data = f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()
    else:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DOTS, metadata={"Software": None})
        data = buffer.getvalue()
    Folder(path.absolute().parent).put(path.name, data)


def new_figure(size: Size) -> Figure:
    """Return an empty figure on white."""
    inches = size[0] / POINTS, size[1] / POINTS
    return Figure(inches, dpi=POINTS, facecolor=ink("paper"))


def new_axes(size: Size, *, right: float = MARGINS["right"]) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes; `right` leaves room for labels."""
    figure = new_figure(size)
    left = MARGINS["left"]
    return figure, add_panel(figure, size, left, size[0] - left - right)


def add_panel(figure: Figure, size: Size, left: float, width: float) -> Axes:
    """Add axes as high as the figure, its margins apart."""
    bottom, top = MARGINS["bottom"], MARGINS["top"]
    return add_box(figure, size, (left, bottom, width, size[1] - bottom - top))


def add_box(figure: Figure, size: Size, box: tuple[float, float, float, float]) -> Axes:
    """Add axes at (left, bottom, width, height), in points."""
    left, bottom, width, height = box
    axes = figure.add_axes((left / size[0], bottom / size[1], width / size[0], height / size[1]))
    axes.patch.set_visible(False)
    return axes


def draw_line(
    axes: Axes, name: str, x: Sequence[float] | NDArray[Any], y: Any, **looks: Any
) -> None:
    """Draw a rule's line, or a dot where it has one point."""
    if len(x) == 1:
        looks = {"marker": "o", "markersize": 6} | looks
    (line,) = axes.plot(x, y, color=ink(name), label=name, **(LINES[name] | looks))
    line.set_gid(f"rule:{name}")


def draw_stairs(axes: Axes, name: str, shares: NDArray[Any], edges: NDArray[Any]) -> None:
    """Draw a histogram as one filled shape."""
    axes.stairs(shares, edges, fill=True, color=ink(name), linewidth=0)


def shares_of(counts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return each count's share of all; zeros where nothing was counted."""
    return np.asarray(counts / max(1, counts.sum()), np.float64)


def settled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what an axis must show of a curve.

    The first quarter climbs so steeply that it would flatten all that follows.
    """
    return np.append(values[len(values) // 4 :], [values.max()])


def percent_axis(axes: Axes, *shown: NDArray[np.float64]) -> None:
    """Fit the upright axis to some shares, and write them as percentages."""
    values = np.concatenate(shown)
    low, high = float(values.min()), float(values.max())
    pad = max(0.06 * (high - low), 0.02)
    axes.set_ylim(max(0.0, low - pad), min(1.004, high + pad))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    share_axis(axes)


def share_axis(axes: Axes) -> None:
    """Write the shares on the upright axis as percentages, without a sign."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{abs(100 * share):.4g} %"))


def progress_axis(axes: Axes, progress: Sequence[float]) -> None:
    """Make the level axis one of training: from the first recorded epoch to the last."""
    first, last = min(progress), max(progress)
    axes.set_xlim(*((first, last) if first < last else room_around(progress)))
    whole = all(float(one).is_integer() for one in progress)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=whole, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda epoch, _: f"{epoch:g}"))
    axes.set_xlabel("epochs of training")


def doubling_axis(axes: Axes, sizes: Sequence[int], *, most: int = 9) -> None:
    """Put a tick at each size, or at `most` of them, on a logarithmic axis."""
    # The last but one may lie close to the last: two labels would run into each other.
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
    """Return limits a little wider than the sizes; `before` and `after` are shares of them."""
    low, high = float(min(sizes)), float(max(sizes))
    if log:
        room = high / low if high > low else 2.0
        return low / room**before, high * room**after
    room = high - low or 1.0
    return low - before * room, high + after * room


def label_ends(axes: Axes, ends: Sequence[End]) -> None:
    """Write each line's name and value beside its end, and move apart what would overlap."""
    (bottom, top), box = axes.get_ylim(), axes.get_window_extent()
    wanted = [(end.value - bottom) / (top - bottom) for end in ends]
    placed = spread(wanted, gap=LABEL_GAP / box.height, low=0, high=1)
    for end, start, stop in zip(ends, wanted, placed, strict=True):
        looks: dict[str, Any] = {"color": ink(end.ink or end.rule), "transform": axes.transAxes}
        weight = "bold" if end.rule == SECOND and len(ends) > 2 else "normal"
        leader = [1 + 3 / box.width, 1 + 11 / box.width], [start, stop]
        (line,) = axes.plot(*leader, linewidth=0.8, clip_on=False, **looks)
        at = 1 + 14 / box.width, stop
        text = f"{end.name or end.rule} {100 * end.value:.1f}"
        label = axes.text(*at, text, va="center", fontweight=weight, **looks)
        for artist in (line, label):
            artist.set_gid(f"rule:{end.rule}")
