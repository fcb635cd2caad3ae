"""Panels side by side, each under the name of its setting."""

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from accord.report.canvas import Axes, Figure
from accord.report.drawing import MARGINS, add_box, new_figure
from accord.report.looks import ink

LINE: Final = 14.0  # the height of a line of text
LETTER: Final = 6.8  # the width of a wide one, in bold


class Cell(NamedTuple):
    """The room of one panel, in points."""

    width: int
    height: int
    right: float  # beside the axes, for labels
    most: int  # in one row


def draw_grid(
    panels: Sequence[dict[str, Any]], cell: Cell, draw: Callable[[Axes, dict[str, Any]], None]
) -> Figure:
    """Draw panels row by row, `cell.most` in a row, and name each."""
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
