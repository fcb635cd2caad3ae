"""Reader of the GLUE tasks MNLI, QNLI, QQP and SST-2."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import Columns, read_parquet
from accord.data._dataset import Dataset, Split, TextPairs, Texts, hold_out
from accord.data._table_columns import Column
from accord.data.readers._find_files import Spellings, check_counts, missing, need_folder
from accord.data.readers.tables import read_unquoted
from accord.errors import SourceError, counted

_ENDINGS: Final = (".tsv", ".parquet", "-*.parquet")


@dataclass(frozen=True)
class _Task:
    name: str
    folders: tuple[str, ...]  # of the unpacked archives
    texts: tuple[tuple[str, ...], ...]  # the columns of texts, in every spelling
    label: tuple[str, ...]
    class_names: tuple[str, ...]
    counts: tuple[int, int]
    tests: tuple[tuple[str, ...], ...] = (("dev", "validation"),)  # files, in every spelling
    some_rows_short: bool = False


def read_glue(
    path: Path,
    *,
    name: str,
    train: str | None = None,
    test: str | None = None,
    held_out: float | None = None,
    seed: int = 0,
    complete: bool = True,
) -> Dataset:
    """Read a GLUE task from TSV or Parquet files.

    MNLI has two dev sets, matched and mismatched: the ids of the test split name the one that a
    pair is from. The published TSV files of QQP have a few incomplete rows; `notes` count them.

    Args:
        path: the folder of the files, or the one above.
        name: mnli, qnli, qqp or sst2.
        train: the file to train on, by default `train`.
        test: the file to test on, by default the labelled dev sets.
        held_out: test on this share of the training file instead.
        seed: selects the samples that are held out.
        complete: require the published numbers of samples.
    """
    task = TASKS[name]
    need_folder(path, what=f"{task.name}'s files")
    notes: list[str] = []
    split = _read_split(task, _find(task, path, (train,) if train else ("train",)), notes)
    if held_out is not None:
        splits = hold_out(split, held_out, seed)
    else:
        tests = [_find(task, path, names) for names in ([(test,)] if test else task.tests)]
        splits = (split, _join([(files, _read_split(task, files, notes)) for files in tests]))
        if complete:
            check_counts(path, (len(splits[0]), len(splits[1])), task.counts)
    return Dataset(task.name, "text", task.class_names, *splits, notes=tuple(notes))


def needs_of(name: str) -> tuple[Spellings, ...]:
    """List the possible paths of the files of a task.

    >>> needs_of("qnli")[1][:4]
    ('dev.tsv', 'dev.parquet', 'dev-*.parquet', 'validation.tsv')
    """
    task = TASKS[name]
    return tuple(_spellings(task, names) for names in (("train",), *task.tests))


def _spellings(task: _Task, names: Sequence[str]) -> Spellings:
    return tuple(
        f"{folder}{name}{ending}"
        for folder in ("", *(f"{one}/" for one in task.folders))
        for name in names
        for ending in _ENDINGS
    )


def _find(task: _Task, path: Path, names: Sequence[str]) -> list[Path]:
    for folder in (path, *(path / folder for folder in task.folders)):
        for name in names:
            if (folder / name).is_file():
                return [folder / name]
            for ending in _ENDINGS:
                if found := sorted(folder.glob(f"{name}{ending}")):
                    return found
    raise missing(path, _spellings(task, names), what=f"{' or '.join(names)} of {task.name}")


def _read_split(task: _Task, files: list[Path], notes: list[str]) -> Split:
    texts: list[Any] = []
    labels: list[NDArray[np.int64]] = []
    for file in files:
        if file.suffix == ".parquet":
            columns = read_parquet(file)
        else:
            columns, short = read_unquoted(file, skip_short=task.some_rows_short)
            if short:
                notes.append(f"{file.name}: left out {counted(short, 'row')} with missing cells")
        names = _spelling(file, columns, task.texts)
        label = _spelling(file, columns, tuple((name,) for name in task.label))[0]
        cells = [columns[name] for name in names]
        texts += cells[0] if len(cells) == 1 else zip(*cells, strict=True)
        labels.append(_as_labels(file, columns[label], task.class_names))
    return Split(tuple(texts), np.concatenate(labels))


def _spelling(
    file: Path, columns: Columns, spellings: tuple[tuple[str, ...], ...]
) -> tuple[str, ...]:
    for names in spellings:
        if set(names) <= set(columns):
            return names
    wanted = " or ".join(", ".join(names) for names in spellings)
    raise SourceError(
        f"{file}: no column {wanted}; it has {', '.join(columns)}. "
        "The test sets of GLUE have no labels; test on dev."
    )


def _as_labels(file: Path, values: Column, class_names: tuple[str, ...]) -> NDArray[np.int64]:
    numbers: dict[str, int] = {name: number for number, name in enumerate(class_names)}
    numbers |= {str(number): number for number in range(len(class_names))}
    try:
        return np.array([numbers[str(value)] for value in values], np.int64)
    except KeyError as error:
        row = [str(value) for value in values].index(error.args[0]) + 1
        raise SourceError(
            f"{file}: row {row} has label {error.args[0]!r}; labels are "
            f"{', '.join(class_names)} or 0 to {len(class_names) - 1}."
        ) from None


def _join(parts: list[tuple[list[Path], Split]]) -> Split:
    if len(parts) == 1:
        return parts[0][1]
    inputs: Texts | TextPairs = tuple(text for _, split in parts for text in split.inputs)  # type: ignore[assignment, union-attr]
    ids = [f"{files[0].stem}:{row}" for files, split in parts for row in range(len(split))]
    return Split(inputs, np.concatenate([split.labels for _, split in parts]), ids=np.array(ids))


TASKS: Final = {
    task.name: task
    for task in (
        _Task(
            "mnli",
            ("MNLI", "mnli"),
            (("premise", "hypothesis"), ("sentence1", "sentence2")),
            ("label", "gold_label"),
            ("entailment", "neutral", "contradiction"),
            (392_702, 9_815 + 9_832),
            (("dev_matched", "validation_matched"), ("dev_mismatched", "validation_mismatched")),
        ),
        _Task(
            "qnli",
            ("QNLI", "qnli"),
            (("question", "sentence"),),
            ("label",),
            ("entailment", "not_entailment"),
            (104_743, 5_463),
        ),
        _Task(
            "qqp",
            ("QQP", "qqp"),
            (("question1", "question2"),),
            ("is_duplicate", "label"),
            ("not_duplicate", "duplicate"),
            (363_846, 40_430),
            some_rows_short=True,
        ),
        _Task(
            "sst2",
            ("SST-2", "sst2"),
            (("sentence",),),
            ("label",),
            ("negative", "positive"),
            (67_349, 872),
        ),
    )
}
