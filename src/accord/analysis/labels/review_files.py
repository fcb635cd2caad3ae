"""Files of the review: audits and queues to write, decisions to read, labels to train on."""

import io
import json
import os
import re
import shlex
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis.labels.audit import Audit
from accord.analysis.labels.decisions import check_decisions, names_mislead
from accord.analysis.labels.label_studio import IMAGE, TEXT, make_task
from accord.analysis.labels.overwriting import Header, check_no_decisions
from accord.analysis.labels.review import Decisions
from accord.analysis.labels.said_files import DECIDED, read_said
from accord.errors import ChoiceError
from accord.store import Facts
from accord.store.csv_text import csv_text
from accord.store.places import Folder

PathLike = str | os.PathLike[str]
Columns = dict[str, list[Any]]
ENDINGS: Final = {  # what is said of a file that ends otherwise, and the endings that it may have
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
    "agreement_given": True,
    "agreement_proposed": True,
    "flagged": True,
}
OVERWRITTEN: Final[dict[str, tuple[str, Header]]] = {  # what may be written over by its like
    "audit": ("audit", AUDIT_HEADER),
    "queue": ("queue", {}),
    "labels": ("file of labels", {"labels": True}),
}
PLACES: Final = re.compile(r"\{(sample|id)\}")


def check_ending(path: PathLike, kind: str) -> Path:
    """Return the path of a file of one of these kinds; refuse an ending that means nothing.

    >>> check_ending("queue.json", "queue").suffix
    '.json'
    """
    what, endings = ENDINGS[kind]
    target = Path(path)
    if target.suffix not in endings:
        raise ChoiceError(f"{target}: {what} {' or '.join(endings)}; got {target.suffix!r}")
    return target


def check_link(link: str) -> None:
    """Refuse a link in which anything but `{id}` and `{sample}` would be filled in."""
    if re.search(r"[{}]", PLACES.sub("", link)):
        raise ChoiceError(
            f"a link may hold {{id}} and {{sample}}, as in https://host/{{id}}.png; got {link!r}"
        )


def check_writable(path: PathLike, kind: str) -> Path:
    """Return the path of a file to write; refuse to write over people's decisions.

    Raises:
        ChoiceError: the file ends in something else than its kind does.
        RecordExists: the file is there and holds decisions, or something else than its kind.
    """
    target = check_ending(path, kind)
    if target.suffix in DECISIONS:
        what, header = OVERWRITTEN[kind]
        use = f"accord audit RECORD --decisions {shlex.quote(str(target))}"
        check_no_decisions(target, what, header=header, use=use)
    return target


def write_audit(audit: Audit, path: PathLike, *, facts: Facts) -> None:
    """Write all samples to a .csv file, the most suspicious first, whole or not at all.

    Raises:
        RecordExists: the file is there and holds decisions, or is no audit.
    """
    _put(check_writable(path, "audit"), _as_csv(_columns(audit, audit.ranking, facts)))


def write_queue(
    audit: Audit,
    queue: NDArray[np.intp],
    path: PathLike,
    *,
    facts: Facts,
    link: str | None = None,
) -> None:
    """Write samples for people to decide on, the first one first.

    A .csv file has an empty column `decided` for the class, by name or number. Where a class is
    named as another one is numbered, all classes in it go by name. A .json file is imported
    into Label Studio; see `labelling_config`.

    Args:
        audit: what `audit` found.
        queue: the samples, as `review_queue` returns them.
        path: ends in .csv or .json.
        facts: of the audited rows.
        link: where to see a sample, with `{id}` and `{sample}` to be filled in: an image for
            Label Studio, a column for .csv.

    Raises:
        ChoiceError: the link holds other braces, or the file ends in something else.
        RecordExists: the file is there and holds decisions, or is no queue.
    """
    target = check_writable(path, "queue")
    columns = _columns(audit, queue, facts)
    links = None if link is None else _links(link, columns)
    if target.suffix == ".json":
        tasks = list(_tasks(columns, links, facts))
        _put(target, json.dumps(tasks, indent=1, ensure_ascii=False).encode())
    else:
        seen = {} if links is None else {"link": links}
        shown = _by_name(columns) if names_mislead(facts) else columns
        _put(target, _as_csv({**shown, **seen, DECIDED: [""] * len(queue)}))


def read_decisions(path: PathLike, *, facts: Facts) -> Decisions:
    """Read what people decided: a .csv file with `decided`, or Label Studio's JSON export.

    A row of a .csv file names its sample by `sample`, its position, or by `id`, or both. Rows
    without a decision are left out. Where it says what label was given, that must be the
    record's.

    Raises:
        SourceError: the file is not readable, decides nothing, names an unknown class, or
            decides a sample twice, differently.
        RecordMismatch: it is about other samples.
    """
    target = check_ending(path, "decisions")
    return check_decisions(read_said(target), facts, name=str(target))


def write_labels(labels: NDArray[np.intp], path: PathLike) -> None:
    """Write one label per sample, as a spec's `noise = { kind = "file", path = … }` reads it.

    Raises:
        RecordExists: the file is there and holds decisions, or a .csv file holds no labels.
    """
    target = check_writable(path, "labels")
    _put(target, _LABEL_FILES[target.suffix](labels))


def write_probabilities(table: NDArray[np.float64], path: PathLike) -> None:
    """Write a (sample, class) table to a .npy file."""
    _put(check_ending(path, "probabilities"), _as_npy(table))


def _put(target: Path, data: bytes) -> None:
    Folder(target.absolute().parent).put(target.name, data)


def _columns(audit: Audit, samples: NDArray[np.intp], facts: Facts) -> Columns:
    columns: Columns = {"sample": samples.tolist()}
    if facts.ids is not None:
        columns["id"] = facts.ids[samples].tolist()
    for what in ("given", "proposed"):
        labels = getattr(audit, what)[samples].tolist()
        columns[what] = labels
        if facts.class_names is not None:
            columns[f"{what}_name"] = [facts.class_names[label] for label in labels]
    for what in ("suspicion", "agreement_given", "agreement_proposed"):
        columns[what] = getattr(audit, what)[samples].round(6).tolist()
    columns["flagged"] = audit.flagged[samples].astype(int).tolist()
    return columns


def _rows(columns: Columns) -> Iterator[dict[str, Any]]:
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _by_name(columns: Columns) -> Columns:
    """Say classes by name alone."""
    named = {what: columns[f"{what}_name"] for what in ("given", "proposed")}
    plain = {key: values for key, values in columns.items() if not key.endswith("_name")}
    return {**plain, **named}


def _links(link: str, columns: Columns) -> list[str]:
    check_link(link)
    return [_fill(link, {"id": row["sample"], **row}) for row in _rows(columns)]


def _fill(link: str, row: dict[str, Any]) -> str:
    return PLACES.sub(lambda place: urllib.parse.quote(str(row[place[1]]), safe="/"), link)


def _tasks(columns: Columns, links: list[str] | None, facts: Facts) -> Iterator[dict[str, Any]]:
    names = facts.class_names or tuple(str(number) for number in range(facts.classes))
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


def _as_npy(values: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def _as_npz(labels: NDArray[np.intp]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, labels=labels)
    return buffer.getvalue()


_LABEL_FILES: dict[str, Callable[[NDArray[np.intp]], bytes]] = {
    ".npz": _as_npz,
    ".npy": _as_npy,
    ".csv": lambda labels: _as_csv({"labels": labels.tolist()}),
}
