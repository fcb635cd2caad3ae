"""Reader of CSV, TSV and Parquet files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord._files import Columns, open_csv, read_parquet
from accord.data._dataset import (
    Dataset,
    Features,
    Kind,
    Labels,
    NamedColumns,
    Split,
    TextPairs,
    Texts,
    hold_out,
)
from accord.data.readers._published_files import missing
from accord.errors import ChoiceError, SourceError

Column: TypeAlias = Sequence[Any] | NDArray[Any]  # one value per row


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
    """Read numeric features or texts from a table with one row per sample.

    Classes are named by the values of the label column and numbered in sorted order:
    integers by value, everything else as text.

    Args:
        path: a file, or a folder that holds `train` and `test` with this ending.
        ending: ".csv", ".tsv" or ".parquet".
        label: the column of labels.
        text: the column of texts, or two columns for pairs of texts.
        features: the columns of numbers, by default all that no other option names.
        one_hot: categorical columns, each encoded as one column of 0 and 1 per value.
        truth: the column of clean labels, if there is one.
        ids: the column of sample ids, if there is one.
        test: the file to test on; a name next to `path`, or a path.
        held_out: the share of each class to test on instead, between 0 and 1.
        seed: selects the samples that are held out.
    """
    files = _find_files(path, ending, test, held_out)
    tables = [load_table(file, ending) for file in files]
    roles = _Roles(
        label,
        () if text is None else as_names(text),
        None if features is None else as_names(features),
        as_names(one_hot),
        truth,
        ids,
    )
    class_names = _class_names(tables[0], roles)
    columns = None if roles.text else roles.feature_columns(tables)
    splits = [_as_split(table, roles, class_names, columns) for table in tables]
    train, held = splits if held_out is None else hold_out(splits[0], held_out, seed)
    kind: Kind = "text" if columns is None else "table"
    return Dataset(files[0].stem, kind, class_names, train=train, test=held, columns=columns)


@dataclass(frozen=True)
class Table:
    """Container for the columns of a file."""

    path: Path
    columns: Columns
    lines: NDArray[np.intp] | None = None  # where each row begins in the file, from 1

    @property
    def rows(self) -> NDArray[np.intp]:
        """Return the number of each row: its line in a text file, or its position from 0."""
        rows = len(next(iter(self.columns.values())))
        return np.arange(rows) if self.lines is None else self.lines

    def where(self, row: int) -> str:
        """Return the name of a row for messages."""
        return f"{'row' if self.lines is None else 'line'} {self.rows[row]}"

    def column(self, name: str) -> Column:
        """Return a column by name."""
        if name not in self.columns:
            raise SourceError(f"{self.path}: no column {name!r}; it has {', '.join(self.columns)}.")
        return self.columns[name]

    def texts(self, names: Sequence[str]) -> Texts | TextPairs:
        """Return a column of texts, or pairs from two columns."""
        cells = [["" if value is None else str(value) for value in self.column(n)] for n in names]
        return tuple(cells[0]) if len(cells) == 1 else tuple(zip(*cells, strict=True))

    def labels(self, name: str) -> list[str]:
        """Return a column of labels as strings."""
        # NaN, which is not equal to itself, is how some writers store a missing value.
        labels = [
            "" if value is None or value != value else str(value) for value in self.column(name)
        ]
        if "" in labels:
            raise SourceError(f"{self.path}: {self.where(labels.index(''))} has no {name!r}.")
        return labels

    def features(self, columns: NamedColumns, *, cure: str = "") -> Features:
        """Return numeric and one-hot columns as an array (sample, feature).

        `cure` is a hint for a cell that is not a number, with `{name}` for the column.
        """
        parts = [
            _numbers(self, name, cure)[:, None] if values is None else _one_hot(self, name, values)
            for name, values in columns
        ]
        return np.concatenate(parts, axis=1)


def _numbers(table: Table, name: str, cure: str) -> NDArray[np.float32]:
    column = table.column(name)
    if isinstance(column, np.ndarray):
        return column.astype(np.float32)
    numbers = np.empty(len(column), np.float32)
    for row, value in enumerate(column):
        try:
            numbers[row] = "" if value is None else value  # numpy would store None as NaN
        except (ValueError, TypeError):
            where = f"{table.path}: column {name!r}, {table.where(row)}"
            if value is None or str(value).strip() == "":
                raise SourceError(f"{where} is empty. Fill such cells or drop the rows.") from None
            raise SourceError(
                f"{where} is not a number: {str(value)[:40]!r}.{cure.format(name=name)}"
            ) from None
    return numbers


def _one_hot(table: Table, name: str, values: tuple[str, ...]) -> Features:
    cells = np.array([str(value) for value in table.column(name)])
    if unknown := sorted(set(cells.tolist()) - set(values)):
        more = ", …" if len(values) > 8 else ""
        raise SourceError(
            f"{table.path}: column {name!r} holds {unknown[0]!r}, a value that is not in the "
            f"training data: {', '.join(values[:8])}{more}."
        )
    return np.asarray(cells[:, None] == np.array(values), np.float32)


@dataclass(frozen=True)
class _Roles:
    """Container for the columns named by the options."""

    label: str
    text: tuple[str, ...]
    features: tuple[str, ...] | None
    one_hot: tuple[str, ...]
    truth: str | None
    ids: str | None

    def __post_init__(self) -> None:
        if len(self.text) > 2:
            raise ChoiceError(
                f"a sample is one text or a pair of texts; got columns {', '.join(self.text)}."
            )
        for option in ("text", "features", "one_hot"):
            names = getattr(self, option) or ()
            for name in names:
                if name in (self.label, self.truth):
                    raise ChoiceError(f"{option} names {name!r}, which holds the labels.")
                if names.count(name) > 1:
                    raise ChoiceError(f"{option} names {name!r} twice; name each column once.")

    def feature_columns(self, tables: list[Table]) -> NamedColumns:
        """Find the feature columns and the values of one-hot columns."""
        table, others = tables[0], {self.label, self.truth, self.ids}
        if self.features is not None:
            names = list(dict.fromkeys((*self.features, *self.one_hot)))
        elif "" in table.columns and "" not in others:
            raise SourceError(
                f"{table.path}: a column has no name. Is it the index that pandas writes? "
                "Write the file with index=False, or name the columns: features=[…]"
            )
        else:
            names = [name for name in table.columns if name not in others]
        if not names:
            raise SourceError(f"{table.path}: holds no columns besides the labels.")
        values = {
            name: tuple(sorted({str(value) for table in tables for value in table.column(name)}))
            for name in self.one_hot
        }
        return tuple((name, values.get(name)) for name in names)


def as_names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Convert one or several column names to a tuple."""
    return (given,) if isinstance(given, str) else tuple(given)


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
        raise missing(path, [train.name], what="the training samples")
    if held_out is not None:
        return [train]
    if not beside.is_file():
        raise ChoiceError(
            f"{path}: there is no test set. Name a file, test='test{ending}', "
            "or hold out a share of the samples: held_out=0.2"
        )
    return [train, beside]


def _class_names(table: Table, roles: _Roles) -> tuple[str, ...]:
    names = set(table.labels(roles.label))
    if roles.truth is not None:
        names |= set(table.labels(roles.truth))
    whole = all(name.removeprefix("-").isdecimal() for name in names)
    return tuple(sorted(names, key=int) if whole else sorted(names))


def _as_labels(table: Table, column: str, class_names: tuple[str, ...]) -> Labels:
    numbers = {name: number for number, name in enumerate(class_names)}
    names = table.labels(column)
    if unknown := sorted(set(names) - set(numbers)):
        raise SourceError(
            f"{table.path}: column {column!r} holds classes that are not in the training labels: "
            f"{', '.join(unknown[:5])}."
        )
    return np.array([numbers[name] for name in names], np.int64)


_CURE: Final = (
    " For one column per value: one_hot=['{name}']; for texts: text='{name}'; otherwise name the "
    "numeric columns: features=[…]"
)


def _as_split(
    table: Table, roles: _Roles, class_names: tuple[str, ...], columns: NamedColumns | None
) -> Split:
    truth = roles.truth if roles.truth in table.columns else None
    return Split(
        table.texts(roles.text) if columns is None else table.features(columns, cure=_CURE),
        _as_labels(table, roles.label, class_names),
        # A test file may lack the column of clean labels: its labels are given ones.
        truth=None if truth is None else _as_labels(table, truth, class_names),
        ids=table.rows if roles.ids is None else np.array(table.column(roles.ids)),
    )


def load_table(path: Path, ending: str) -> Table:
    """Read all columns of a file."""
    table = Table(path, read_parquet(path)) if ending == ".parquet" else _delimited(path, ending)
    if not table.columns or not len(table.rows):
        raise SourceError(f"{path}: holds no rows.")
    return table


def _delimited(path: Path, ending: str) -> Table:
    rows: list[list[str]] = []
    lines: list[int] = []
    with open_csv(path, delimiter="\t" if ending == ".tsv" else ",") as reader:
        header = next(reader, [])
        begins = reader.line_num + 1
        for row in reader:
            line, begins = begins, reader.line_num + 1
            if not row:
                continue
            if len(row) != len(header):
                raise SourceError(
                    f"{path}: line {line} has {len(row)} cells, the header {len(header)}. Is a "
                    "delimiter or a quotation mark missing?"
                )
            if ending == ".tsv" and any("\t" in cell or "\n" in cell for cell in row):
                raise SourceError(
                    f"{path}: a cell of line {line} holds a tab or a newline. "
                    "Is a quotation mark opened and not closed?"
                )
            rows.append(row)
            lines.append(line)
    if len(set(header)) < len(header):
        raise SourceError(f"{path}: two columns have the same name: {', '.join(header)}.")
    cells = zip(*rows, strict=True) if rows else ((),) * len(header)
    return Table(path, dict(zip(header, cells, strict=True)), np.array(lines, np.intp))


def read_unquoted(path: Path, *, skip_short: bool = False) -> tuple[Columns, int]:
    """Read a TSV file without interpreting quotation marks.

    Also return the number of rows left out for missing cells, an error without `skip_short`.
    """
    try:
        # Only \n ends a line: texts hold other line separators, such as U+2028.
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
