"""Load labels from .npy, .npz, .csv and .pt files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord._files import load_npy, load_npz, open_csv
from accord.data._dataset import Labels
from accord.data._pickle import load_torch
from accord.errors import ChoiceError, PredictionError, SourceError
from accord.kernels import check_class_range

Arrays = dict[str, NDArray[Any]]


def labels_from_file(path: str, *, samples: int, classes: int) -> Labels:
    """Load labels from a .npy, .npz, .csv or .pt file.

    If the file holds several columns or arrays, the path names one after a number sign:
    `CIFAR-10_human.pt#worse_label`. The header of a .csv file is optional.

    Args:
        path: the file, with or without `#name`.
        samples: the expected number of labels.
        classes: the number of classes, with labels from 0.

    Raises:
        ChoiceError: the file's ending is unknown, or `name` is missing or not in the file.
        SourceError: the file is missing or not readable.
        PredictionError: the labels are not integers, too many, too few, or out of range.
    """
    file, _, name = str(path).partition("#")
    labels = _choose(read_arrays(Path(file)), name, file)
    if labels.shape != (samples,) or not np.issubdtype(labels.dtype, np.integer):
        raise PredictionError(
            f"{path}: expected one integer for each of {samples} samples; "
            f"got {labels.dtype} of shape {labels.shape}. Are they labels of another split?"
        )
    check_class_range(labels, classes=classes, name=f"{path}: labels")
    return labels


def read_arrays(path: Path) -> Arrays:
    if path.suffix not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise ChoiceError(f"{path}: labels are read from {known}; got {path.suffix!r}.")
    try:
        return _FORMATS[path.suffix](path)
    except SourceError:
        raise
    except (OSError, EOFError, ValueError) as error:
        raise SourceError(f"{path}: cannot be read: {error}") from error


def _choose(arrays: Arrays, name: str, file: str) -> NDArray[Any]:
    if name in arrays:
        return arrays[name]
    if not arrays:
        raise SourceError(f"{file}: holds no labels.")
    if not name and len(arrays) == 1:
        return next(iter(arrays.values()))
    problem = f"has no array {name!r}" if name else "holds several arrays"
    raise ChoiceError(
        f"{file}: {problem}. Name one of {', '.join(arrays)}: {file}#{next(iter(arrays))}"
    )


def _read_torch(path: Path) -> Arrays:
    value = load_torch(path)
    arrays = value if isinstance(value, dict) else {"labels": value}
    return {name: np.asarray(array) for name, array in arrays.items()}


def _read_csv(path: Path) -> Arrays:
    with open_csv(path) as reader:
        rows = [row for row in reader if row]
    if len({len(row) for row in rows}) > 1:
        raise SourceError(f"{path}: its rows have different numbers of cells.")
    names = [str(number) for number in range(len(rows[0]))] if rows else []
    if rows and not any(_is_integer(cell) for cell in rows[0]):
        names, rows = rows[0], rows[1:]
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return {
        name: np.array([int(cell) for cell in cells] if all(map(_is_integer, cells)) else cells)
        for name, cells in columns
    }


def _is_integer(cell: str) -> bool:
    return cell.strip().lstrip("-").isdecimal()


_FORMATS: dict[str, Callable[[Path], Arrays]] = {
    ".npy": lambda path: {"labels": load_npy(path)},
    ".npz": load_npz,
    ".csv": _read_csv,
    ".pt": _read_torch,
}
