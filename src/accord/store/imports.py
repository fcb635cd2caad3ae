"""Make a record from arrays that others wrote."""

import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, PredictionError, SourceError
from accord.store.facts import make_facts
from accord.store.intake import as_classes, check_probabilities, check_whole
from accord.store.pack import Progress, write_packed
from accord.store.rows import ArrayRows

Reader = Callable[[Path, int | None], ArrayRows]


def import_record(
    source: str | os.PathLike[str],
    record: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    classes: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Write what `source` holds as a packed record.

    `format` is by default the file's ending. An npz holds `labels` (network, epoch, sample)
    and, if there are any, `truth`, `given`, `ids`, `class_names` and `probabilities`.
    """
    path = Path(source)
    reader = _reader(path, format)
    if not path.exists():
        raise SourceError(f"{path}: no such file")
    write_packed(reader(path, classes), record, progress=progress)


def _reader(path: Path, name: str | None) -> Reader:
    name = name or path.suffix.removeprefix(".")
    if name not in FORMATS:
        have = ", ".join(FORMATS)
        raise ChoiceError(f"{path}: no importer for {name!r}; name one with --format: {have}")
    return FORMATS[name]


def read_npz(path: Path, classes: int | None) -> ArrayRows:
    """Read an npz file into memory and check all of it. Pickled objects are refused."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as opened:
            arrays = {name: opened[name] for name in opened.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        pickled = "allow_pickle" in str(error)
        cause = "it holds pickled objects, which are never loaded" if pickled else str(error)
        raise SourceError(
            f"{path}: cannot be read as npz: {cause}. Write it with "
            "np.savez(file, labels=labels, truth=truth), all arrays of numbers or text."
        ) from error
    try:
        return rows_from_arrays(arrays, classes=classes, name=str(path))
    except PredictionError as error:
        raise SourceError(f"{path}: {error}") from error


def rows_from_arrays(
    arrays: Mapping[str, NDArray[Any]], *, classes: int | None, name: str = "arrays"
) -> ArrayRows:
    """Check arrays by their names and return them as rows."""
    labels = _labels(arrays, name)
    classes = _classes(arrays, classes)
    facts = make_facts(
        samples=labels.shape[2],
        classes=classes,
        truth=arrays.get("truth"),
        given=arrays.get("given"),
        ids=arrays.get("ids"),
        class_names=arrays.get("class_names"),
    )
    probabilities = _probabilities(arrays, labels, classes)
    return ArrayRows(
        as_classes(labels, classes=classes), facts, probabilities=probabilities, name=name
    )


def _labels(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    if "labels" not in arrays:
        have = ", ".join(sorted(arrays)) or "nothing"
        raise SourceError(f"{name}: no array named 'labels'; it holds {have}")
    labels = arrays["labels"]
    if labels.ndim != 3 or 0 in labels.shape:
        raise SourceError(
            f"{name}: labels must have axes (network, epoch, sample), none empty; "
            f"got shape {labels.shape}"
        )
    return labels


def _classes(arrays: Mapping[str, NDArray[Any]], classes: int | None) -> int:
    if classes is not None:
        return classes
    if "class_names" in arrays:
        return arrays["class_names"].size
    if "probabilities" in arrays and arrays["probabilities"].ndim:
        return int(arrays["probabilities"].shape[-1])
    largest = [0]
    for what in ("labels", "truth", "given"):
        if what in arrays and arrays[what].size:
            check_whole(arrays[what], what)
            largest.append(int(arrays[what].max()))
    return max(largest) + 1


def _probabilities(
    arrays: Mapping[str, NDArray[Any]], labels: NDArray[Any], classes: int
) -> NDArray[Any] | None:
    values = arrays.get("probabilities")
    if values is None:
        return None
    networks, epochs, samples = labels.shape
    if values.shape != (networks, epochs, samples, classes):
        raise PredictionError(
            f"probabilities must have shape {(*labels.shape, classes)}, "
            f"(network, epoch, sample, class); got {values.shape}"
        )
    for network in range(networks):
        for epoch in range(epochs):
            check_probabilities(values[network, epoch], samples=samples, classes=classes)
    return values.astype(np.float16)


FORMATS: dict[str, Reader] = {"npz": read_npz}
