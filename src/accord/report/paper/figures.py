"""The door to the paper's figures: from settings, or from their numbers, to a picture."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from accord.report.canvas import Axes, Figure
from accord.report.drawing import check_ending, styled, svg_of, write_figure
from accord.report.panels import (
    Spread,
    draw_by_epochs,
    draw_by_networks,
    draw_error_consensus,
    draw_final_margins,
)
from accord.report.paper.curves import draw_curves, draw_turned
from accord.report.paper.grid import Cell, draw_grid
from accord.report.paper.illustration import illustration_figure
from accord.report.paper.material import Setting, needs_of
from accord.report.paper.numbers import Numbers, figure_numbers


def save_paper_figure(number: int, material: Setting | Sequence[Setting], path: Path) -> None:
    """Write a figure of the paper, drawn from records, on white to an .svg or .png file.

    Raises:
        ChoiceError, RecordError, TruthMissing: as of `figure_numbers`; or the file has another
            ending.
        ExtraMissing: matplotlib is not installed.
    """
    check_ending(path)  # before minutes of measuring
    save_numbers(figure_numbers(number, material), path)


def draw_paper_figure(number: int, material: Setting | Sequence[Setting]) -> str:
    """Return a figure of the paper as the text of an SVG element, on no ground of its own.

    The same records give the same text.
    """
    return draw_numbers(figure_numbers(number, material))


def save_numbers(numbers: Numbers, path: Path) -> None:
    """Write the figure that shows some numbers of `figure_numbers`."""
    with _drawn(numbers) as figure:
        write_figure(figure, path, title=numbers["title"])


def draw_numbers(numbers: Numbers) -> str:
    """Return the figure that shows some numbers of `figure_numbers`, as SVG text."""
    with _drawn(numbers) as figure:
        figure.patch.set_visible(False)
        return svg_of(figure, title=numbers["title"])


@contextmanager
def _drawn(numbers: Numbers) -> Iterator[Figure]:
    number = numbers["figure"]
    needs_of(number)
    with styled(f"paper-{number}"):
        yield FIGURES[number](numbers["panels"])


def _of_panels(cell: Cell, draw: Callable[[Axes, Numbers], None]) -> "Draw":
    return lambda panels: draw_grid(panels, cell, draw)


def _error_consensus(axes: Axes, panel: Numbers) -> None:
    draw_error_consensus(axes, np.array(panel["wrong_predictions"]))


def _final_margins(axes: Axes, panel: Numbers) -> None:
    draw_final_margins(axes, *(np.array(panel[name]) for name in ("edges", "right", "wrong")))
    axes.set_title("share of the right, or wrong, last votes")  # the longer one does not fit


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
