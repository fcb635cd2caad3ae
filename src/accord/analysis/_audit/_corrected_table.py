"""Write a table back with its labels corrected."""

import csv
import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import correct_parquet, csv_text, read_parquet, unreadable, write_file
from accord.errors import ChoiceError, RecordExists, RecordMismatch, SourceError
from accord.store import SampleInfo

DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}
TABLES: Final = (*DELIMITERS, ".parquet")
_BREAK: Final = re.compile(r"\r\n|\r|\n")
_BOM: Final = "\ufeff"


@dataclass(frozen=True)
class CorrectedTable:
    """Numbers of rows, and the name of the column of labels before the correction."""

    rows: int
    samples: int  # rows of the record
    changed: int
    given: str  # the column


@dataclass(frozen=True)
class _Row:
    line: int
    cells: list[tuple[int, int]]  # spans, with quotation marks
    end: int


def write_corrected_table(
    labels: NDArray[np.intp],
    path: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str],
    label: str,
    sample_info: SampleInfo,
    ids: str | None = None,
    lines: bool = False,
) -> CorrectedTable:
    """Write the table that a record was made from, with the label column corrected.

    Labels before the correction are kept in a further column, `<label>_given`. All other cells of
    a .csv or .tsv file stay as they are, byte for byte.

    Args:
        labels: of the samples of the record, from `corrected_labels`.
        path: the file to write, with the ending of `source`.
        source: the table.
        label: its column of labels, which holds the given labels of the record.
        sample_info: of the audited record.
        ids: the column that holds the ids of the record. By default ids are the lines of a text
            file or the rows of a Parquet file; otherwise the column that holds them is searched.
        lines: whether ids are known to be lines or rows.

    Raises:
        ChoiceError: the ending differs from that of the source, or is not that of a table.
        SourceError: the source cannot be read, or has no such column.
        RecordMismatch: the source does not hold the samples and given labels of the record.
        RecordExists: `path` is the source, or another file that this function did not write.
    """
    target, table = Path(path), Path(source)
    if target.suffix.lower() not in TABLES or target.suffix.lower() != table.suffix.lower():
        raise ChoiceError(
            f"{target}: a corrected table has the ending of its source; {table} ends in "
            f"{table.suffix!r}"
        )
    if target.exists() and target.samefile(table):
        raise RecordExists(f"{target}: is the source itself. Name another file.")
    opened = _Parquet(table) if table.suffix.lower() == ".parquet" else _Text(table)
    if label not in opened.names:
        raise SourceError(f"{table}: no column {label!r}; it has {', '.join(opened.names)}.")
    given = _new_name(f"{label}_given", opened.names)
    _check_target(target, [*opened.names, given])
    before = _given(sample_info, str(table))
    rows = _match(opened, label, sample_info, ids, lines)
    names = sample_info.names
    changed = {
        int(row): names[now]
        for row, was, now in zip(rows, before, labels.tolist(), strict=True)
        if was != now
    }
    opened.write(target, label, changed, given)
    return CorrectedTable(opened.rows, len(rows), len(changed), given)


def write_corrected_list(
    labels: NDArray[np.intp], path: str | os.PathLike[str], *, sample_info: SampleInfo
) -> int:
    """Write the given and the corrected label of each sample by id, such as an image's path.

    Returns:
        The number of changed labels.

    Raises:
        RecordExists: the file exists and is no such list.
    """
    target, header = Path(path), ["path", "given", "corrected"]
    _check_target(target, header)
    before = _given(sample_info, str(target))
    ids = range(len(labels)) if sample_info.ids is None else sample_info.ids.tolist()
    names = sample_info.names
    columns = ids, *([names[one] for one in some.tolist()] for some in (before, labels))
    write_file(target, csv_text(header, zip(*columns, strict=True)).encode())
    return int((before != labels).sum())


class _Text:
    """A table in a text file, with the places of its cells."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise unreadable(path, error) from error
        self.begin = len(_BOM) if text.startswith(_BOM) else 0
        self.text, self.delimiter = text, DELIMITERS[path.suffix.lower()]
        found = [row for row in self._parse() if len(row.cells) > 1 or row.cells[0][0] < row.end]
        if not found:
            raise SourceError(f"{path}: holds no rows.")
        self.header, *self.places = found
        for row in self.places:
            if len(row.cells) != len(self.header.cells):
                raise SourceError(
                    f"{path}: line {row.line} has {len(row.cells)} cells, the header "
                    f"{len(self.header.cells)}."
                )
        self.names = [self._value(span) for span in self.header.cells]
        self.rows = len(self.places)
        self.numbers = [row.line for row in self.places]

    def column(self, name: str) -> list[str]:
        at = self.names.index(name)
        return [self._value(row.cells[at]) for row in self.places]

    def write(self, path: Path, label: str, changed: dict[int, str], given: str) -> None:
        """Write the text with some labels changed and all given ones in a further column."""
        at, done = self.names.index(label), 0
        parts: list[str] = []
        for number, row in enumerate([self.header, *self.places], start=-1):
            begin, end = row.cells[at]
            kept = self._quote(given) if row is self.header else self.text[begin:end]
            if number in changed:
                parts += [self.text[done:begin], self._quote(changed[number])]
                done = end
            parts += [self.text[done : row.end], self.delimiter, kept]
            done = row.end
        parts.append(self.text[done:])
        write_file(path, "".join(parts).encode())

    def _parse(self) -> Iterator[_Row]:
        cut = re.escape(self.delimiter)
        cell = re.compile(rf'(?:"(?:[^"]|"")*"|[^"{cut}\r\n][^{cut}\r\n]*|)(?={cut}|\r|\n|\Z)')
        place, line = self.begin, 1
        while place < len(self.text):
            begin, cells = place, []
            while True:
                found = cell.match(self.text, place)
                if found is None:
                    raise SourceError(
                        f"{self.path}: line {line} cannot be read: is a quotation mark missing?"
                    )
                cells.append(found.span())
                place = found.end()
                if self.text[place : place + 1] != self.delimiter:
                    break
                place += 1
            yield _Row(line, cells, place)
            ended = _BREAK.match(self.text, place)
            place = place if ended is None else ended.end()
            line += len(_BREAK.findall(self.text, begin, place))

    def _value(self, span: tuple[int, int]) -> str:
        cell = self.text[slice(*span)]
        return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell

    def _quote(self, value: str) -> str:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=self.delimiter, lineterminator="").writerow([value])
        return text.getvalue()


class _Parquet:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns = read_parquet(path)
        self.names = list(self.columns)
        self.rows = len(next(iter(self.columns.values()), ()))
        self.numbers = list(range(self.rows))

    def column(self, name: str) -> list[str]:
        return [str(value) for value in self.columns[name]]

    def write(self, path: Path, label: str, changed: dict[int, str], given: str) -> None:
        correct_parquet(self.path, path, column=label, changed=changed, kept=given)


def _match(
    table: _Text | _Parquet, label: str, sample_info: SampleInfo, ids: str | None, lines: bool
) -> NDArray[np.intp]:
    wanted = range(sample_info.samples) if sample_info.ids is None else sample_info.ids.tolist()
    names = sample_info.names
    expected = [names[one] for one in _given(sample_info, str(table.path)).tolist()]
    labels, problem = table.column(label), "no column holds the ids of the record"
    for where, keys in _keys(table, ids, lines):
        rows = {str(key): row for row, key in enumerate(keys)}
        found = [rows.get(str(one)) for one in wanted]
        if len(rows) < len(keys) or None in found:
            continue
        differs = [n for n, row in enumerate(found) if labels[row or 0] != expected[n]]
        if not differs:
            return np.array(found, np.intp)
        first = differs[0]
        problem = (
            f"{len(differs)} of {len(found)} labels differ from the record's, the first at "
            f"{where} {wanted[first]}: {labels[found[first] or 0]!r} in the file, "
            f"{expected[first]!r} in the record"
        )
    raise RecordMismatch(
        f"{table.path}: is not the table of this record: {problem}. Was the file changed after "
        "training, or does the spec add noise? Name the file with --source and --label."
    )


def _given(sample_info: SampleInfo, name: str) -> NDArray[Any]:
    if sample_info.given is None:
        raise RecordMismatch(f"{name}: the record has no given labels to correct.")
    return np.asarray(sample_info.given)


def _keys(
    table: _Text | _Parquet, ids: str | None, lines: bool
) -> Iterator[tuple[str, Sequence[Any]]]:
    if ids is not None:
        if ids not in table.names:
            raise SourceError(f"{table.path}: no column {ids!r}; it has {', '.join(table.names)}.")
        yield ids, table.column(ids)
        return
    yield ("line" if isinstance(table, _Text) else "row"), table.numbers
    if not lines:
        yield "row", range(table.rows)
        yield from ((name, table.column(name)) for name in table.names)


def _new_name(name: str, names: Sequence[str]) -> str:
    numbered = (f"{name}{number}" for number in range(2, len(names) + 3))
    return next(one for one in (name, *numbered) if one not in names)


def _check_target(path: Path, names: list[str]) -> None:
    """Check that a file can be overwritten: only a table with the same columns."""
    if not path.exists():
        return
    try:
        there = _Parquet(path) if path.suffix.lower() == ".parquet" else _Text(path)
    except SourceError as error:
        raise RecordExists(
            f"{path}: exists and is no such table ({error}). Name another."
        ) from error
    if there.names != names:
        raise RecordExists(
            f"{path}: exists, with other columns than the corrected table. Name another file."
        )
