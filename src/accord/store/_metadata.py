"""Metadata on the samples and classes of a record."""

import contextlib
import json
import operator
import os
import time
from collections import Counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import (
    ChoiceError,
    NotARecord,
    PredictionError,
    RecordMismatch,
    RecordMissing,
    RowDamaged,
    StorageError,
    VersionError,
    counted,
)
from accord.store import _record_format as layout
from accord.store._record_reader import SampleInfo
from accord.store._storage import Storage, open_storage
from accord.store._validation import as_labels, ids_to_numpy, to_numpy

MOST_CLASSES: Final = 2**32  # labels are stored as uint32 at most
START_ANEW: Final = (
    "Record other data elsewhere; to remove this record and start it anew: overwrite=True."
)
WAIT_SECONDS: Final = 2.0  # for another recorder to finish writing an array


def make_sample_info(
    *,
    samples: int,
    classes: int,
    split: str = "test",
    truth: object = None,
    given: object = None,
    ids: object = None,
    class_names: object = None,
) -> SampleInfo:
    """Validate information about the samples and classes of a record.

    >>> make_sample_info(samples=2, classes=3, truth=[0, 2]).truth
    array([0, 2], dtype=uint8)
    """
    samples, classes = _whole(samples, "samples"), _whole(classes, "classes")
    _check_sizes(samples, classes, split)

    names = None if class_names is None else _as_names(to_numpy(class_names), classes)

    def labels(name: str, values: object) -> NDArray[Any] | None:
        if values is None:
            return None
        sizes = {"samples": samples, "classes": classes}
        return as_labels(to_numpy(values), **sizes, name=name, class_names=names)

    return SampleInfo(
        samples=samples,
        classes=classes,
        split=split,
        truth=labels("truth", truth),
        given=labels("given", given),
        ids=None if ids is None else _as_ids(ids_to_numpy(ids), samples),
        class_names=names,
    )


def _whole(size: Any, name: str) -> int:
    try:
        return operator.index(size)  # also numbers of numpy and torch; JSON accepts only Python's
    except TypeError as error:
        raise PredictionError(f"{name} must be a whole number; got {size!r}") from error


def _check_sizes(samples: int, classes: int, split: object) -> None:
    if samples < 1 or classes < 1:
        raise PredictionError(
            f"a record needs at least one sample and one class; got {samples} and {classes}"
        )
    if classes > MOST_CLASSES:
        raise PredictionError(
            f"a record holds at most {MOST_CLASSES} classes; got {classes}. "
            "Are the labels ids or hashes? Number the classes from 0."
        )
    if not isinstance(split, str) or not split:
        raise PredictionError(f'split must be a name such as "test"; got {split!r}')


def _as_ids(ids: NDArray[Any], samples: int) -> NDArray[Any]:
    if ids.shape != (samples,):
        raise PredictionError(f"ids must have shape ({samples},); got {ids.shape}")
    if ids.dtype.kind in "SUO":
        ids = np.array(_as_texts(ids, "ids"), dtype=np.str_)
    elif ids.dtype.kind not in "iu":
        ids = ids.astype(np.str_)
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < samples:
        raise PredictionError(
            f"ids must be unique; {values[counts.argmax()]} occurs twice. Give each sample one of "
            "its own, or no ids"
        )
    return ids


def _as_names(names: NDArray[Any], classes: int) -> tuple[str, ...]:
    if names.shape != (classes,):
        raise PredictionError(
            f"class_names must be {counted(classes, 'name')}; got shape {names.shape}. List one "
            "for each class, in the order of the labels"
        )
    found = tuple(_as_texts(names, "class_names"))
    (often, times), *_ = Counter(found).most_common(1)
    if times > 1:
        first, second = [number for number, name in enumerate(found) if name == often][:2]
        raise PredictionError(
            f"class_names must be unique; classes {first} and {second} are both named {often!r}. "
            "Rename one of them, or give no names."
        )
    return found


def _as_texts(names: NDArray[Any], argument: str) -> list[str]:
    texts = []
    for position, name in enumerate(names.tolist()):
        try:
            texts.append(name.decode() if isinstance(name, bytes) else str(name))
            texts[-1].encode()  # a lone surrogate is a str but not valid text
        except UnicodeError as error:
            raise PredictionError(
                f"{argument} must be text in UTF-8; number {position} is {name!r}. "
                "Is it a file name in another encoding? Decode it with that encoding."
            ) from error
    return texts


def record_paths(location: str | os.PathLike[str]) -> dict[str, str]:
    """Find the records of a run folder by the name of their split, such as `test-ema`.

    Empty for a record itself, and where there is none.
    """
    storage = open_storage(location)
    found: dict[str, str] = {}
    if storage.get(layout.ROOT) is not None:
        return found
    for name in storage.children():
        path, stem = f"{storage.name}/{name}", name.removesuffix(".zip")
        with contextlib.suppress(StorageError):  # another zip file
            root = layout.parse_attributes(open_storage(path).get(layout.ROOT) or b"")
            # Other records below a folder are records of their own.
            if stem == root.get("split") or stem.startswith(f"{root.get('split')}-"):
                found[stem] = path
    return found


def open_record_storage(
    location: str | os.PathLike[str], *, split: str | None = None, first: str = "test"
) -> Storage:
    """Open the storage of a record, or of one record of a run folder; see `open_reader`."""
    paths = record_paths(location)
    if not paths:
        storage = open_storage(location)
        own = layout.parse_attributes(storage.get(layout.ROOT) or b"").get("split", split)
        if split not in (None, own):
            raise ChoiceError(
                f"{storage.name}: the record holds the split {own}, not {split}. Omit the split, "
                "or open the record of that split"
            )
        return storage
    wanted = (first, "test", *(paths if len(paths) == 1 else ())) if split is None else (split,)
    for name in wanted:
        if name in paths:
            return open_storage(paths[name])
    problem = "choose one" if split is None else f"there is no {split}"
    raise ChoiceError(
        f"{location}: the run holds the records {', '.join(paths)}; {problem}: "
        f"--split {next(iter(paths))}, or open(…, split={next(iter(paths))!r})"
    )


def read_root(storage: Storage) -> dict[str, Any]:
    """Read the metadata of a record and check its version."""
    document = storage.get(layout.ROOT)
    if document is None and not storage.exists():
        raise RecordMissing(
            f"{storage.name}: {storage.nothing}. Records are written by a recorder; "
            "to make one from arrays: accord import labels.npz RECORD"
        )
    if document is None:
        raise NotARecord(f"{storage.name}: not a record: {_why_none(storage.name)}")
    root = layout.parse_attributes(document)
    if "format" not in root:
        raise NotARecord(f"{storage.name}: its {layout.ROOT} was not written by Accord")
    if root["format"] not in (layout.FORMAT, layout.FORMAT_WITH_MISSING):
        raise VersionError(
            f"{storage.name}: has record format {root['format']}; this version of Accord reads "
            f"format {layout.FORMAT}, and {layout.FORMAT_WITH_MISSING} with missing votes. "
            "A newer version may read it: pip install --upgrade accord"
        )
    missing = {"layout", "samples", "classes", "split"} - root.keys()
    if missing:
        raise NotARecord(f"{storage.name}: {layout.ROOT} lacks {', '.join(sorted(missing))}")
    for what in ("samples", "classes"):
        if not isinstance(root[what], int):
            raise NotARecord(
                f"{storage.name}: {layout.ROOT} is damaged: {what} must be a whole number; "
                f"got {root[what]!r}"
            )
    return root


def _why_none(name: str) -> str:
    if os.path.isfile(name):  # noqa: PTH113 -- a URL is no path
        return f"it is a file. If it holds predictions: accord import {name} RECORD"
    stopped = "If a recorder was stopped while it started, start it again."
    return f"it has no {layout.ROOT}. {stopped}"


def read_sample_info(storage: Storage) -> SampleInfo:
    root = read_root(storage)
    arrays: dict[str, Any] = {
        name: read_sample_array(storage, name) for name in layout.SAMPLE_ARRAYS
    }
    if arrays["class_names"] is not None:
        arrays["class_names"] = tuple(str(name) for name in arrays["class_names"])
    return SampleInfo(root["samples"], root["classes"], root["split"], **arrays)


def check_sizes(storage: Storage, sample_info: SampleInfo) -> None:
    """Check that a record has the samples, classes and split of a recorder."""
    root = read_root(storage)
    if root["layout"] != layout.ROWS:
        raise RecordMismatch(
            f"{storage.name}: the record is packed and read-only; record elsewhere"
        )
    for name in ("samples", "classes", "split"):
        if root[name] != getattr(sample_info, name):
            raise RecordMismatch(
                f"{storage.name}: the record has {name} {root[name]}; "
                f"this recorder has {getattr(sample_info, name)}. {START_ANEW}"
            )


def check_sample_info(storage: Storage, sample_info: SampleInfo, *, write: bool = False) -> None:
    """Compare or write the sample arrays of a record."""
    for name in layout.SAMPLE_ARRAYS:
        values = getattr(sample_info, name)
        if values is not None:
            (_write_array if write else _check_array)(storage, name, np.asarray(values))


def _write_array(storage: Storage, name: str, values: NDArray[Any]) -> None:
    axis = "class" if name == "class_names" else "sample"
    document, data = encode_sample_array(values, axis=axis)
    root, chunk = f"{name}/{layout.ROOT}", f"{name}/c.0"
    if storage.get(root) is None:
        # A chunk without metadata is either being written by another recorder, which takes an
        # instant, or was left by one that was killed, and may hold anything.
        written = storage.create(chunk, data) or storage.get(chunk) == data
        if not written and not _appears(storage, root):
            storage.put(chunk, data)
        storage.create(root, document)
    _check_array(storage, name, values)


def _appears(storage: Storage, key: str) -> bool:
    """Wait until another recorder has written a key."""
    deadline = time.monotonic() + WAIT_SECONDS
    while storage.get(key) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(WAIT_SECONDS / 100)
    return True


def _check_array(storage: Storage, name: str, values: NDArray[Any]) -> None:
    recorded = read_sample_array(storage, name)
    if recorded is None:
        return
    if values.dtype.kind not in "iu" or recorded.dtype.kind not in "iu":
        recorded, values = recorded.astype(np.str_), values.astype(np.str_)
    different = np.flatnonzero(recorded != values)  # of one length, as the sizes are equal
    if different.size:
        first = different[0]
        raise RecordMismatch(
            f"{storage.name}: the record's {name} differ from this recorder's in "
            f"{different.size} of {values.size}; the first is number {first}: {recorded[first]} "
            f"in the record, {values[first]} here. All networks of a record predict the same "
            f"samples, in the same order. {START_ANEW}"
        )


def encode_sample_array(values: NDArray[Any], *, axis: str = "sample") -> tuple[bytes, bytes]:
    """Encode an array of integers or strings as Zarr metadata and one chunk."""
    dtype = values.dtype.name if values.dtype.kind in "iu" else layout.TEXT
    data = layout.encode(values if dtype != layout.TEXT else values.astype(np.str_))
    attributes = {"blake2b": layout.checksum(data)}
    document = layout.array_document(
        values.shape, axes=[axis], chunks=values.shape, dtype=dtype, attributes=attributes
    )
    return document, data


def read_sample_array(storage: Storage, name: str) -> NDArray[Any] | None:
    document = storage.get(f"{name}/{layout.ROOT}")
    if document is None:
        return None
    try:
        metadata = json.loads(document)
        data = storage.get(f"{name}/c.0") or b""
        if layout.checksum(data) != layout.parse_attributes(document)["blake2b"]:
            raise ValueError("it does not match its checksum")
        return layout.decode(data, shape=metadata["shape"], dtype=metadata["data_type"])
    except (ValueError, KeyError, TypeError) as error:
        raise RowDamaged(f"{storage.name}: {name} is damaged: {error}") from error
