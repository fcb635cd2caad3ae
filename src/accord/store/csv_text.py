"""Rows of values as CSV that any reader takes apart into the same rows."""

import csv
import io
from collections.abc import Iterable
from typing import Any, Final

_ENDING: Final = "\r\n"


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    r"""Return a line of names and a line for each row, each ended by a newline.

    Text that holds a newline or a carriage return is quoted, so that it ends no line.

    >>> csv_text(["id", "label"], [["a", 1], ["b\r", 2]])
    'id,label\na,1\n"b\r",2\n'
    """
    text = io.StringIO(newline="")
    # Before Python 3.13 it quotes of the two only what its own line ending holds: hence both.
    writer = csv.writer(_Lines(text), lineterminator=_ENDING)
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


class _Lines:
    """Ends each row that a csv.writer writes, one at a time, by a newline alone."""

    def __init__(self, text: io.StringIO) -> None:
        self._text = text

    def write(self, row: str) -> None:
        self._text.write(row.removesuffix(_ENDING))
        self._text.write("\n")
