"""Columns by name, from CSV, TSV or Parquet files."""

import csv
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray

from accord.data.dataset import TextPairs, Texts
from accord.errors import ExtraMissing, SourceError

Column: TypeAlias = Sequence[Any] | NDArray[Any]  # one value per row
Columns: TypeAlias = dict[str, Column]

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_LONGEST_CELL: Final = 2**31 - 1  # characters: the largest C long everywhere
_CELL_LIMIT = threading.Lock()


def read_columns(path: Path, ending: str) -> Columns:
    """Read a whole file: `.csv` and `.tsv` as text, `.parquet` as its own types.

    Raises:
        SourceError: the file is not there, empty, damaged, or a row has other cells than
            the header; the message tells the line.
        ExtraMissing: `.parquet` without pyarrow.
    """
    columns = read_parquet(path) if ending == ".parquet" else _read_delimited(path, ending)
    if not columns or not len(next(iter(columns.values()))):
        raise SourceError(f"{path}: holds no rows.")
    return columns


def _read_delimited(path: Path, ending: str) -> Columns:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file, _long_cells():
            delimiter = _DELIMITERS[ending]
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            header = next(reader, [])
            rows = [
                _check_row(path, reader.line_num, header, row, delimiter) for row in reader if row
            ]
    except csv.Error as error:
        raise SourceError(
            f"{path}: line {reader.line_num} cannot be read: {error}. A quotation mark inside a "
            "cell is doubled, and the cell stands in quotation marks."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read: {error}") from error
    if len(set(header)) < len(header):
        raise SourceError(f"{path}: two columns have the same name: {', '.join(header)}.")
    cells = zip(*rows, strict=True) if rows else ((),) * len(header)
    return dict(zip(header, cells, strict=True))


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let csv read cells of more than its 131,072 characters, a limit that all threads share."""
    with _CELL_LIMIT:
        before = csv.field_size_limit(_LONGEST_CELL)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _check_row(
    path: Path, line: int, header: list[str], row: list[str], delimiter: str
) -> list[str]:
    if len(row) != len(header):
        raise SourceError(
            f"{path}: line {line} has {len(row)} cells, the header {len(header)}. "
            "Is a delimiter or a quotation mark missing?"
        )
    if delimiter == "\t" and any("\t" in cell or "\n" in cell for cell in row):
        raise SourceError(
            f"{path}: a cell that ends in line {line} holds a tab or a new line. Is a quotation "
            "mark opened and not closed?"
        )
    return row


def as_texts(columns: Columns, names: Sequence[str]) -> Texts | TextPairs:
    """Return a column of texts, or the pairs of two; where Parquet holds nothing, it is empty.

    >>> as_texts({"text": ["good", None], "label": [1, 0]}, ["text"])
    ('good', '')
    """
    cells = [["" if value is None else str(value) for value in columns[name]] for name in names]
    return tuple(cells[0]) if len(cells) == 1 else tuple(zip(*cells, strict=True))


def read_unquoted(path: Path, *, skip_short: bool = False) -> tuple[Columns, int]:
    """Read a TSV file in which quotation marks are text, as GLUE's are.

    Returns:
        The columns, and how many rows with missing cells were left out; without
        `skip_short` such a row is an error.
    """
    try:
        # Only \n ends a line: texts hold others, such as U+2028.
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            lines = [line.rstrip("\r\n").split("\t") for line in file]
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read: {error}") from error
    if len(lines) < 2:
        raise SourceError(f"{path}: holds no rows.")
    header, width = lines[0], len(lines[0])
    short = [number for number, row in enumerate(lines, start=1) if len(row) < width]
    if short and not skip_short:
        raise SourceError(f"{path}: line {short[0]} has fewer cells than the header's {width}.")
    rows = [row[:width] for row in lines[1:] if len(row) >= width]
    return dict(zip(header, zip(*rows, strict=True), strict=True)), len(short)


def read_parquet(path: Path) -> Columns:
    """Read a Parquet file: numbers as arrays, all else as lists."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ExtraMissing(
            f"{path}: .parquet files need pyarrow, which is not installed. "
            "To install it: pip install 'accord[parquet]'"
        ) from error
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{path}: cannot be read as Parquet: {error}") from error
    return {name: _as_column(table.column(name)) for name in table.column_names}


def _as_column(column: Any) -> Column:
    numeric = str(column.type).startswith(("int", "uint", "float", "double", "halffloat", "bool"))
    values: Column = column.to_numpy() if numeric and not column.null_count else column.to_pylist()
    return values
