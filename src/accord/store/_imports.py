"""Import records from arrays and from files of other programs."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord._files import cause_of, load_npz
from accord.errors import ChoiceError, PredictionError, SourceError
from accord.store._import_formats import (
    Named,
    Source,
    has_dynamics,
    has_npy_files,
    read_dynamics,
    read_npy_files,
)
from accord.store._layout import SAMPLE_ARRAYS
from accord.store._metadata import make_sample_info
from accord.store._packed import write_packed
from accord.store._record_reader import ArrayReader
from accord.store._storage import CountProgress
from accord.store._validation import (
    SUM_TOLERANCE,
    Row,
    as_classes,
    check_probabilities,
    check_whole,
    row_from_logits,
    row_from_probabilities,
    to_numpy,
)

Importer = Callable[[Path, int | None], ArrayReader]


def import_record(
    source: str | os.PathLike[str],
    record: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    classes: int | None = None,
    progress: CountProgress | None = None,
) -> None:
    """Import a file or folder as a packed record.

    Args:
        source: a file or a folder.
        record: the output path, which must not exist.
        format: one of `FORMATS`. By default this follows from the file's ending or the folder's
            files.

            - `npz`: a file with `labels` (network, epoch, sample) and optionally `truth`,
              `given`, `ids`, `class_names` and `probabilities`;
            - `npy-folder`: `resnet<i>/test_resnet_<i>_<epoch>.npy`, one file per network and
              epoch; `npy-folder-train`: the same without `test_`;
            - `cartography`: `training_dynamics/dynamics_epoch_<e>.jsonl`, logits by guid.
        classes: the number of classes, by default derived from the source.
        progress: called with samples done and the total.

    Raises:
        SourceError: the source is missing, damaged or incomplete. Nothing is written.
        ChoiceError: the format is unknown, or the folder has files of several formats.
        RecordExists: something exists at `record`.
    """
    path = Path(source)
    try:
        read = _find_importer(path, format)
        if not path.exists():
            raise SourceError(f"{path}: no such file")
        reader = read(path, classes)
    except OSError as error:
        raise SourceError(f"{path}: cannot read: {cause_of(error)}") from error
    write_packed(reader, record, progress=progress)


def import_arrays(
    record: str | os.PathLike[str],
    networks: Iterable[Iterable[object]],
    *,
    classes: int | None = None,
    split: str = "test",
    **sample_info: object,
) -> None:
    """Import arrays in memory as a packed record.

    Args:
        record: the output path, which must not exist.
        networks: for each network, one array per epoch: labels (sample,), or probabilities or
            logits (sample, class); all of one kind. A single array with axes in the order
            network, epoch, sample (, class) is accepted too.
        classes: the number of classes, by default derived from the arrays.
        split: the part of the data that the samples come from.
        **sample_info: `truth`, `given`, `ids`, `class_names`, as for `Recorder`.

    Raises:
        PredictionError: an array is invalid, or has another shape or kind than the first.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/record"
    >>> import_arrays(path, [[[0, 1], [0, 1]], [[0, 0], [0, 1]]], truth=[0, 1])
    """
    unexpected = sorted(sample_info.keys() - set(SAMPLE_ARRAYS))
    if unexpected:
        raise TypeError(f"import_arrays got an unexpected argument {unexpected[0]!r}")
    named = [
        [(f"network {number}, epoch {epoch}", to_numpy(row)) for epoch, row in enumerate(network)]
        for number, network in enumerate(networks)
    ]
    arrays = gather_rows(named)
    arrays |= {name: to_numpy(value) for name, value in sample_info.items() if value is not None}
    write_packed(reader_from_arrays(arrays, classes=classes, split=split), record)


def _find_importer(path: Path, name: str | None) -> Importer:
    names = [name] if name else _formats_of(path)
    if len(names) == 1 and names[0] in FORMATS:
        return FORMATS[names[0]]
    problem = f"could be read as {' or '.join(names)}" if names else "has files of no known format"
    if len(names) == 1:
        problem = f"no importer for {names[0]!r}"
    raise ChoiceError(f"{path}: {problem}; choose one with --format: {', '.join(FORMATS)}")


def _formats_of(path: Path) -> list[str]:
    """Find the formats that match a file or folder."""
    if not path.is_dir():
        if not path.suffix and not path.exists():
            raise SourceError(f"{path}: no such file or folder")
        return [path.suffix.removeprefix(".")]
    checks = {
        "npy-folder": has_npy_files(path, test=True),
        "npy-folder-train": has_npy_files(path, test=False),
        "cartography": has_dynamics(path),
    }
    return [name for name, matches in checks.items() if matches]


def read_npz(path: Path, classes: int | None) -> ArrayReader:
    """Read predictions from an npz file."""
    try:
        arrays = load_npz(path)
    except SourceError as error:
        raise SourceError(
            f"{error}. Write it with np.savez(file, labels=labels, truth=truth), "
            "with arrays of numbers or text."
        ) from error
    try:
        split = arrays.get("split", np.array("test"))
        if split.shape or split.dtype.kind != "U" or not str(split):
            raise PredictionError(
                'split must be a name, as in np.savez(file, labels=labels, split="train"); '
                f"got {split.dtype} of shape {split.shape}"
            )
        return reader_from_arrays(arrays, classes=classes, name=str(path), split=str(split))
    except PredictionError as error:
        raise SourceError(f"{path}: {error}") from error


def reader_from_arrays(
    arrays: Mapping[str, NDArray[Any]],
    *,
    classes: int | None,
    name: str = "arrays",
    split: str = "test",
) -> ArrayReader:
    """Build a reader from a mapping of named arrays."""
    labels = _labels(arrays, name)
    classes = _classes(arrays, classes)
    info = {what: arrays.get(what) for what in SAMPLE_ARRAYS}
    sample_info = make_sample_info(samples=labels.shape[2], classes=classes, split=split, **info)
    probabilities = _probabilities(arrays, labels, classes)
    return ArrayReader(
        as_classes(labels, classes=classes), sample_info, probabilities=probabilities, name=name
    )


def _labels(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    if "labels" not in arrays:
        have = ", ".join(sorted(arrays)) or "nothing"
        hint = "Write them under that name: np.savez(file, labels=labels)"
        if "probabilities" in arrays:
            hint = "Add labels=probabilities.argmax(-1)"
        raise SourceError(f"{name}: no array named 'labels'; it has {have}. {hint}")
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
    for name in ("labels", "truth", "given"):
        if name in arrays and arrays[name].size:
            check_whole(arrays[name], name)
            largest.append(int(arrays[name].max()))
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


def _read_source(
    read: Callable[[Path], Source], path: Path, classes: int | None, *, split: str
) -> ArrayReader:
    source = read(path)
    try:
        arrays = {**gather_rows(source.networks, kind=source.kind), **source.sample_info}
        reader = reader_from_arrays(arrays, classes=classes, name=str(path), split=split)
    except PredictionError as error:
        raise SourceError(f"{path}: {error}") from error
    reader.numbers = source.numbers
    return reader


FORMATS: dict[str, Importer] = {
    "npz": read_npz,
    "npy-folder": partial(_read_source, partial(read_npy_files, test=True), split="test"),
    "npy-folder-train": partial(_read_source, partial(read_npy_files, test=False), split="train"),
    "cartography": partial(_read_source, read_dynamics, split="train"),
}


def gather_rows(
    networks: Sequence[Sequence[Named]], *, kind: str | None = None
) -> dict[str, NDArray[Any]]:
    """Stack the rows of all networks into arrays of labels and probabilities.

    All arrays must have the kind and shape of the first: labels, probabilities or logits, by
    default as `kind_of` finds. Labels are the largest entries of a table, before rounding.
    """
    counts = [len(epochs) for epochs in networks]
    if not counts or 0 in counts:
        raise PredictionError("expected at least one network with at least one epoch")
    if len(set(counts)) > 1:
        raise PredictionError(
            f"all networks need the same number of epochs; got {', '.join(map(str, counts))}"
        )
    first, example = networks[0][0]
    known, kind = kind is not None, kind or kind_of(first, example)
    shape = (len(networks), len(networks[0]), *example.shape)
    labels = np.empty(shape[:3], np.int64)
    tables = np.empty(shape, np.float16) if kind != "labels" else None
    for number, epochs in enumerate(networks):
        for epoch, (name, values) in enumerate(epochs):
            _check_alike(name, values, first, example, kind=None if known else kind)
            if tables is None:
                labels[number, epoch] = values
            else:
                row = _row(name, values, kind)
                labels[number, epoch], tables[number, epoch] = row.labels, row.probabilities
    return {"labels": labels} if tables is None else {"labels": labels, "probabilities": tables}


def kind_of(name: str, values: NDArray[Any]) -> str:
    """Infer whether an array holds labels, probabilities or logits.

    One whole number per sample is a label. A table holds probabilities if every entry lies in
    0..1 and every row sums to 1, and logits if any entry lies outside.
    """
    if values.ndim == 1 and values.size:
        check_whole(values, f"{name}: labels")
        return "labels"
    if values.ndim != 2 or values.shape[0] == 0 or values.shape[1] < 2:
        raise PredictionError(
            f"{name}: expected labels (sample,) or a table (sample, class); "
            f"got shape {values.shape}"
        )
    if values.dtype.kind != "f":
        raise PredictionError(
            f"{name}: a table of {values.dtype} is ambiguous; for labels pass one number per "
            "sample, for probabilities or logits floating-point numbers"
        )
    if not np.isfinite(values).all():
        raise PredictionError(f"{name}: has NaN or infinity. Has the network diverged?")
    if values.min() < 0 or values.max() > 1 + SUM_TOLERANCE:
        return "logits"
    sums = values.sum(axis=1, dtype=np.float64)
    if np.abs(sums - 1).max() <= SUM_TOLERANCE:
        return "probabilities"
    raise PredictionError(
        f"{name}: all entries lie in 0..1, but rows sum to {sums.min():g}..{sums.max():g}: "
        "these may be logits or unnormalised probabilities. Normalise them, or pass labels."
    )


def _row(name: str, values: NDArray[Any], kind: str) -> Row:
    samples, classes = values.shape
    make = row_from_logits if kind == "logits" else row_from_probabilities
    try:
        return make(values, samples=samples, classes=classes, keep=True)
    except PredictionError as error:
        raise PredictionError(f"{name}: {error}") from error


def _check_alike(
    name: str, values: NDArray[Any], first: str, example: NDArray[Any], *, kind: str | None
) -> None:
    if values.shape != example.shape:
        raise PredictionError(
            f"{name}: has shape {values.shape}, but {first} has {example.shape}. All networks "
            "predict the same samples at every epoch."
        )
    if kind and kind_of(name, values) != kind:
        raise PredictionError(f"{name}: has {kind_of(name, values)}, but {first} has {kind}")
