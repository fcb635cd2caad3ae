"""The paper's accuracies and ours, side by side: a table as a picture."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from accord.errors import ChoiceError
from accord.report.canvas import Axes, Figure, FuncFormatter, MaxNLocator
from accord.report.drawing import add_box, check_ending, new_figure, styled, svg_of, write_figure
from accord.report.looks import INKS, ink

TITLE: Final = "Accuracies of the paper, and ours"
WIDTH: Final = 560
ROW: Final = 17.0  # points from one method to the next
HEAD: Final = 20.0  # for a setting's name
LEFT, RIGHT, BOTTOM, TOP = 150.0, 150.0, 40.0, 30.0
COLUMNS: Final = {"paper": 66.0, "ours": 138.0}  # where figures end, right of the axes
MARKS: Final[dict[str, dict[str, Any]]] = {  # a dot still shows inside a diamond
    "paper": {"marker": "D", "markersize": 8, "markerfacecolor": ink("paper")},
    "ours": {"marker": "o", "markersize": 4.5},
}


@dataclass(frozen=True)
class Found:
    """An accuracy from 0 to 1, and its standard error if several repetitions tell it."""

    accuracy: float
    error: float = 0.0


@dataclass(frozen=True)
class ComparedRow:
    """One method in one setting: what the paper found and what we found, if either did."""

    setting: str
    method: str  # a rule's name gives the colour
    paper: Found | None
    ours: Found | None


def compare_with_paper(rows: Sequence[ComparedRow], path: Path) -> None:
    """Write the paper's accuracies beside ours, on white, to an .svg or .png file.

    Rows of one setting must follow one another; they stand together under its name.

    Raises:
        ChoiceError: no rows, an accuracy that is no share, or another ending.
        ExtraMissing: matplotlib is not installed.
    """
    check_ending(path)
    with _drawn(rows) as figure:
        write_figure(figure, path, title=TITLE)


def draw_comparison(rows: Sequence[ComparedRow]) -> str:
    """Return the same as the text of an SVG element, on no ground of its own."""
    with _drawn(rows) as figure:
        figure.patch.set_visible(False)
        return svg_of(figure, title=TITLE)


@contextmanager
def _drawn(rows: Sequence[ComparedRow]) -> Iterator[Figure]:
    _check_rows(rows)
    with styled("paper-comparison"):
        yield _figure(rows)


def _check_rows(rows: Sequence[ComparedRow]) -> None:
    if not any(found for row in rows for found in (row.paper, row.ours)):
        raise ChoiceError(f"a comparison needs at least one accuracy; got {len(rows)} rows of none")
    for row in rows:
        for found in (row.paper, row.ours):
            if found and not (0 <= found.accuracy <= 1 and 0 <= found.error <= 1):
                raise ChoiceError(
                    f"{row.setting}, {row.method}: accuracies and their errors must lie in 0..1; "
                    f"got {found.accuracy} and {found.error}. Are they in percent?"
                )


def _figure(rows: Sequence[ComparedRow]) -> Figure:
    groups = [(name, list(some)) for name, some in groupby(rows, key=lambda row: row.setting)]
    height = HEAD * len(groups) + ROW * len(rows)
    size = WIDTH, round(height + BOTTOM + TOP)
    figure = new_figure(size)
    axes = add_box(figure, size, (LEFT, BOTTOM, WIDTH - LEFT - RIGHT, height))
    axes.set_ylim(height, 0)
    _accuracy_axis(axes)
    for name, at in COLUMNS.items():
        _write(axes, name, at, -10, color=ink("quiet"))
    below = 0.0
    for setting, some in groups:
        _write(axes, setting, 12 - LEFT, below + HEAD - 6, left=True, fontweight="bold")
        for place, row in enumerate(some):
            _draw_row(axes, row, below + HEAD + (place + 0.5) * ROW)
        below += HEAD + ROW * len(some)
    return figure


def _accuracy_axis(axes: Axes) -> None:
    axes.set_yticks([])
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.margins(x=0.06)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g} %"))
    axes.set_xlabel("accuracy")
    axes.set_title("◇ paper   ● ours")


def _draw_row(axes: Axes, row: ComparedRow, y: float) -> None:
    colour = ink(row.method if row.method in INKS else "text")
    _write(axes, row.method, -10, y, color=colour)
    both = [found.accuracy for found in (row.paper, row.ours) if found]
    axes.plot(both, [y] * len(both), color=colour, linewidth=1.2, alpha=0.4)
    for found, place in ((row.paper, "paper"), (row.ours, "ours")):
        at = COLUMNS[place]
        if found is None:
            _write(axes, "–", at, y, color=ink("quiet"))
            continue
        axes.errorbar(found.accuracy, y, xerr=found.error, color=colour, **MARKS[place])
        _write(axes, _in_percent(found), at, y, color=colour)


def _in_percent(found: Found) -> str:
    error = f" ± {100 * found.error:.1f}" if found.error else ""
    return f"{100 * found.accuracy:.1f}{error}"


def _write(axes: Axes, text: str, x: float, y: float, *, left: bool = False, **looks: Any) -> None:
    """Write at `y`, and `x` points right of the axes; left of them if negative."""
    axes.annotate(
        text,
        (0 if x < 0 else 1, y),
        (x, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        ha="left" if left else "right",
        va="center",
        **looks,
    )
