"""A check before files are written: what people decided must not be lost."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from accord.analysis.labels.label_studio import read_tasks
from accord.analysis.labels.said_files import load_json, read_said_csv
from accord.errors import RecordExists, SourceError

Header = Mapping[str, bool]  # the columns in order -> whether each is always there


def check_no_decisions(path: Path, what: str, *, use: str, header: Header | None = None) -> None:
    """Refuse to write over decisions, or over what is neither a queue nor what is written.

    A file that a spreadsheet saved with other separators or names may hold decisions too.

    Args:
        path: a .csv or .json file to be written.
        what: what is written, in messages.
        use: the command that reads decisions, in messages.
        header: the columns of what is written, if that is something else than a queue.

    Raises:
        RecordExists: the file is there and must not be written over.
    """
    if not path.exists() or (path.is_file() and not path.stat().st_size):
        return
    if path.is_dir():
        raise RecordExists(f"{path}: there is a folder of that name. Name another file.")
    try:
        decided = _count_decided(path, header or {})
    except (OSError, SourceError, UnicodeDecodeError, csv.Error) as error:
        raise RecordExists(
            f"{path}: there is a file that is no {what} ({error}). Name another one."
        ) from error
    if decided:
        decisions = "a decision" if decided == 1 else f"{decided} decisions"
        raise RecordExists(
            f"{path}: holds {decisions} of people. Name another file, or, to begin anew, move "
            f"this one away. To use what was decided: {use}"
        )


def _count_decided(path: Path, header: Header) -> int:
    if path.suffix != ".csv":
        tasks = read_tasks(load_json(path), name=str(path))
        return sum(bool(annotations) for _, _, annotations in tasks)
    if header and _fits(_names(path), header):
        return 0
    return sum(1 for _ in read_said_csv(path))


def _names(path: Path) -> Sequence[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file, strict=True), [])


def _fits(names: Sequence[str], header: Header) -> bool:
    least = {name for name, always in header.items() if always}
    return list(names) == [name for name in header if name in names] and least <= set(names)
