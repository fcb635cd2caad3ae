"""New samples from tables and text files, a row or line each."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.data.dataset import Inputs
from accord.data.readers.columns import Columns, as_texts, read_columns, read_unquoted
from accord.data.readers.glue import TASKS
from accord.errors import SourceError
from accord.inference.samples import Samples, as_labels, named_by_numbers
from accord.training.spec import Spec
from accord.training.traits import Traits


def read_rows(ending: str) -> Callable[[Path, Spec, Traits], Samples]:
    """Return what reads a table with this ending.

    The columns are found by the names that the run's own data have; the column of labels may be
    missing. A run whose data have no such names takes all columns but labels, in their order.
    """

    def read(path: Path, spec: Spec, traits: Traits) -> Samples:
        columns = _read(path, ending, spec)
        label = _label_column(columns, spec)
        options = spec.data.options
        truth = None
        if label is not None:
            given = np.array([str(value) for value in columns[label]])
            truth = _labels(given, traits, f"{path}: column {label!r}")
        name = options.get("ids")
        ids = None if name is None else columns.get(name)
        reader = _texts if traits.kind == "text" else _numbers
        inputs = reader(path, columns, spec, traits, label)
        return Samples(inputs, truth, None if ids is None else np.array(ids), str(path))

    return read


def read_text_lines(path: Path, spec: Spec, traits: Traits) -> Samples:  # noqa: ARG001
    """Read one text a line, or a pair with a tab between; empty lines are left out."""
    if traits.kind != "text":
        raise SourceError(
            f"{path}: holds texts; the run's networks were trained on {traits.kind}s."
        )
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read as text: {error}") from error
    texts = [line.rstrip("\r") for line in lines if line.strip()]
    if not traits.pairs:
        return Samples(tuple(texts), name=str(path))
    pairs = [tuple(text.split("\t")) for text in texts]
    for number, pair in enumerate(pairs, start=1):
        if len(pair) != 2:
            raise SourceError(
                f"{path}: text {number} has {len(pair)} parts; the run's networks read pairs, "
                "with a tab between the two."
            )
    return Samples(tuple(pairs), name=str(path))  # type: ignore[arg-type]


def _read(path: Path, ending: str, spec: Spec) -> Columns:
    if ending == ".tsv" and spec.data.kind in TASKS:
        return read_unquoted(path)[0]
    return read_columns(path, ending)


def _label_column(columns: Columns, spec: Spec) -> str | None:
    options = spec.data.options
    task = TASKS.get(spec.data.kind)
    names = task.label if task else (options.get("truth"), options.get("label", "label"))
    return next((name for name in names if name in columns), None)


def _labels(given: NDArray[Any], traits: Traits, where: str) -> NDArray[Any]:
    unknown = not set(given.tolist()) <= set(traits.class_names)
    if unknown and not named_by_numbers(traits.class_names):
        numbers = {str(number) for number in range(traits.classes)}
        if set(given.tolist()) <= numbers:
            return given.astype(np.int64)
    return as_labels(given, traits.class_names, where=where)


def _text_columns(spec: Spec) -> tuple[tuple[str, ...], ...]:
    """Return the columns of texts, in each way they may be spelled."""
    if spec.data.kind in TASKS:
        return TASKS[spec.data.kind].texts
    text = spec.data.options.get("text")
    if text is None:
        return (("text",), ("sentence",))
    return ((text,) if isinstance(text, str) else tuple(text),)


def _texts(
    path: Path,
    columns: Columns,
    spec: Spec,
    traits: Traits,  # noqa: ARG001
    label: str | None,  # noqa: ARG001
) -> Inputs:
    spellings = _text_columns(spec)
    names = next((names for names in spellings if set(names) <= set(columns)), None)
    if names is None:
        wanted = " or ".join(", ".join(names) for names in spellings)
        raise SourceError(f"{path}: has no column {wanted}; it has {', '.join(columns)}.")
    return as_texts(columns, names)


def _numbers(path: Path, columns: Columns, spec: Spec, traits: Traits, label: str | None) -> Inputs:
    if traits.kind != "table":
        raise SourceError(f"{path}: is a table; the run's networks were trained on {traits.kind}s.")
    wanted = traits.columns
    if wanted is None:
        others = {label, spec.data.options.get("ids")}
        wanted = tuple((name, None) for name in columns if name not in others)
    missing = [name for name, _ in wanted if name not in columns]
    if missing:
        raise SourceError(
            f"{path}: has no column {missing[0]!r}, which the run's networks were trained on; "
            f"it has {', '.join(columns)}."
        )
    parts = [_column(path, name, columns[name], values) for name, values in wanted]
    return np.concatenate(parts, axis=1)


def _column(
    path: Path, name: str, cells: Sequence[Any] | NDArray[Any], values: tuple[str, ...] | None
) -> NDArray[np.float32]:
    if values is not None:
        return _one_hot(path, name, cells, values)
    try:
        return np.array(cells, np.float32)[:, np.newaxis]
    except (ValueError, TypeError) as error:
        raise SourceError(f"{path}: column {name!r} holds what is no number: {error}") from error


def _one_hot(
    path: Path, name: str, cells: Sequence[Any] | NDArray[Any], values: tuple[str, ...]
) -> NDArray[np.float32]:
    said = np.array([str(cell) for cell in cells])
    strange = sorted(set(said.tolist()) - set(values))
    if strange:
        raise SourceError(
            f"{path}: column {name!r} holds {strange[0]!r}, which no training sample had; "
            f"there were {', '.join(values[:8])}{' …' if len(values) > 8 else ''}."
        )
    return np.asarray(said[:, np.newaxis] == np.array(values), np.float32)
