"""Reader of CSV, TSV and Parquet files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from accord._files import Columns, open_csv, read_parquet, unreadable
from accord.data._dataset import (
    Dataset,
    Encoding,
    EncodingKind,
    Kind,
    Labels,
    NamedColumns,
    Split,
    hold_out,
)
from accord.data._table_columns import Table, learn_encoding
from accord.data.readers._find_files import missing as missing_files
from accord.errors import ChoiceError, SourceError, counted


def read_table(
    path: Path,
    *,
    ending: str,
    label: str = "label",
    text: str | Sequence[str] | None = None,
    features: str | Sequence[str] | None = None,
    one_hot: str | Sequence[str] = (),
    dates: str | Sequence[str] = (),
    words: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    truth: str | None = None,
    ids: str | None = None,
    missing: Literal["refuse", "fill"] = "refuse",
    unlabelled: Literal["refuse", "drop"] = "refuse",
    test: str | None = None,
    held_out: float | None = None,
    seed: int = 0,
) -> Dataset:
    """Read features or texts from a table with one row per sample.

    Classes are named by the values of the label column and numbered in sorted order:
    integers by value, everything else as text. What is learnt about columns, such as the values
    that fill missing ones, is learnt on the training rows.

    Args:
        path: a file, or a folder that holds `train` and `test` with this ending.
        ending: ".csv", ".tsv" or ".parquet".
        label: the column of labels.
        text: the column of texts, or two columns for pairs of texts.
        features: the columns of numbers, by default all that no other option names.
        one_hot: categorical columns, each encoded as one column of 0 and 1 per value.
        dates: columns of dates, encoded as the day, the day of the week and of the year, and the
            hour.
        words: columns of texts, encoded as the frequencies of their words (hashed TF-IDF).
        exclude: columns to leave out.
        truth: the column of clean labels, if there is one.
        ids: the column of sample ids, if there is one.
        missing: "fill" replaces empty cells, NA, N/A, NaN, null and ? by the median or the most
            frequent value, marked in a further feature, and encodes values of `one_hot` columns
            that no training row has as zeros; "refuse" raises.
        unlabelled: "drop" leaves out rows without a label; "refuse" raises.
        test: the file to test on; a name next to `path`, or a path.
        held_out: the share of each class to test on instead, between 0 and 1.
        seed: selects the samples that are held out.
    """
    files = _find_files(path, ending, test, held_out)
    roles = _Roles(
        label,
        () if text is None else as_names(text),
        None if features is None else as_names(features),
        as_names(one_hot),
        as_names(dates),
        as_names(words),
        as_names(exclude),
        truth,
        ids,
        fill=missing == "fill",
    )
    tables = [load_table(file, ending) for file in files]
    notes = []
    if unlabelled == "drop":
        labelled = [_labelled(table, roles) for table in tables]
        tables = [table for table, _ in labelled]
        notes = [note for _, note in labelled if note]
    class_names = _class_names(tables[0], roles)
    if held_out is not None:
        tables = _hold_out(tables[0], roles, class_names, held_out, seed)
    columns = None if roles.text else roles.feature_columns(tables)
    train, held = (_as_split(table, roles, class_names, columns) for table in tables)
    if columns is not None:
        notes += [f"test rows: {note}" for note in tables[1].notes(columns)]
    kind: Kind = "text" if columns is None else "table"
    return Dataset(files[0].stem, kind, class_names, train, held, tuple(notes), columns)


@dataclass(frozen=True)
class _Roles:
    """Container for the columns named by the options."""

    label: str
    text: tuple[str, ...]
    features: tuple[str, ...] | None
    one_hot: tuple[str, ...]
    dates: tuple[str, ...]
    words: tuple[str, ...]
    exclude: tuple[str, ...]
    truth: str | None
    ids: str | None
    fill: bool

    def __post_init__(self) -> None:
        if len(self.text) > 2:
            raise ChoiceError(
                f"a sample is one text or a pair of texts; got columns {', '.join(self.text)}."
            )
        for option in ("text", "features", "one_hot", "dates", "words"):
            names = getattr(self, option) or ()
            for name in names:
                if name in (self.label, self.truth):
                    raise ChoiceError(f"{option} names {name!r}, which holds the labels.")
                if names.count(name) > 1:
                    raise ChoiceError(f"{option} names {name!r} twice; name each column once.")

    def feature_columns(self, tables: Sequence[Table]) -> NamedColumns:
        """Find the feature columns and learn their encodings."""
        table, others = tables[0], {self.label, self.truth, self.ids, *self.exclude}
        if self.features is not None:
            named = (*self.features, *self.one_hot, *self.dates, *self.words)
            names = list(dict.fromkeys(named))
        elif "" in table.columns and "" not in others:
            raise SourceError(
                f"{table.path}: a column has no name. Is it the index that pandas writes? "
                "Write the file with index=False, or name the columns: features=[…]"
            )
        else:
            names = [name for name in table.columns if name not in others]
        if not names:
            raise SourceError(f"{table.path}: holds no columns besides the labels.")
        kinds: dict[str, EncodingKind] = {
            **dict.fromkeys(self.one_hot, "one-hot"),
            **dict.fromkeys(self.dates, "date"),
            **dict.fromkeys(self.words, "words"),
        }
        for name in kinds:
            table.column(name)
        return tuple(
            (name, self._encoding(tables, name, kinds.get(name, "number"))) for name in names
        )

    def _encoding(
        self, tables: Sequence[Table], name: str, kind: EncodingKind
    ) -> tuple[str, ...] | Encoding | None:
        if self.fill or kind in ("date", "words"):
            return learn_encoding(tables[0], name, kind, fill=self.fill, cure=_CURE)
        if kind == "number":
            return None
        return tuple(sorted({str(value) for table in tables for value in table.column(name)}))


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
        raise missing_files(path, [train.name], what="the training samples")
    if held_out is not None:
        return [train]
    if not beside.is_file():
        raise ChoiceError(
            f"{path}: there is no test set. Name a file, test='test{ending}', "
            "or hold out a share of the samples: held_out=0.2"
        )
    return [train, beside]


def _class_names(table: Table, roles: _Roles) -> tuple[str, ...]:
    names = set(table.labels(roles.label, marks=roles.fill))
    if roles.truth is not None:
        names |= set(table.labels(roles.truth, marks=roles.fill))
    if len(names) == 1:
        raise SourceError(
            f"{table.path}: all {len(table)} rows of column {roles.label!r} hold {names.pop()!r}. "
            "A classifier needs at least two classes. Is another column the label?"
        )
    whole = all(name.removeprefix("-").isdecimal() for name in names)
    return tuple(sorted(names, key=int) if whole else sorted(names))


def _labelled(table: Table, roles: _Roles) -> tuple[Table, str]:
    """Leave out rows without a label, with a note."""
    cells = table.column(roles.label)
    gone = np.array([one is None or one != one or str(one) == "" for one in cells], bool)
    if roles.fill:
        gone |= table.missing(roles.label)
    if not gone.any():
        return table, ""
    numbers = table.rows[gone]
    listed = ", ".join(map(str, numbers[:5].tolist())) + (", …" if len(numbers) > 5 else "")
    units = table.unit if len(numbers) == 1 else f"{table.unit}s"
    note = f"left out {counted(len(numbers), 'row')} without {roles.label!r}: {units} {listed}"
    return table.choose(np.flatnonzero(~gone)), note


def _hold_out(
    table: Table, roles: _Roles, class_names: tuple[str, ...], share: float, seed: int
) -> list[Table]:
    labels = _as_labels(table, roles.label, class_names, marks=roles.fill)
    rows = np.arange(len(table))
    parts = hold_out(Split(rows[:, None].astype(np.float32), labels, ids=rows), share, seed)
    return [table.choose(np.asarray(part.ids)) for part in parts]


def _as_labels(table: Table, column: str, class_names: tuple[str, ...], *, marks: bool) -> Labels:
    numbers = {name: number for number, name in enumerate(class_names)}
    names = table.labels(column, marks=marks)
    if unknown := sorted(set(names) - set(numbers)):
        raise SourceError(
            f"{table.path}: column {column!r} holds classes that are not in the training labels: "
            f"{', '.join(unknown[:5])}."
        )
    return np.array([numbers[name] for name in names], np.int64)


_CURE: Final = (
    " For one column per value: one_hot=['{name}']; for texts: text='{name}' or words=['{name}']; "
    "for dates: dates=['{name}']; otherwise leave it out: exclude=['{name}']"
)


def _as_split(
    table: Table, roles: _Roles, class_names: tuple[str, ...], columns: NamedColumns | None
) -> Split:
    truth = roles.truth if roles.truth in table.columns else None
    return Split(
        table.texts(roles.text) if columns is None else table.features(columns, cure=_CURE),
        _as_labels(table, roles.label, class_names, marks=roles.fill),
        # A test file may lack the column of clean labels: its labels are given ones.
        truth=None if truth is None else _as_labels(table, truth, class_names, marks=roles.fill),
        ids=table.rows if roles.ids is None else np.array(table.column(roles.ids)),
    )


def load_table(path: Path, ending: str) -> Table:
    """Read all columns of a file."""
    if ending == ".parquet":
        columns = read_parquet(path)
        rows = len(next(iter(columns.values()), ()))
        table = Table(path, columns, np.arange(rows), "row")
    else:
        table = _delimited(path, ending)
    if not len(table):
        raise SourceError(f"{path}: holds no rows.")
    return table


def _delimited(path: Path, ending: str) -> Table:
    rows: list[list[str]] = []
    lines: list[int] = []
    with open_csv(path, delimiter="\t" if ending == ".tsv" else ",") as reader:
        header = next(reader, [])
        if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
            raise SourceError(
                f"{path}: the header is one cell, {header[0][:40]!r}. Are columns separated by "
                "semicolons or tabs? Save the file with commas, or tabs as .tsv."
            )
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
        raise unreadable(path, error) from error
    if len(lines) < 2:
        raise SourceError(f"{path}: holds no rows.")
    header, width = lines[0], len(lines[0])
    short = [number for number, row in enumerate(lines, start=1) if len(row) < width]
    if short and not skip_short:
        raise SourceError(f"{path}: line {short[0]} has fewer cells than the header's {width}.")
    rows = [row[:width] for row in lines[1:] if len(row) >= width]
    return dict(zip(header, zip(*rows, strict=True), strict=True)), len(short)
