"""The arrays of an npz file that somebody else wrote."""

import csv
import io
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import SourceError

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


# What numpy and zipfile raise for a damaged npz; RuntimeError where a flipped bit says "encrypted".
UNREADABLE: Final = (
    ValueError,
    OSError,
    EOFError,
    RuntimeError,
    AttributeError,
    zipfile.BadZipFile,
    zlib.error,
)


def load_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of an npz file into memory. Pickled objects are refused.

    Raises:
        SourceError: the file is missing, damaged, no npz, or holds pickled objects.
    """
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):  # numpy would call it pickled, or load one array
                raise zipfile.BadZipFile("it is no zip file, as npz files are")
            with np.load(file, allow_pickle=False) as opened:
                return {name: opened[name] for name in opened.files}
    except UNREADABLE as error:
        pickled = "allow_pickle" in str(error)
        cause = "it holds pickled objects, which are never loaded" if pickled else str(error)
        raise SourceError(f"{path}: cannot be read as npz: {cause}") from error
