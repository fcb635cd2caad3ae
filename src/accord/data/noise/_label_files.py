"""Labels that someone else made wrong, from a file."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord._files import load_npz
from accord.data._pickle import load_torch
from accord.errors import ChoiceError, PredictionError, SourceError
from accord.kernels import check_class_range

Labels: TypeAlias = NDArray[np.integer]  # (sample,) -> class


def check_noise(rate: float, classes: int) -> None:
    """Refuse a rate that is no share, and fewer than two classes."""
    if not 0 <= rate <= 1:
        raise ChoiceError(f"rate must lie in 0..1; got {rate}. Is it a percentage?")
    if classes < 2:
        raise ChoiceError(
            f"label noise needs at least 2 classes; got {classes}. "
            "A single class has no other to be mistaken for."
        )


def check_labels(labels: Labels, classes: int) -> None:
    """Refuse labels that are no row of integers in 0..classes - 1."""
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise PredictionError(
            "labels must be integers, one per sample; "
            f"got {labels.dtype} of shape {labels.shape}. Are they one-hot or probabilities?"
        )
    check_class_range(labels, classes=classes)
    if np.iinfo(labels.dtype).max < classes - 1:
        raise PredictionError(
            f"labels of type {labels.dtype} cannot hold class {classes - 1}, which noise may give. "
            "Use a wider type: labels.astype(int)"
        )


def check_mapping(mapping: NDArray[np.integer], classes: int) -> None:
    """Refuse a mapping that does not name one class for each."""
    if mapping.shape != (classes,) or not np.issubdtype(mapping.dtype, np.integer):
        raise ChoiceError(
            f"mapping must hold one class for each of the {classes} classes; "
            f"got {mapping.dtype} of shape {mapping.shape}."
        )
    check_class_range(mapping, classes=classes, name="mapping: classes", error=ChoiceError)


Columns = dict[str, NDArray[Any]]


def labels_from_file(path: str, *, samples: int, classes: int) -> Labels:
    """Read one label per sample from a .npy, .npz, .csv or .pt file.

    Where the file holds several columns or arrays, name one behind a number sign:
    `CIFAR-10_human.pt#worse_label`. A .csv file may have a header or none.

    Args:
        path: the file, with or without `#name`.
        samples: how many labels there must be.
        classes: how many classes there are; labels run from 0.

    Raises:
        ChoiceError: the file's ending is unknown, or `name` is missing or not in it.
        SourceError: the file is not there or not readable.
        PredictionError: the labels are not integers, too many, too few, or out of range.
    """
    file, _, name = str(path).partition("#")
    labels = _choose(read_columns(Path(file)), name, file)
    if labels.shape != (samples,) or not np.issubdtype(labels.dtype, np.integer):
        raise PredictionError(
            f"{path}: there must be one integer for each of {samples} samples; "
            f"got {labels.dtype} of shape {labels.shape}. Are they of another split?"
        )
    check_class_range(labels, classes=classes, name=f"{path}: labels")
    return labels


def read_columns(path: Path) -> Columns:
    """Read every array or column of a file, by its name."""
    if path.suffix not in _FORMATS:
        have = ", ".join(_FORMATS)
        raise ChoiceError(f"{path}: labels are read from {have}; got {path.suffix!r}.")
    try:
        return _FORMATS[path.suffix](path)
    except SourceError:
        raise
    except (OSError, EOFError, ValueError, csv.Error) as error:
        raise SourceError(f"{path}: cannot be read: {error}") from error


def _choose(columns: Columns, name: str, file: str) -> NDArray[Any]:
    if name in columns:
        return columns[name]
    if not name and len(columns) == 1:
        return next(iter(columns.values()))
    problem = f"there is no {name!r} in it" if name else "it holds several arrays"
    if not columns:
        raise SourceError(f"{file}: it holds no labels.")
    raise ChoiceError(
        f"{file}: {problem}. Name one of {', '.join(columns)}: {file}#{next(iter(columns))}"
    )


def _read_npy(path: Path) -> Columns:
    return {"labels": np.load(path, allow_pickle=False)}


def _read_torch(path: Path) -> Columns:
    value = load_torch(path)
    return {
        name: np.asarray(each)
        for name, each in (value if isinstance(value, dict) else {"labels": value}).items()
    }


def _read_csv(path: Path) -> Columns:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    if len({len(row) for row in rows}) > 1:
        raise SourceError(f"{path}: its rows have different numbers of cells.")
    names = [str(number) for number in range(len(rows[0]))] if rows else []
    if rows and not any(_is_integer(cell) for cell in rows[0]):
        names, rows = rows[0], rows[1:]
    return {
        name: _as_integers(cells)
        for name, cells in zip(names, zip(*rows, strict=True), strict=True)
    }


def _as_integers(cells: tuple[str, ...]) -> NDArray[Any]:
    whole = all(_is_integer(cell) for cell in cells)
    return np.array([int(cell) for cell in cells]) if whole else np.array(cells)


def _is_integer(cell: str) -> bool:
    return cell.strip().lstrip("-").isdecimal()


_FORMATS: dict[str, Callable[[Path], Columns]] = {
    ".npy": _read_npy,
    ".npz": load_npz,
    ".csv": _read_csv,
    ".pt": _read_torch,
}
