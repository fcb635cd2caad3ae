"""Utilities for reading and writing the files of a review.

Files come as CSV, for spreadsheets, or as JSON of Label Studio. Decisions are never overwritten:
before a file is written, an existing one is parsed, and only a file of ours without decisions is
replaced. Whatever else is there, such as a queue saved with semicolons, is left alone.
"""

import csv
import io
import json
import os
import re
import shlex
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import csv_text, unreadable, write_file
from accord.analysis._audit._label_studio import (
    IMAGE,
    TEXT,
    make_task,
    read_annotations,
    read_tasks,
)
from accord.analysis._audit._result import Audit
from accord.analysis._audit._review import (
    NAMING,
    Decisions,
    RawDecision,
    check_decisions,
    names_mislead,
)
from accord.errors import ChoiceError, RecordExists, SourceError
from accord.store import SampleInfo

DECIDED: Final = "decided"


def read_raw_decisions(path: Path) -> list[RawDecision]:
    """Read unparsed decisions from a .csv file or a Label Studio export."""
    try:
        if path.suffix == ".csv":
            return list(read_decisions_csv(path))
        return list(read_annotations(load_json(path), name=str(path)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise unreadable(path, error) from error


def load_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:  # long numbers, deeply nested lists
        raise unreadable(path, error) from error


def read_decisions_csv(path: Path) -> Iterator[RawDecision]:
    """Iterate over the decided rows of a .csv file."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, strict=True)  # or an open quote would hide all later rows
        _check_columns(path, list(rows.fieldnames or ()))
        for row in _whole_rows(path, rows):
            decided = row[DECIDED] or ""
            if decided.strip():
                parts = {key: row.get(key) or None for key in NAMING}
                yield RawDecision(where=f"line {rows.line_num}", decided=decided, **parts)


def _check_columns(path: Path, names: Sequence[str]) -> None:
    if DECIDED not in names:
        have = ", ".join(names) or "nothing"
        unparted = len(names) == 1 and DECIDED in have
        fix = ". Save it with commas between columns" if unparted else ""
        raise SourceError(
            f"{path}: expected a column {DECIDED!r}, and `sample` or `id`; it has {have}{fix}"
        )
    for name in (*NAMING, DECIDED):
        if names.count(name) > 1:
            raise SourceError(f"{path}: it has {names.count(name)} columns {name!r}. Keep one.")


def _whole_rows(path: Path, rows: "csv.DictReader[str]") -> Iterator[dict[str | Any, Any]]:
    begins = rows.line_num + 1  # line of the next row
    try:
        for row in rows:
            begins = rows.line_num + 1
            more = row.get(None) or ()  # cells beyond the last column
            if any(cell.strip() for cell in more):
                columns = len(row) - 1
                raise SourceError(
                    f"{path}: line {rows.line_num} has {columns + len(more)} cells for {columns} "
                    "columns. Put text that holds a comma in quotation marks."
                )
            yield row
    except csv.Error as error:
        raise SourceError(
            f"{path}: the row of line {begins} cannot be read: {error}. "
            "Is a quotation mark missing?"
        ) from error


Header = Mapping[str, bool]  # column -> whether it is always present, in order


def check_no_decisions(path: Path, kind: str, *, use: str, header: Header | None = None) -> None:
    """Check that a file can be overwritten without losing decisions.

    A file that a spreadsheet saved with other separators or names may hold decisions, too. `kind`
    (with its article) and `use`, the command that reads the decisions, are for messages; `header`
    has the columns of a file that is no queue.
    """
    if not path.exists() or (path.is_file() and not path.stat().st_size):
        return
    if path.is_dir():
        raise RecordExists(f"{path}: a folder of that name exists. Name another file.")
    try:
        decided = _count_decided(path, header or {})
    except (OSError, SourceError, UnicodeDecodeError, csv.Error) as error:
        raise RecordExists(
            f"{path}: this file exists and is not {kind} ({error}). Name another one."
        ) from error
    if decided:
        decisions = "a decision" if decided == 1 else f"{decided} decisions"
        raise RecordExists(
            f"{path}: holds {decisions}. Name another file or, to start over, move this one away. "
            f"To use the decisions: {use}"
        )


def _count_decided(path: Path, header: Header) -> int:
    if path.suffix != ".csv":
        tasks = read_tasks(load_json(path), name=str(path))
        return sum(bool(annotations) for _, _, annotations in tasks)
    with path.open(encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader(file, strict=True), [])
    least = {name for name, always in header.items() if always}
    if header and least <= set(names) and names == [name for name in header if name in names]:
        return 0
    return sum(1 for _ in read_decisions_csv(path))


PathLike = str | os.PathLike[str]
Columns = dict[str, list[Any]]
ENDINGS: Final = {  # kind of file -> start of the error message, allowed endings
    "audit": ("an audit is written as", (".csv",)),
    "probabilities": ("probabilities are written as", (".npy",)),
    "queue": ("a queue is written as", (".csv", ".json")),
    "decisions": ("decisions are read from", (".csv", ".json")),
    "labels": ("labels are written as", (".npz", ".npy", ".csv")),
}
DECISIONS: Final = ENDINGS["decisions"][1]
AUDIT_HEADER: Final[Header] = {
    "sample": True,
    "id": False,
    "given": True,
    "given_name": False,
    "proposed": True,
    "proposed_name": False,
    "suspicion": True,
    "log_odds": False,
    "agreement_given": True,
    "agreement_proposed": True,
    "flagged": True,
}
OVERWRITTEN: Final[dict[str, tuple[str, Header]]] = {  # kind of file -> name, header
    "audit": ("an audit", AUDIT_HEADER),
    "queue": ("a queue", {}),
    "labels": ("a file of labels", {"labels": True}),
}
PLACES: Final = re.compile(r"\{(sample|id)\}")


def check_ending(path: PathLike, kind: str) -> Path:
    message, endings = ENDINGS[kind]
    target = Path(path)
    if target.suffix not in endings:
        raise ChoiceError(f"{target}: {message} {' or '.join(endings)}; got {target.suffix!r}")
    return target


def check_link(link: str) -> None:
    """Validate the placeholders of a link template."""
    if re.search(r"[{}]", PLACES.sub("", link)):
        raise ChoiceError(
            f"a link may hold {{id}} and {{sample}}, as in https://host/{{id}}.png; got {link!r}"
        )


def check_writable(path: PathLike, kind: str) -> Path:
    target = check_ending(path, kind)
    if target.suffix in DECISIONS:
        name, header = OVERWRITTEN[kind]
        use = f"accord audit RECORD --decisions {shlex.quote(str(target))}"
        check_no_decisions(target, name, header=header, use=use)
    return target


def check_files(**files: Path | None) -> None:
    """Validate the input and output files of a review."""
    named = {kind: path for kind, path in files.items() if path is not None}
    for kind, path in named.items():
        check_ending(path, kind)
    if len({path.resolve() for path in named.values()}) < len(named):
        raise ChoiceError("two options name the same file; name a different file for each")
    for kind in named.keys() & OVERWRITTEN.keys():
        check_writable(named[kind], kind)


def write_audit(audit: Audit, path: PathLike, *, sample_info: SampleInfo) -> None:
    """Write the result of an audit to a .csv file.

    Raises:
        RecordExists: the file exists and holds decisions, or is not an audit.
    """
    target = check_writable(path, "audit")
    write_file(target, _as_csv(_columns(audit, audit.ranking, sample_info)))


def write_queue(
    audit: Audit,
    queue: NDArray[np.intp],
    path: PathLike,
    *,
    sample_info: SampleInfo,
    link: str | None = None,
) -> None:
    """Write samples for review to a file.

    A .csv file has an empty column `decided` for the class, by name or number. If a class has the
    number of another class as its name, the file names classes only. A .json file is for import
    into Label Studio; see `labelling_config`.

    Args:
        audit: what `audit` found.
        queue: the samples, from `review_queue`.
        path: ends in .csv or .json.
        sample_info: of the audited record.
        link: URL of a sample, with the placeholders `{id}` and `{sample}`: the image in Label
            Studio, a column in .csv.

    Raises:
        ChoiceError: the link holds other braces, or the ending does not fit.
        RecordExists: the file exists and holds decisions, or is not a queue.
    """
    target = check_writable(path, "queue")
    columns, links = _columns(audit, queue, sample_info), None
    if link is not None:
        check_link(link)
        links = [_fill(link, {"id": row["sample"], **row}) for row in _rows(columns)]
    if target.suffix == ".json":
        tasks = list(_tasks(columns, links, sample_info))
        write_file(target, json.dumps(tasks, indent=1, ensure_ascii=False).encode())
    else:
        seen = {} if links is None else {"link": links}
        shown = columns
        if names_mislead(sample_info):
            shown = {key: cells for key, cells in columns.items() if not key.endswith("_name")}
            shown |= {name: columns[f"{name}_name"] for name in ("given", "proposed")}
        write_file(target, _as_csv({**shown, **seen, DECIDED: [""] * len(queue)}))


def read_decisions(path: PathLike, *, sample_info: SampleInfo) -> Decisions:
    """Read review decisions from a .csv file or a Label Studio export.

    A row of a .csv file identifies its sample by `sample`, the position, by `id`, or by both. Rows
    without a decision are skipped. Given labels in the file must match the record.

    Raises:
        SourceError: the file is not readable, holds no decision or an unknown class, or has
            two different decisions for a sample.
        RecordMismatch: the file belongs to other samples.
    """
    target = check_ending(path, "decisions")
    return check_decisions(read_raw_decisions(target), sample_info, name=str(target))


def write_labels(labels: NDArray[np.intp], path: PathLike) -> None:
    """Write labels to a file.

    A spec reads the file with `noise = { kind = "file", path = … }`.

    Raises:
        RecordExists: the file exists and holds decisions, or is a .csv file without labels.
    """
    target = check_writable(path, "labels")
    buffer = io.BytesIO()
    if target.suffix == ".csv":
        buffer.write(_as_csv({"labels": labels.tolist()}))
    elif target.suffix == ".npy":
        np.save(buffer, labels, allow_pickle=False)
    else:
        np.savez_compressed(buffer, allow_pickle=False, labels=labels)
    write_file(target, buffer.getvalue())


def write_probabilities(table: NDArray[np.float64], path: PathLike) -> None:
    """Write class probabilities to a .npy file."""
    target, buffer = check_ending(path, "probabilities"), io.BytesIO()
    np.save(buffer, table, allow_pickle=False)
    write_file(target, buffer.getvalue())


def _columns(audit: Audit, samples: NDArray[np.intp], sample_info: SampleInfo) -> Columns:
    columns: Columns = {"sample": samples.tolist()}
    if sample_info.ids is not None:
        columns["id"] = sample_info.ids[samples].tolist()
    for name in ("given", "proposed"):
        columns[name] = labels = getattr(audit, name)[samples].tolist()
        if sample_info.class_names is not None:
            columns[f"{name}_name"] = [sample_info.names[label] for label in labels]
    for name in ("suspicion", "log_odds", "agreement_given", "agreement_proposed"):
        columns[name] = getattr(audit, name)[samples].round(6).tolist()
    columns["flagged"] = audit.flagged[samples].astype(int).tolist()
    return columns


def _rows(columns: Columns) -> Iterator[dict[str, Any]]:
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _fill(link: str, row: dict[str, Any]) -> str:
    return PLACES.sub(lambda place: urllib.parse.quote(str(row[place[1]]), safe="/"), link)


def _tasks(
    columns: Columns, links: list[str] | None, sample_info: SampleInfo
) -> Iterator[dict[str, Any]]:
    names = sample_info.names
    shown = TEXT if links is None else IMAGE
    for number, row in enumerate(_rows(columns)):
        seen = f"sample {row.get('id', row['sample'])}" if links is None else links[number]
        fields: dict[str, Any] = {key: row[key] for key in ("sample", "id") if key in row}
        fields |= {shown: seen, "given": names[row["given"]], "suspicion": row["suspicion"]}
        yield make_task(
            fields, proposed=names[row["proposed"]], score=row["suspicion"], shown=shown
        )


def _as_csv(columns: Columns) -> bytes:
    return csv_text(columns, zip(*columns.values(), strict=True)).encode()
