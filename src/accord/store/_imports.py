"""Make a record from what others wrote: find out in which form, read it, write it packed."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord._files import cause_of, load_npz
from accord.errors import ChoiceError, PredictionError, SourceError
from accord.store._import_formats import has_dynamics, has_npy_files, read_dynamics, read_npy_files
from accord.store._import_rows import Source, gather_rows
from accord.store._metadata import make_sample_info
from accord.store._packed import write_packed
from accord.store._record_reader import ArrayReader
from accord.store._storage import CountProgress
from accord.store._validation import as_classes, check_probabilities, check_whole, to_numpy

Reader = Callable[[Path, int | None], ArrayReader]


def import_record(
    source: str | os.PathLike[str],
    record: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    classes: int | None = None,
    progress: CountProgress | None = None,
) -> None:
    """Write what `source` holds as a packed record.

    Args:
        source: a file or a folder.
        record: where to write; nothing may be there.
        format: one of `FORMATS`; by default as the file's ending or the folder's files tell.

            - `npz`: a file with `labels` (network, epoch, sample) and, if there are any,
              `truth`, `given`, `ids`, `class_names` and `probabilities`;
            - `npy-folder`: `resnet<i>/test_resnet_<i>_<epoch>.npy`, one file per network and
              epoch; `npy-folder-train`: the same without `test_`;
            - `cartography`: `training_dynamics/dynamics_epoch_<e>.jsonl`, logits by guid.
        classes: how many classes there are; by default as the source tells.
        progress: told of samples done and samples in all.

    Raises:
        SourceError: the source is missing, damaged or not complete; nothing is written.
        ChoiceError: the format is unknown, or there are several in one folder.
        RecordExists: something is there already.
    """
    path = Path(source)
    try:
        rows = _read(path, format, classes)
    except OSError as error:
        raise SourceError(f"{path}: cannot read: {cause_of(error)}") from error
    write_packed(rows, record, progress=progress)


def _read(path: Path, name: str | None, classes: int | None) -> ArrayReader:
    reader = _reader(path, name)
    if not path.exists():
        raise SourceError(f"{path}: no such file")
    return reader(path, classes)


def import_arrays(
    record: str | os.PathLike[str],
    networks: Iterable[Iterable[object]],
    *,
    classes: int | None = None,
    split: str = "test",
    **sample_info: object,
) -> None:
    """Write arrays in memory as a packed record.

    Args:
        record: where to write; nothing may be there.
        networks: for each network, one array per epoch: labels (sample,), or probabilities or
            logits (sample, class); all of one kind. One array with axes in the order network,
            epoch, sample (, class) will do.
        classes: how many classes there are; by default as the arrays tell.
        split: which part of the data the samples are.
        **sample_info: `truth`, `given`, `ids`, `class_names`, as `Recorder` takes them.

    Raises:
        PredictionError: an array is of another shape or kind than the first, or not usable.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/record"
    >>> import_arrays(path, [[[0, 1], [0, 1]], [[0, 0], [0, 1]]], truth=[0, 1])
    """
    strange = sorted(sample_info.keys() - {"truth", "given", "ids", "class_names"})
    if strange:
        raise TypeError(f"import_arrays got an unexpected argument {strange[0]!r}")
    named = [
        [(f"network {number}, epoch {epoch}", to_numpy(row)) for epoch, row in enumerate(network)]
        for number, network in enumerate(networks)
    ]
    arrays = gather_rows(named)
    arrays |= {name: to_numpy(value) for name, value in sample_info.items() if value is not None}
    rows = rows_from_arrays(arrays, classes=classes, split=split)
    write_packed(rows, record)


def _reader(path: Path, name: str | None) -> Reader:
    names = [name] if name else _formats_of(path)
    if len(names) == 1 and names[0] in FORMATS:
        return FORMATS[names[0]]
    said = f"could be read as {' or '.join(names)}" if names else "no importer knows its files"
    if len(names) == 1:
        said = f"no importer for {names[0]!r}"
    raise ChoiceError(f"{path}: {said}; name one with --format: {', '.join(FORMATS)}")


def _formats_of(path: Path) -> list[str]:
    """Return the formats that a source may be in."""
    if not path.is_dir():
        if not path.suffix and not path.exists():
            raise SourceError(f"{path}: no such file or folder")
        return [path.suffix.removeprefix(".")]
    checks = {
        "npy-folder": has_npy_files(path, test=True),
        "npy-folder-train": has_npy_files(path, test=False),
        "cartography": has_dynamics(path),
    }
    return [name for name, there in checks.items() if there]


def read_npz(path: Path, classes: int | None) -> ArrayReader:
    """Read an npz file into memory and check all of it. Pickled objects are refused."""
    try:
        arrays = load_npz(path)
    except SourceError as error:
        raise SourceError(
            f"{error}. Write it with np.savez(file, labels=labels, truth=truth), "
            "all arrays of numbers or text."
        ) from error
    try:
        split = _split(arrays)
        return rows_from_arrays(arrays, classes=classes, name=str(path), split=split)
    except PredictionError as error:
        raise SourceError(f"{path}: {error}") from error


def rows_from_arrays(
    arrays: Mapping[str, NDArray[Any]],
    *,
    classes: int | None,
    name: str = "arrays",
    split: str = "test",
) -> ArrayReader:
    """Check arrays by their names and return them as rows."""
    labels = _labels(arrays, name)
    classes = _classes(arrays, classes)
    sample_info = make_sample_info(
        samples=labels.shape[2],
        classes=classes,
        split=split,
        truth=arrays.get("truth"),
        given=arrays.get("given"),
        ids=arrays.get("ids"),
        class_names=arrays.get("class_names"),
    )
    probabilities = _probabilities(arrays, labels, classes)
    return ArrayReader(
        as_classes(labels, classes=classes), sample_info, probabilities=probabilities, name=name
    )


def _labels(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    if "labels" not in arrays:
        have = ", ".join(sorted(arrays)) or "nothing"
        cure = "Write them under that name: np.savez(file, labels=labels)"
        if "probabilities" in arrays:
            cure = "Add labels=probabilities.argmax(-1)"
        raise SourceError(f"{name}: no array named 'labels'; it holds {have}. {cure}")
    labels = arrays["labels"]
    if labels.ndim != 3 or 0 in labels.shape:
        raise SourceError(
            f"{name}: labels must have axes (network, epoch, sample), none empty; "
            f"got shape {labels.shape}"
        )
    return labels


def _split(arrays: Mapping[str, NDArray[Any]]) -> str:
    split = arrays.get("split", np.array("test"))
    if split.shape or split.dtype.kind != "U" or not str(split):
        raise PredictionError(
            'split must be one word, as in np.savez(file, labels=labels, split="train"); '
            f"got {split.dtype} of shape {split.shape}"
        )
    return str(split)


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


def read_npy_folder(path: Path, classes: int | None) -> ArrayReader:
    """Read what networks said of the test samples, one npy file for each epoch of each."""
    return _gathered(path, read_npy_files(path, test=True), classes=classes)


def read_npy_train_folder(path: Path, classes: int | None) -> ArrayReader:
    """Read what networks said of the training samples."""
    return _gathered(path, read_npy_files(path, test=False), classes=classes, split="train")


def read_cartography(path: Path, classes: int | None) -> ArrayReader:
    """Read training dynamics as Dataset Cartography logs them."""
    return _gathered(path, read_dynamics(path), classes=classes, split="train")


def _gathered(
    path: Path, source: Source, *, classes: int | None, split: str = "test"
) -> ArrayReader:
    try:
        arrays = {**gather_rows(source.networks, kind=source.kind), **source.sample_info}
        rows = rows_from_arrays(arrays, classes=classes, name=str(path), split=split)
    except PredictionError as error:
        raise SourceError(f"{path}: {error}") from error
    rows.numbers = source.numbers
    return rows


FORMATS: dict[str, Reader] = {
    "npz": read_npz,
    "npy-folder": read_npy_folder,
    "npy-folder-train": read_npy_train_folder,
    "cartography": read_cartography,
}
