"""What people decided, as files say it, before it is held against a record."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from accord.analysis.labels.decisions import Said
from accord.analysis.labels.label_studio import read_annotations
from accord.errors import SourceError

DECIDED: Final = "decided"
NAMING: Final = ("sample", "id", "given")  # columns that tell which label was decided on


def read_said(path: Path) -> list[Said]:
    """Read the decisions of a .csv file with `decided`, or of Label Studio's JSON export.

    Raises:
        SourceError: the file cannot be read, or is something else.
    """
    try:
        if path.suffix == ".csv":
            return list(read_said_csv(path))
        return list(read_annotations(load_json(path), name=str(path)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise unreadable(path, error) from error


def load_json(path: Path) -> Any:
    """Read JSON that may be damaged in any way.

    Raises:
        SourceError: the file cannot be read.
    """
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:  # as of long numbers, deep lists
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> SourceError:
    """Return what to raise of a file of decisions that cannot be read, with the cure if known."""
    cure = ". Save it as UTF-8" if isinstance(error, UnicodeDecodeError) else ""
    return SourceError(f"{path}: cannot be read: {error}{cure}")


def read_said_csv(path: Path) -> Iterator[Said]:
    """Read the rows of a .csv file in which `decided` is not empty."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, strict=True)  # else a quote left open hides all rows after it
        _check_columns(path, list(rows.fieldnames or ()))
        for row in _whole_rows(path, rows):
            decided = row[DECIDED] or ""
            if decided.strip():
                parts = {key: row.get(key) or None for key in NAMING}
                yield Said(where=f"line {rows.line_num}", decided=decided, **parts)


def _check_columns(path: Path, names: Sequence[str]) -> None:
    if DECIDED not in names:
        have = ", ".join(names) or "nothing"
        unparted = len(names) == 1 and DECIDED in have
        cure = ". Save it with commas between columns" if unparted else ""
        raise SourceError(
            f"{path}: there must be a column {DECIDED!r}, and `sample` or `id`; it has {have}{cure}"
        )
    for name in (*NAMING, DECIDED):
        if names.count(name) > 1:
            raise SourceError(f"{path}: there are {names.count(name)} columns {name!r}. Leave one.")


def _whole_rows(path: Path, rows: "csv.DictReader[str]") -> Iterator[dict[str | Any, Any]]:
    begins = rows.line_num + 1  # the line of the next row
    try:
        for row in rows:
            begins = rows.line_num + 1
            more = row.get(None) or ()  # cells that no column is left for
            if any(cell.strip() for cell in more):
                columns = len(row) - 1
                raise SourceError(
                    f"{path}: line {rows.line_num} has {columns + len(more)} cells for {columns} "
                    "columns. Text that holds a comma must be in quotation marks."
                )
            yield row
    except csv.Error as error:
        raise SourceError(
            f"{path}: the row of line {begins} cannot be read: {error}. "
            "Is a quotation mark missing?"
        ) from error
