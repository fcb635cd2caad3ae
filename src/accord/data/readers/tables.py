"""Users' own tables and texts, from CSV, TSV or Parquet files."""

import csv
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord.data._dataset import (
    Dataset,
    Features,
    Inputs,
    Kind,
    Labels,
    NamedColumns,
    Split,
    TextPairs,
    Texts,
    hold_out,
)
from accord.data.readers._locate import missing
from accord.errors import ChoiceError, SourceError, missing_extra

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
        raise missing_extra(
            f"{path}: reading .parquet files", "pyarrow", extra="parquet", cause=error
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


def read_table(
    path: Path,
    *,
    ending: str,
    label: str = "label",
    text: str | Sequence[str] | None = None,
    features: str | Sequence[str] | None = None,
    one_hot: str | Sequence[str] = (),
    truth: str | None = None,
    ids: str | None = None,
    test: str | None = None,
    held_out: float | None = None,
    seed: int = 0,
) -> Dataset:
    """Read a table with one row per sample: numbers to learn from, or texts.

    Classes are named by what the label column holds, and numbered in sorted order:
    whole numbers by value, all else as text.

    Args:
        path: a file, or a folder that holds `train` and `test` with this ending.
        ending: ".csv", ".tsv" or ".parquet".
        label: the column of labels.
        text: the column of texts, or two columns for pairs; the data are then texts.
        features: the columns of numbers; by default all that nothing else names.
        one_hot: columns of names, each turned into one column of 0 and 1 per name.
        truth: the column of clean labels, if there is one.
        ids: the column that tells the samples apart, if there is one.
        test: the file to test on; a name next to `path`, or a path.
        held_out: the share of each class to test on instead, between 0 and 1.
        seed: which samples are held out.
    """
    files = _find_files(path, ending, test, held_out)
    tables = [_Table(file, read_columns(file, ending)) for file in files]
    chosen = None if features is None else _names(features)
    roles = _Roles(label, _listed(text), chosen, _names(one_hot), truth, ids)
    _check_roles(roles)
    names = _class_names(tables, roles)
    columns = None if roles.text else _columns(tables, roles)
    splits = [_as_split(table, roles, names, columns) for table in tables]
    train, held = splits if held_out is None else hold_out(splits[0], held_out, seed)
    kind: Kind = "table" if columns is not None else "text"
    return Dataset(files[0].stem, kind, names, train=train, test=held, columns=columns)


@dataclass(frozen=True)
class _Table:
    path: Path
    columns: Columns

    def column(self, name: str) -> Column:
        if name not in self.columns:
            raise SourceError(
                f"{self.path}: there is no column {name!r}; it has {', '.join(self.columns)}."
            )
        return self.columns[name]


@dataclass(frozen=True)
class _Roles:
    label: str
    text: tuple[str, ...]
    features: tuple[str, ...] | None
    one_hot: tuple[str, ...]
    truth: str | None
    ids: str | None

    def features_of(self, table: _Table) -> list[str]:
        others = {self.label, self.truth, self.ids}
        if self.features is not None:
            return [*self.features, *(name for name in self.one_hot if name not in self.features)]
        if "" in table.columns and "" not in others:
            raise SourceError(
                f"{table.path}: a column has no name. Is it the row numbers that pandas writes? "
                "Write the file without them, index=False, or name the columns: features=[…]"
            )
        for name in self.one_hot:
            table.column(name)
        return [name for name in table.columns if name not in others]


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _listed(text: str | Sequence[str] | None) -> tuple[str, ...]:
    names = () if text is None else _names(text)
    if len(names) > 2:
        raise ChoiceError(f"a sample is one text or a pair; got columns {', '.join(names)}.")
    return names


def _check_roles(roles: _Roles) -> None:
    for option in ("text", "features", "one_hot"):
        names = getattr(roles, option) or ()
        for name in names:
            if name in (roles.label, roles.truth):
                raise ChoiceError(f"{option} names {name!r}, which holds the labels.")
            if names.count(name) > 1:
                raise ChoiceError(f"{option} names {name!r} twice; name each column once.")


def _find_files(path: Path, ending: str, test: str | None, held_out: float | None) -> list[Path]:
    if test is not None and held_out is not None:
        raise ChoiceError("name a file to test on or a share to hold out, not both.")
    if path.is_dir():
        train, beside = path / f"train{ending}", path / (test or f"test{ending}")
    elif path.is_file():
        train, beside = path, path.parent / (test or "")
    else:
        raise SourceError(f"{path}: no such file or folder.")
    if not train.is_file():
        raise missing(path, [train.name], what="samples to train on")
    if held_out is not None:
        return [train]
    if not beside.is_file():
        raise ChoiceError(
            f"{path}: there is nothing to test on. Name a file, test='test{ending}', "
            "or hold some samples out: held_out=0.2"
        )
    return [train, beside]


def _class_names(tables: list[_Table], roles: _Roles) -> tuple[str, ...]:
    values = set(_as_names(tables[0], roles.label))
    if roles.truth is not None:
        values |= set(_as_names(tables[0], roles.truth))
    if all(value.removeprefix("-").isdecimal() for value in values):
        return tuple(sorted(values, key=int))
    return tuple(sorted(values))


def _as_names(table: _Table, column: str) -> list[str]:
    # A number that is not itself is NaN, as some write a missing one.
    names = [
        "" if value is None or value != value else str(value) for value in table.column(column)
    ]
    if "" in names:
        raise SourceError(f"{table.path}: row {names.index('') + 1} has no {column!r}.")
    return names


def _as_labels(table: _Table, column: str, names: tuple[str, ...]) -> Labels:
    numbers = {name: number for number, name in enumerate(names)}
    values = _as_names(table, column)
    unknown = sorted(set(values) - set(numbers))
    if unknown:
        raise SourceError(
            f"{table.path}: column {column!r} holds classes that no training label names: "
            f"{', '.join(unknown[:5])}."
        )
    return np.array([numbers[value] for value in values], np.int64)


def _as_split(
    table: _Table, roles: _Roles, names: tuple[str, ...], columns: NamedColumns | None
) -> Split:
    # A test file need not repeat the truth: its labels are clean.
    has_truth = roles.truth is not None and roles.truth in table.columns
    return Split(
        _texts(table, roles) if columns is None else _numbers(table, columns),
        _as_labels(table, roles.label, names),
        truth=_as_labels(table, roles.truth, names) if has_truth and roles.truth else None,
        ids=None if roles.ids is None else np.array(table.column(roles.ids)),
    )


def _texts(table: _Table, roles: _Roles) -> Inputs:
    return as_texts({name: table.column(name) for name in roles.text}, roles.text)


def _columns(tables: list[_Table], roles: _Roles) -> NamedColumns:
    names = roles.features_of(tables[0])
    if not names:
        raise SourceError(f"{tables[0].path}: there are no columns but the labels.")
    return tuple((name, _values(tables, name) if name in roles.one_hot else None) for name in names)


def _values(tables: list[_Table], name: str) -> tuple[str, ...]:
    return tuple(sorted({str(value) for table in tables for value in table.column(name)}))


def _numbers(table: _Table, columns: NamedColumns) -> Features:
    parts = [
        _as_numbers(table, name)[:, None] if values is None else _one_hot(table, name, values)
        for name, values in columns
    ]
    return np.concatenate(parts, axis=1)


def _one_hot(table: _Table, name: str, values: tuple[str, ...]) -> Features:
    cells = np.array([str(value) for value in table.column(name)])
    return np.asarray(cells[:, None] == np.array(values), np.float32)


def _as_numbers(table: _Table, name: str) -> NDArray[np.float32]:
    column = table.column(name)
    if isinstance(column, np.ndarray):
        return column.astype(np.float32)
    numbers = np.empty(len(column), np.float32)
    for row, value in enumerate(column):
        try:
            numbers[row] = "" if value is None else value  # numpy would take None for nan
        except (ValueError, TypeError):
            raise _no_number(table, name, row, value) from None
    return numbers


def _no_number(table: _Table, name: str, row: int, value: Any) -> SourceError:
    where = f"{table.path}: column {name!r}, row {row + 1}"
    if value is None or str(value).strip() == "":
        return SourceError(f"{where} is empty. Fill such cells or drop such rows.")
    return SourceError(
        f"{where} holds {str(value)[:40]!r}, which is no number. For one column per value: "
        f"one_hot=['{name}']; for texts: text='{name}'; else name the columns: features=[…]"
    )
