"""Files of the review: audits and queues to write, decisions to read, labels to train on."""

import csv
import io
import json
import os
import re
import shlex
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from accord._files import csv_text, write_file
from accord.analysis._audit._audit import Audit
from accord.analysis._audit._review import Decisions, Said, check_decisions, names_mislead
from accord.errors import ChoiceError, RecordExists, SourceError
from accord.store import SampleInfo

CHOICE: Final = "choice"  # the name of the tag that people choose with
IMAGE, TEXT = "image", "text"  # the name of what they look at, and of the task's field for it

MOST_SHOWN: Final = 60  # characters of what is wrong, in messages

Task = dict[str, Any]


def make_task(fields: dict[str, Any], *, proposed: str, score: float, shown: str) -> Task:
    """Return one task, with the proposed class chosen beforehand.

    Args:
        fields: what the task says of the sample; `image` or `text` is what people look at.
        proposed: the class's name.
        score: how sure the proposal is.
        shown: which of the fields they look at.
    """
    result = {
        "from_name": CHOICE,
        "to_name": shown,
        "type": "choices",
        "value": {"choices": [proposed]},
    }
    prediction = {"model_version": "accord", "score": score, "result": [result]}
    return {"data": fields, "predictions": [prediction]}


def labelling_config(class_names: Sequence[str], *, shown: str = IMAGE) -> str:
    """Return the labelling interface that the tasks fit: to paste into a project's settings.

    >>> print(labelling_config(["cat", "dog"], shown="text"))
    <View>
      <Text name="text" value="$text"/>
      <Choices name="choice" toName="text" choice="single" showInline="true">
        <Choice value="cat"/>
        <Choice value="dog"/>
      </Choices>
    </View>
    """
    tag = {IMAGE: "Image", TEXT: "Text"}[shown]
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in class_names)
    return (
        f'<View>\n  <{tag} name="{shown}" value="${shown}"/>\n'
        f'  <Choices name="{CHOICE}" toName="{shown}" choice="single" showInline="true">\n'
        f"{choices}\n  </Choices>\n</View>"
    )


def read_annotations(tasks: Any, *, name: str) -> Iterator[Said]:
    """Read what people chose; skipped tasks and tasks without an annotation are left out.

    Raises:
        SourceError: these are not tasks in Label Studio's JSON, or an annotation has no
            single choice.
    """
    for where, task, annotations in read_tasks(tasks, name=name):
        data = task["data"]
        for annotation in annotations:
            if not annotation.get("was_cancelled"):
                yield Said(
                    where=where,
                    decided=_chosen(annotation, f"{name}: {where}"),
                    **{key: _as_text(data.get(key)) for key in ("sample", "id", "given")},
                )


def read_tasks(tasks: Any, *, name: str) -> Iterator[tuple[str, Task, list[dict[str, Any]]]]:
    """Return what each task is called in messages, the task, and its annotations.

    Raises:
        SourceError: these are not tasks in Label Studio's JSON.
    """
    if not isinstance(tasks, list) or not all(_is_task(task) for task in tasks):
        raise SourceError(
            f"{name}: not an export of Label Studio. Export the project as JSON, not JSON-MIN."
        )
    for number, task in enumerate(tasks):
        where = f"task {task.get('id', number)}"
        annotations = task.get("annotations", [])
        yield where, task, _objects(annotations, "`annotations`", f"{name}: {where}")


def _is_task(task: Any) -> bool:
    return isinstance(task, dict) and isinstance(task.get("data"), dict)


def _objects(value: Any, what: str, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise _damaged(where, f"{what} must be a list of objects", value)
    return value


def _damaged(where: str, wanted: str, got: Any) -> SourceError:
    text = json.dumps(got)
    shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
    return SourceError(
        f"{where}: {wanted}; got {shown}. Export the project again as JSON, or remove the task"
    )


def _chosen(annotation: dict[str, Any], where: str) -> str:
    results = _objects(annotation.get("result", []), "`result`", where)
    choices = [
        choice
        for result in results
        if result.get("type") == "choices"
        for choice in _choices(result, where)
    ]
    if len(choices) != 1:
        raise SourceError(f"{where}: one class must be chosen; got {choices}")
    return str(choices[0])


def _choices(result: dict[str, Any], where: str) -> list[Any]:
    value = result.get("value")
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list):
        raise _damaged(where, "`value` must hold `choices`, a list", value)
    return choices


def _as_text(value: Any) -> str | None:
    return None if value is None else str(value)


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


def write_audit(audit: Audit, path: PathLike, *, sample_info: SampleInfo) -> None:
    """Write all samples to a .csv file, the most suspicious first, whole or not at all.

    Raises:
        RecordExists: the file is there and holds decisions, or is no audit.
    """
    _put(check_writable(path, "audit"), _as_csv(_columns(audit, audit.ranking, sample_info)))


def write_queue(
    audit: Audit,
    queue: NDArray[np.intp],
    path: PathLike,
    *,
    sample_info: SampleInfo,
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
        sample_info: of the audited rows.
        link: where to see a sample, with `{id}` and `{sample}` to be filled in: an image for
            Label Studio, a column for .csv.

    Raises:
        ChoiceError: the link holds other braces, or the file ends in something else.
        RecordExists: the file is there and holds decisions, or is no queue.
    """
    target = check_writable(path, "queue")
    columns = _columns(audit, queue, sample_info)
    links = None if link is None else _links(link, columns)
    if target.suffix == ".json":
        tasks = list(_tasks(columns, links, sample_info))
        _put(target, json.dumps(tasks, indent=1, ensure_ascii=False).encode())
    else:
        seen = {} if links is None else {"link": links}
        shown = _by_name(columns) if names_mislead(sample_info) else columns
        _put(target, _as_csv({**shown, **seen, DECIDED: [""] * len(queue)}))


def read_decisions(path: PathLike, *, sample_info: SampleInfo) -> Decisions:
    """Read what people decided: a .csv file with `decided`, or Label Studio's JSON export.

    A row of a .csv file names its sample by `sample`, its position, or by `id`, or both. Rows
    without a decision are left out. A given label in the file must be the record's.

    Raises:
        SourceError: the file is not readable, decides nothing, names an unknown class, or
            decides a sample twice, differently.
        RecordMismatch: it is about other samples.
    """
    target = check_ending(path, "decisions")
    return check_decisions(read_said(target), sample_info, name=str(target))


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
    write_file(target, data)


def _columns(audit: Audit, samples: NDArray[np.intp], sample_info: SampleInfo) -> Columns:
    columns: Columns = {"sample": samples.tolist()}
    if sample_info.ids is not None:
        columns["id"] = sample_info.ids[samples].tolist()
    for what in ("given", "proposed"):
        labels = getattr(audit, what)[samples].tolist()
        columns[what] = labels
        if sample_info.class_names is not None:
            columns[f"{what}_name"] = [sample_info.class_names[label] for label in labels]
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


def _tasks(
    columns: Columns, links: list[str] | None, sample_info: SampleInfo
) -> Iterator[dict[str, Any]]:
    names = sample_info.class_names or tuple(str(number) for number in range(sample_info.classes))
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
