"""Read predictions from tables with one row per vote."""

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import open_csv, read_parquet
from accord.errors import SourceError, counted
from accord.store._import_arrays import ImportOptions, rows_of
from accord.store._import_rows import Source, progress_of, sort_networks
from accord.store._validation import ids_to_numpy

# The names of columns: ours first, then those of crowdsourcing tools and training scripts.
COLUMNS: Final = {
    "network": ("network", "worker", "annotator", "seed", "model"),
    "epoch": ("epoch",),
    "sample": ("sample", "task", "sample_id", "id"),
    "label": ("label", "prediction", "predicted"),
    "truth": ("truth",),
    "given": ("given",),
}
REQUIRED: Final = ("sample", "label")
VOTE: Final = ("network", "epoch", "sample")
LABELLED: Final = ("label", "truth", "given")
AUM_FILE: Final = "full_aum_records.csv"
AUM: Final = (
    *("sample_id", "num_measurements", "target_logit", "other_logit", "target_val", "other_val"),
)
MISSING: Final = -1
_WHOLE: Final = re.compile(r"[+-]?\d+(?:\.0*)?")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
MOST_VOTES: Final = 2**32  # that a record of a table has room for, present or missing

Row = tuple[int, Sequence[Any]]  # its line, and its cells


@dataclass
class _Column:
    codes: "array[int]" = field(default_factory=lambda: array("q"))  # by row
    values: dict[str, int] = field(default_factory=dict)  # text -> its number

    def add(self, value: Any) -> None:
        if isinstance(value, float) and value.is_integer():  # in Parquet, if cells are empty
            value = int(value)
        text = "" if value is None or value != value else str(value).strip()
        self.codes.append(self.values.setdefault(text, len(self.values)))

    def look_up(self, numbers: Mapping[str, int]) -> NDArray[np.intp]:  # (row,)
        """Replace each row's value by its number in a mapping."""
        return np.array([numbers[text] for text in self.values], np.intp)[self.codes]


def read_votes(path: Path, _: ImportOptions, *, ending: str) -> Source:
    """Read a table with the columns network, epoch, sample and label, in any order of rows."""
    if ending == ".parquet":
        columns = read_parquet(path)
        lists = [list(column) for column in columns.values()]
        return _gather(path, list(columns), enumerate(zip(*lists, strict=True)), unit="row")
    with open_csv(path, delimiter="\t" if ending == ".tsv" else ",") as lines:
        header = next(lines, [])
        rows = ((lines.line_num, cells) for cells in lines if cells)
        return _gather(path, header, rows, unit="line")


def find_aum(path: Path) -> list[Path]:
    """Find the records of AUM: the file itself, or those of several networks in a folder."""
    if path.is_dir():
        one = path / AUM_FILE
        return [one] if one.exists() else sorted(path.glob(f"*/{AUM_FILE}"))
    if not path.exists():
        return []
    with open_csv(path) as lines:
        return [path] * (set(AUM) <= set(next(lines, [])))


def read_aum(path: Path, _: ImportOptions) -> Source:
    """Read the predictions of networks from the records of the package aum.

    A record holds the logit of the given class and the largest other one: the larger of the two
    is the prediction. Other logits are not kept, so that there are no probabilities.
    """
    files = find_aum(path)
    if not files:
        raise SourceError(
            f"{path}: has no {AUM_FILE}, which AUMCalculator(folder, compressed=False) writes; "
            "aum_values.csv has no predictions"
        )

    def rows() -> Iterator[Row]:
        for network, file in enumerate(files):
            with open_csv(file) as lines:
                names = next(lines, [])
                at = [_position(file, names, (name,)) for name in AUM]
                for cells in filter(None, lines):
                    vote = _aum_vote(f"{file}: line {lines.line_num}", cells, at)
                    yield lines.line_num, (network, *vote)

    header = ["network", "sample", "epoch", "label", "given"]
    return replace(_gather(path, header, rows(), unit="line"), split="train")


def _aum_vote(where: str, cells: Sequence[str], at: Sequence[int]) -> tuple[str, str, int, int]:
    try:
        sample, epoch, target, other, of_target, of_other = (cells[i] for i in at)
        classes = int(target), int(other)
        margin = float(of_target) - float(of_other)
    except (ValueError, IndexError) as error:
        raise SourceError(f"{where}: {error}. Was the file truncated?") from error
    if np.isnan(margin):
        raise SourceError(f"{where}: the logits are {of_target} and {of_other}. Did it diverge?")
    # Equal logits: the lower class, as argmax predicts.
    label = min(classes) if margin == 0 else classes[margin < 0]
    return sample, epoch, label, classes[0]


def _position(path: Path, header: Sequence[str], names: Sequence[str]) -> int:
    found = [header.index(name) for name in names if name in header]
    if not found:
        raise SourceError(
            f"{path}: has no column {names[0]!r}; it has {', '.join(header) or 'none'}. Expected "
            "network, epoch, sample, label in the first line, of which sample and label are "
            "required, separated by commas (.tsv: tabs), and one row per vote"
        )
    return found[0]


def _gather(path: Path, header: Sequence[str], rows: Iterable[Row], *, unit: str) -> Source:
    header = [name.strip().lower() for name in header]
    at = {
        role: _position(path, header, names)
        for role, names in COLUMNS.items()
        if role in REQUIRED or set(names) & set(header)
    }
    columns = {role: _Column() for role in at}
    lines = []
    for line, cells in rows:
        if len(cells) != len(header):
            raise SourceError(
                f"{path}: {unit} {line} has {counted(len(cells), 'cell')}; the header has "
                f"{len(header)}. Was the file truncated?"
            )
        lines.append(line)
        for role, column in columns.items():
            column.add(cells[at[role]])
    if not lines:
        raise SourceError(f"{path}: has a header, but no rows")
    for role in {"network", "epoch"} - columns.keys():
        columns[role] = _Column(array("q", bytes(8 * len(lines))), {"0": 0})
    return _arrange(_Table(path, columns, lines, unit))


def _arrange(table: "_Table") -> Source:
    """Arrange votes, which come in any order, by network, epoch and sample."""
    networks = sort_networks(table.values("network"))
    epochs = sorted(table.values("epoch"), key=table.number)
    for one, other in pairwise(epochs):
        if table.number(one) == table.number(other):
            raise table.error(table.row("epoch", other), f"has epoch {other}; others have {one}")
    ids = _as_ids(table.values("sample"))
    orders = dict(zip(VOTE, (networks, epochs, list(map(str, ids))), strict=True))
    shape = tuple(map(len, orders.values()))
    if math.prod(shape) > MOST_VOTES:
        sizes = " × ".join(map(counted, shape, VOTE))
        raise SourceError(f"{table.path}: {sizes} are too many votes. Is a column named wrongly?")
    places = tuple(
        table.columns[role].look_up({text: place for place, text in enumerate(texts)})
        for role, texts in orders.items()
    )
    table.check_votes(places, orders)
    votes = np.ma.masked_array(np.zeros(shape, np.int64), mask=True)
    names, numbers = table.classes()
    labels = numbers["label"]
    votes[places] = np.ma.masked_where(labels == MISSING, labels)
    info: dict[str, Any] = {"ids": ids} | ({"class_names": names} if names else {})
    for role in ("truth", "given"):
        if role in numbers:
            info[role] = table.by_sample(role, places[2], numbers[role], len(ids))
    return Source(
        rows_of("the table", votes, None),
        networks,
        progress=progress_of(list(map(table.number, epochs))),
        sample_info=info,
    )


@dataclass(frozen=True)
class _Table:
    path: Path
    columns: Mapping[str, _Column]
    lines: Sequence[int]  # where each row is
    unit: str

    def error(self, row: int, problem: str) -> SourceError:
        return SourceError(f"{self.path}: {self.unit} {self.lines[row]} {problem}")

    def values(self, role: str) -> list[str]:
        if "" in self.columns[role].values:
            raise self.error(self.row(role, ""), f"has no {role}")
        return list(self.columns[role].values)

    def number(self, epoch: str) -> float:
        if not _NUMBER.fullmatch(epoch):
            raise self.error(self.row("epoch", epoch), f"has epoch {epoch!r}; expected a number")
        return float(epoch)

    def row(self, role: str, text: str) -> int:
        return self.columns[role].codes.index(self.columns[role].values[text])

    def check_votes(
        self, places: tuple[NDArray[np.intp], ...], orders: Mapping[str, Sequence[str]]
    ) -> None:
        """Check that each vote has one row, if there are several epochs, or at most one."""
        shape = tuple(map(len, orders.values()))
        cells = np.ravel_multi_index(places, shape)
        order = np.argsort(cells, kind="stable")
        again = order[1:][cells[order[1:]] == cells[order[:-1]]]
        if again.size:
            row = int(again.min())
            first = int(np.flatnonzero(cells == cells[row])[0])
            raise self.error(
                row,
                f"has the same network, epoch and sample as {self.unit} {self.lines[first]}; "
                f"{counted(again.size, 'row')} too many. Remove one of each pair",
            )
        if shape[1] > 1 and len(self.lines) < math.prod(shape):
            absent = np.setdiff1d(np.arange(math.prod(shape)), cells)
            place = zip(orders.items(), np.unravel_index(absent[0], shape), strict=True)
            vote = ", ".join(f"{role} {texts[at]}" for (role, texts), at in place)
            raise SourceError(
                f"{self.path}: has no row of {vote} ({len(absent)} of {math.prod(shape)} are "
                "absent). Was the run interrupted? If votes are missing, write their rows with "
                "an empty label"
            )

    def classes(self) -> tuple[list[str], dict[str, NDArray[np.intp]]]:
        """Return the names of the classes, if they have any, and the columns of labels."""
        columns = {role: self.columns[role] for role in LABELLED if role in self.columns}
        texts = sorted(set().union(*(column.values for column in columns.values())) - {""})
        whole = {
            role: all(_WHOLE.fullmatch(text) for text in column.values if text)
            for role, column in columns.items()
        }
        if len(set(whole.values())) > 1:
            numbers, *_, names = sorted(whole, key=lambda role: not whole[role])
            raise SourceError(
                f"{self.path}: {numbers} has numbers and {names} has names of classes; write both "
                "alike"
            )
        numbered = whole["label"]
        codes = {text: int(float(text)) if numbered else i for i, text in enumerate(texts)}
        for role, column in columns.items():
            if low := [text for text in column.values if text and codes[text] < 0]:
                raise self.error(
                    self.row(role, low[0]),
                    f"has {role} {low[0]}. Leave the cell empty for a missing vote",
                )
        codes[""] = MISSING
        found = {role: column.look_up(codes) for role, column in columns.items()}
        return [] if numbered else texts, found

    def by_sample(
        self, role: str, samples: NDArray[np.intp], labels: NDArray[np.intp], size: int
    ) -> NDArray[np.intp]:
        found = np.empty(size, np.intp)
        found[samples[::-1]] = labels[::-1]  # of its first row
        wrong = np.flatnonzero((found[samples] != labels) | (labels == MISSING))
        if wrong.size:
            raise self.error(
                int(wrong[0]), f"has no {role}, or another than an earlier row of its sample"
            )
        return found


def _as_ids(texts: Sequence[str]) -> NDArray[Any]:
    """Sort ids: by value if all are plain whole numbers."""
    if all(_WHOLE.fullmatch(text) and str(int(float(text))) == text for text in texts):
        return ids_to_numpy(sorted(map(int, texts)))
    return np.array(sorted(texts))
