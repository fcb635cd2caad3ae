"""Choose how to read the columns of a table."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from accord.data._table_columns import Table, find_date_format, is_number
from accord.errors import ChoiceError, SourceError, counted

LABEL_NAMES: Final = (
    *("label", "labels", "class", "target", "y"),
    *("species", "category", "outcome", "diagnosis", "variety"),
)
MOST_CATEGORIES: Final = 50  # of a column with one feature per value
MOSTLY: Final = 0.8  # the share of numbers from which other cells are taken for mistakes
FEW_ROWS: Final = 30  # below, measured integers may well all differ
_ID_NAME: Final = re.compile(
    r"(|unnamed: ?\d+|(.*[\W_])?(ids?|idx|index|row_?(id|num|number)|uuid|guid))", re.IGNORECASE
)
_CAMEL_ID: Final = re.compile(r".*[a-z](Id|ID|Index)")
_SIGNED: Final = re.compile(r"[-+]?[$€£¥]? ?\d+([,']\d{3})*([.,]\d+)?( ?[%$€£¥])?")


@dataclass
class ColumnKinds:
    """Columns of a table by what they hold."""

    numbers: list[str] = field(default_factory=list)
    one_hot: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    exclude: dict[str, list[str]] = field(default_factory=dict)  # reason -> columns
    truth: str | None = None
    ids: str | None = None

    def leave_out(self, name: str, reason: str) -> None:
        self.exclude.setdefault(reason, []).append(name)

    @property
    def options(self) -> dict[str, Any]:
        """Options of the reader of tables."""
        found: dict[str, Any] = {
            **{name: getattr(self, name) for name in ("one_hot", "dates", "words")},
            "exclude": [name for names in self.exclude.values() for name in names],
            "truth": self.truth,
            "ids": self.ids,
        }
        return {name: value for name, value in found.items() if value}

    def notes(self) -> list[str]:
        """Describe the choices, with the columns that are left out."""
        named = {
            "numbers": self.numbers,
            "one feature per value": self.one_hot,
            "dates": self.dates,
            "words": self.words,
            **{f"left out, as {reason}": names for reason, names in self.exclude.items()},
            "true labels, used for scores alone": [self.truth] if self.truth else [],
            "ids of the rows": [self.ids] if self.ids else [],
        }
        return [f"{kind}: {_listed(names)}" for kind, names in named.items() if names]


def find_label(table: Table, label: str | None) -> str:
    """Find the column of labels.

    Raises:
        ChoiceError: no column is named, and none or several have a name of `LABEL_NAMES`.
    """
    if label is not None:
        table.column(label)
        return label
    found = [name for name in table.columns if name.strip().lower() in LABEL_NAMES]
    if len(found) == 1:
        return found[0]
    problem = "it is unknown which column holds the labels"
    if found:
        problem = f"{' and '.join(found)} may both hold the labels"
    header = ". Is the header missing?" if any(map(is_number, table.columns)) else "."
    raise ChoiceError(
        f"{table.path}: {problem}. Name one: --label COLUMN. "
        f"It has {_listed(table.columns)}{header}"
    )


def choose_columns(table: Table, label: str) -> ColumnKinds:
    """Choose how to read each column beside the labels.

    Raises:
        SourceError: a column holds numbers and other cells, the labels look like measurements, or
            no column is left.
    """
    _check_label(table, label)
    kinds = ColumnKinds()
    given = re.compile(rf"{re.escape(label)}_given\d*")  # the labels before corrections
    for name in table.columns:
        if name == label:
            continue
        if name.lower() == "truth" and set(_known(table, name)) <= set(_known(table, label)):
            kinds.truth = name
        elif given.fullmatch(name):
            kinds.leave_out(name, "labels before corrections")
        else:
            _choose(kinds, table, name)
    if not (kinds.numbers or kinds.one_hot or kinds.dates or kinds.words):
        raise SourceError(
            f"{table.path}: no column is left to learn from. {'; '.join(kinds.notes())}".rstrip()
        )
    return kinds


def _choose(kinds: ColumnKinds, table: Table, name: str) -> None:
    cells, rows = _known(table, name), len(table)
    distinct = len(set(cells))
    few = distinct <= min(MOST_CATEGORIES, max(2, len(cells) // 2))
    is_id = bool(_ID_NAME.fullmatch(name.strip()) or _CAMEL_ID.fullmatch(name.strip()))
    if is_id and name and distinct == rows and kinds.ids is None:
        kinds.ids = name
    elif is_id and (2 * distinct > rows or not few):
        kinds.leave_out(name, "ids")
    elif distinct <= 1 and len(cells) in (0, rows):
        kinds.leave_out(name, "constant")
    elif all(map(is_number, cells)):
        if distinct == rows and _are_ids(cells):
            kinds.leave_out(name, "ids (integers that are all different)")
        else:
            (kinds.one_hot if is_id else kinds.numbers).append(name)
    else:
        _choose_for_texts(kinds, table, name, few=few)


def _choose_for_texts(kinds: ColumnKinds, table: Table, name: str, *, few: bool) -> None:
    cells = _known(table, name)
    if find_date_format(cells):
        kinds.dates.append(name)
    elif few:
        kinds.one_hot.append(name)
    elif sum(map(_is_like_number, cells)) >= MOSTLY * len(cells):
        _refuse_mixture(table, name)
    elif len(set(cells)) == len(table) and not any(" " in cell for cell in cells):
        kinds.leave_out(name, "ids (texts that are all different)")
    else:
        kinds.words.append(name)


def _is_like_number(cell: str) -> bool:
    return is_number(cell) or _SIGNED.fullmatch(cell) is not None


def _are_ids(cells: Sequence[str]) -> bool:
    """Check whether different numbers are ids: integers, and many or without gaps."""
    numbers = list(map(float, cells))
    whole = all(one.is_integer() for one in numbers)
    return whole and (len(cells) >= FEW_ROWS or max(numbers) - min(numbers) == len(cells) - 1)


def _known(table: Table, name: str) -> list[str]:
    column, missing = table.column(name), table.missing(name)
    return [str(column[row]).strip() for row in np.flatnonzero(~missing).tolist()]


def _refuse_mixture(table: Table, name: str) -> None:
    column, missing = table.column(name), table.missing(name)
    wrong = [row for row in range(len(table)) if not (missing[row] or is_number(column[row]))]
    raise SourceError(
        f"{table.path}: column {name!r} holds numbers, but {counted(len(wrong), 'cell')} "
        f"cannot be read as one: {table.where(wrong[0])} has {str(column[wrong[0]])[:40]!r}. "
        "Write plain numbers, such as 1234.5, or empty such cells: missing values are filled."
    )


def _check_label(table: Table, label: str) -> None:
    cells = _known(table, label)
    counts = Counter(cells)
    most = len(cells) // 2
    if all(map(is_number, counts)):  # integers may number classes; others are measured
        whole = all(float(one).is_integer() for one in counts)
        most = max(20, len(cells) // 10) if whole else 20
    if len(counts) > max(2, most):
        raise SourceError(
            f"{table.path}: column {label!r} holds {len(counts)} different values in "
            f"{len(cells)} rows, too many for classes. Is another column the label? To predict "
            "a number, divide it into classes first."
        )


def _listed(names: Sequence[str] | dict[str, Any], most: int = 12) -> str:
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(name or repr(name) for name in list(names)[:most]) + more
