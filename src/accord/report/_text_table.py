"""Text tables for the terminal."""

import io
import shutil
from collections.abc import Sequence
from typing import Final

LEAST_WRAPPED: Final = 30  # characters in a line of the last column, however narrow the terminal
UNLIMITED: Final = 10_000


def text_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    wrap: bool = False,
    styles: Sequence[str] | None = None,
) -> list[str]:
    """Format the lines of a table.

    Args:
        heads: of the columns.
        rows: of cells; line breaks in them become blanks.
        right: positions of columns to align to the right.
        wrap: whether to wrap the last column at the width of the terminal.
        styles: of each row, for terminals with colours; None for plain text.

    >>> text_table(["rule", "accuracy"], [["majority", "59.6"], ["single", "8.1"]], right=[1])
    ['rule      accuracy', 'majority      59.6', 'single         8.1']
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    cells = [[one_line(cell) for cell in row] for row in [heads, *rows]]
    for column, head in enumerate(cells[0]):
        wrapped = wrap and column == len(heads) - 1
        justify = "right" if column in right else "left"
        table.add_column(Text(head), justify=justify, no_wrap=not wrapped)  # type: ignore[arg-type]
    for row, style in zip(cells[1:], styles or [""] * len(rows), strict=True):
        table.add_row(*(Text(cell, style) for cell in row))
    # Only the last column may become narrower than its text.
    fixed = sum(max(map(len, column)) + 2 for column in list(zip(*cells, strict=True))[:-1])
    width = max(shutil.get_terminal_size().columns, fixed + LEAST_WRAPPED) if wrap else UNLIMITED
    colours = {} if styles is None else {"force_terminal": True, "color_system": "standard"}
    console = Console(file=io.StringIO(), width=width, no_color=styles is None, **colours)  # type: ignore[arg-type]
    console.print(table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def one_line(text: str) -> str:
    r"""Replace line breaks by blanks.

    >>> one_line("hot\ndog")
    'hot dog'
    """
    return " ".join(text.splitlines())
