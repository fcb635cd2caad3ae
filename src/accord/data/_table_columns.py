"""Columns of a table and their encoding as numbers.

A column of numbers is read as it is, and `one_hot` columns have one feature per value. With missing
values, dates or texts, a column has an `Encoding`, learnt on the training rows and stored with
the run, so that new rows are encoded in the same way.
"""

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord._files import Columns
from accord.data._dataset import Encoding, EncodingKind, Features, NamedColumns, TextPairs, Texts
from accord.errors import SourceError, counted

Column: TypeAlias = Sequence[Any] | NDArray[Any]  # one value per row

MISSING: Final = ("", "NA", "N/A", "NaN", "null", "?")  # in upper or lower case
WORDS_WIDTH: Final = 1024  # features of a column of texts: fewer merge words, more take memory
_ISO: Final = "ISO 8601"
_DAYS: Final = ("%d.%m.%Y", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%m/%d/%y", "%d/%m/%y")
DATE_FORMATS: Final = (
    _ISO,
    *(day + time for time in ("", " %H:%M", " %H:%M:%S") for day in _DAYS),
    "%d %b %Y",
    "%b %d, %Y",
)
_MISSING: Final = frozenset(map(str.lower, MISSING))
_WORD: Final = re.compile(r"[^\W_]+")


def is_missing(value: Any) -> bool:
    """Check whether a cell is missing.

    >>> [is_missing(value) for value in (None, float("nan"), " na ", 0, "nap")]
    [True, True, True, False, False]
    """
    return value is None or str(value).strip().lower() in _MISSING


@dataclass(frozen=True)
class Table:
    """Container for the columns of a file."""

    path: Path
    columns: Columns
    rows: NDArray[np.intp]  # the line where each begins, from 1, or its position from 0
    unit: str = "line"  # what `rows` counts

    def __len__(self) -> int:
        return len(self.rows)

    def choose(self, rows: NDArray[np.intp]) -> "Table":
        positions = rows.tolist()
        columns: Columns = {
            name: column[rows] if isinstance(column, np.ndarray) else [column[p] for p in positions]
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns, rows=self.rows[rows])

    def where(self, row: int) -> str:
        """Return the name of a row for messages."""
        return f"{self.unit} {self.rows[row]}"

    def column(self, name: str) -> Column:
        if name not in self.columns:
            raise SourceError(f"{self.path}: no column {name!r}; it has {', '.join(self.columns)}.")
        return self.columns[name]

    def missing(self, name: str) -> NDArray[np.bool_]:
        """Find the rows that have no value in a column."""
        column = self.column(name)
        if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
            return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(self), bool)
        return np.array([is_missing(value) for value in column], bool)

    def texts(self, names: Sequence[str]) -> Texts | TextPairs:
        """Return a column of texts, or pairs from two columns."""
        cells = [["" if value is None else str(value) for value in self.column(n)] for n in names]
        return tuple(cells[0]) if len(cells) == 1 else tuple(zip(*cells, strict=True))

    def labels(self, name: str, *, marks: bool = False) -> list[str]:
        """Return a column of labels as strings.

        With `marks`, cells such as NA and ? are missing, and not only empty ones.
        """
        # NaN, which is not equal to itself, is how some writers store a missing value.
        labels = [
            "" if value is None or value != value or (marks and is_missing(value)) else str(value)
            for value in self.column(name)
        ]
        if "" in labels:
            row = labels.index("")
            cell = self.column(name)[row]
            shown = f" (it holds {cell!r})" if marks and isinstance(cell, str) and cell else ""
            raise SourceError(
                f"{self.path}: {self.where(row)} has no {name!r}{shown}. Fill the cell, or leave "
                'out all rows without a label: unlabelled = "drop" (--drop-unlabelled)'
            )
        return labels

    def features(self, columns: NamedColumns, *, cure: str = "") -> Features:
        """Return columns encoded as numbers, an array (sample, feature).

        `cure` is a hint for a cell that is not a number, with `{name}` for the column.
        """
        return np.concatenate([_encode(self, *column, cure) for column in columns], axis=1)

    def notes(self, columns: NamedColumns) -> tuple[str, ...]:
        """Count the cells that the training rows do not prepare for."""
        return tuple(note for column in columns for note in _notes(self, *column))


def learn_encoding(
    table: Table, name: str, kind: EncodingKind, *, fill: bool, cure: str = ""
) -> Encoding:
    """Learn the encoding of a column from the training rows.

    With `fill`, missing values are replaced by the median or the most frequent one, and marked in
    a further feature if training rows have any. Otherwise they are refused.
    """
    missing = table.missing(name)
    known = table.choose(np.flatnonzero(~missing))
    if kind == "words":
        rows = np.count_nonzero(_hashed(_strings(known, name)), axis=0)
        weights = np.log((1 + len(known)) / (1 + rows)) + 1
        return Encoding(kind, weights=tuple(weights.round(4).tolist()), fill="")
    values: tuple[str, ...] = ()
    middle: float | str = 0.0
    if kind == "one-hot":
        counts = Counter(_strings(known, name))
        values = tuple(sorted(counts))
        middle = max(values, key=counts.__getitem__, default="")
    else:
        if kind == "date":
            values = (_need_date_format(known, name),)
        numbers = np.asarray(_read_values(known, name, Encoding(kind, values), cure), np.float64)
        middle = float(np.median(numbers)) if len(numbers) else 0.0
    return Encoding(
        kind, values, fill=middle if fill else None, marked=fill and bool(missing.any())
    )


def shared_spread(columns: NamedColumns, spread: NDArray[np.float32]) -> NDArray[np.float32]:
    """Give all features of a column of texts the same scale.

    A rare word would otherwise weigh as much as many frequent ones: measured on questions of six
    classes with a fifth of the labels wrong, networks predict 69 instead of 77 % right.
    """
    spread, begin = spread.copy(), 0
    for _, how in columns:
        width = how.width if isinstance(how, Encoding) else len(how or (None,))
        if isinstance(how, Encoding) and how.kind == "words":
            span = slice(begin, begin + width)
            spread[span] = np.sqrt(np.mean(spread[span] ** 2))
        begin += width
    return spread


def find_date_format(cells: Column) -> str | None:
    """Find the first of `DATE_FORMATS` that all cells have."""
    texts = [str(cell).strip() for cell in cells]
    return next((one for one in DATE_FORMATS if texts and _parse_dates(texts, one)), None)


def is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def _encode(table: Table, name: str, how: tuple[str, ...] | Encoding | None, cure: str) -> Features:
    if how is None:
        return _numbers(table, name, cure)[:, None]
    if not isinstance(how, Encoding):
        return _one_hot(table, name, how)
    missing = table.missing(name)
    if how.fill is None and missing.any():
        where = f"{table.path}: column {name!r}, {table.where(int(missing.argmax()))}"
        raise SourceError(f'{where} is empty. Fill such cells, or set missing = "fill".')
    values = np.full(len(table), how.fill, object)
    values[~missing] = _read_values(table.choose(np.flatnonzero(~missing)), name, how, cure)
    features = _to_features(values, how)
    return np.column_stack([features, missing]).astype(np.float32) if how.marked else features


def _read_values(
    table: Table, name: str, how: Encoding, cure: str
) -> list[str] | NDArray[np.float64]:
    if how.kind == "number":
        return _numbers(table, name, cure).astype(np.float64)
    texts = _strings(table, name)
    if how.kind != "date":
        return texts
    times = _parse_dates(texts, how.values[0])
    if times is None:
        wrong = next(row for row, one in enumerate(texts) if not _parse_dates([one], how.values[0]))
        raise SourceError(
            f"{table.path}: column {name!r}, {table.where(wrong)} is not a date as in the training "
            f"rows ({how.values[0]}): {texts[wrong][:40]!r}."
        )
    return np.array(times, "M8[s]").astype(np.int64) / 86400


def _to_features(values: NDArray[Any], how: Encoding) -> Features:
    if how.kind == "number":
        return values.astype(np.float32)[:, None]
    if how.kind == "one-hot":
        return np.asarray(values[:, None] == np.array(how.values, object), np.float32)
    if how.kind == "words":
        weighted = _hashed(values.tolist()) * np.array(how.weights, np.float32)
        lengths = np.linalg.norm(weighted, axis=1, keepdims=True)
        return np.asarray(weighted / np.where(lengths > 0, lengths, 1), np.float32)
    days = values.astype(np.float64)
    dates = np.floor(days).astype("M8[D]")
    of_year = (dates - dates.astype("M8[Y]")).astype(np.int64)
    weekday = (dates.astype(np.int64) + 3) % 7  # 1970 began on a Thursday
    return np.column_stack([days, weekday, of_year, days % 1 * 24]).astype(np.float32)


def _hashed(texts: Sequence[str]) -> Features:
    """Count the words of each text in columns chosen by their hashes, with signs."""
    counts = np.zeros((len(texts), WORDS_WIDTH), np.float32)
    for row, text in enumerate(texts):
        for word, count in Counter(_WORD.findall(text.lower())).items():
            hashed = zlib.crc32(word.encode())
            sign = 1 if hashed >> 31 else -1  # words that share a column cancel on average
            counts[row, hashed % WORDS_WIDTH] += sign * (1 + np.log(count))
    return counts


def _strings(table: Table, name: str) -> list[str]:
    return [str(value).strip() for value in table.column(name)]


def _parse_dates(texts: Sequence[str], form: str) -> list[datetime] | None:
    try:
        if form != _ISO:
            return [datetime.strptime(text, form) for text in texts]
        dates = [datetime.fromisoformat(text) for text in texts]
    except ValueError:
        return None
    return [one.astimezone(UTC).replace(tzinfo=None) if one.tzinfo else one for one in dates]


def _need_date_format(table: Table, name: str) -> str:
    texts = _strings(table, name)
    found = find_date_format(texts)
    if found is None and texts:
        wrong = next((row for row, one in enumerate(texts) if not find_date_format([one])), 0)
        raise SourceError(
            f"{table.path}: column {name!r}, {table.where(wrong)}: {texts[wrong][:40]!r} is not a "
            "date, or not one of the same format as the others. Write dates as 2024-01-31."
        )
    return found or _ISO


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
                raise SourceError(
                    f'{where} is empty. Fill such cells, or set missing = "fill".'
                ) from None
            raise SourceError(
                f"{where} is not a number: {str(value)[:40]!r}.{cure.format(name=name)}"
            ) from None
    return numbers


def _one_hot(table: Table, name: str, values: tuple[str, ...]) -> Features:
    cells = np.array([str(value) for value in table.column(name)], str)
    if unknown := sorted(set(cells.tolist()) - set(values)):
        more = ", …" if len(values) > 8 else ""
        raise SourceError(
            f"{table.path}: column {name!r} holds {unknown[0]!r}, a value that is not in the "
            f"training data: {', '.join(values[:8])}{more}."
        )
    return np.asarray(cells[:, None] == np.array(values, str), np.float32)


def _notes(table: Table, name: str, how: tuple[str, ...] | Encoding | None) -> Iterator[str]:
    if not isinstance(how, Encoding) or how.kind == "words":
        return
    missing = table.missing(name)
    if missing.any() and not how.marked:
        yield (
            f"column {name!r}: {counted(int(missing.sum()), 'missing cell')}, where the training "
            f"rows have none, filled with {_fill_text(how)}"
        )
    if how.kind == "one-hot":
        known = _strings(table.choose(np.flatnonzero(~missing)), name)
        unseen = [one for one in known if one not in how.values]
        if unseen:
            names = sorted(set(unseen))
            more = ", …" if len(names) > 3 else ""
            yield (
                f"column {name!r}: {counted(len(unseen), 'cell')} with a value that no training "
                f"row has, encoded as none of the known ones: {', '.join(names[:3])}{more}"
            )


def _fill_text(how: Encoding) -> str:
    if isinstance(how.fill, str):
        return f"the most frequent value, {how.fill}"
    if how.kind == "date":
        return f"the middle date, {np.datetime64(round(how.fill or 0), 'D')}"
    return f"the median, {how.fill:g}"
