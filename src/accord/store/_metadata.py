"""What a record says of its samples and classes: checked, written once, compared ever after."""

import json
import operator
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import (
    NotARecord,
    PredictionError,
    RecordMismatch,
    RecordMissing,
    RowDamaged,
    VersionError,
    counted,
)
from accord.store import _layout as layout
from accord.store._record_reader import SampleInfo
from accord.store._storage import Storage
from accord.store._validation import as_labels, ids_to_numpy, to_numpy

MOST_CLASSES: Final = 2**32  # labels are stored as uint32 at most
COMES_SECONDS: Final = 2.0  # for what another recorder is writing to be there


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
    """Check what a caller says of the samples and classes.

    >>> make_sample_info(samples=2, classes=3, truth=[0, 2]).truth
    array([0, 2], dtype=uint8)
    """
    samples, classes = _whole(samples, "samples"), _whole(classes, "classes")
    _check_sizes(samples, classes, split)

    def labels(what: str, values: object) -> NDArray[Any] | None:
        if values is None:
            return None
        return as_labels(to_numpy(values), samples=samples, classes=classes, what=what)

    return SampleInfo(
        samples=samples,
        classes=classes,
        split=split,
        truth=labels("truth", truth),
        given=labels("given", given),
        ids=None if ids is None else _as_ids(ids_to_numpy(ids), samples),
        class_names=None if class_names is None else _as_names(to_numpy(class_names), classes),
    )


def _whole(size: Any, what: str) -> int:
    try:
        return operator.index(size)  # numpy's and torch's numbers too: JSON takes Python's alone
    except TypeError as error:
        raise PredictionError(f"{what} must be a whole number; got {size!r}") from error


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
        raise PredictionError(f'split must be a word such as "test"; got {split!r}')


def _as_ids(ids: NDArray[Any], samples: int) -> NDArray[Any]:
    if ids.shape != (samples,):
        raise PredictionError(f"ids must have shape ({samples},); got {ids.shape}")
    if ids.dtype.kind in "SUO":
        ids = np.array(_as_texts(ids, "ids"), dtype=np.str_)
    elif ids.dtype.kind not in "iu":
        ids = ids.astype(np.str_)
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < samples:
        raise PredictionError(f"ids must differ; {values[counts.argmax()]} is there twice")
    return ids


def _as_names(names: NDArray[Any], classes: int) -> tuple[str, ...]:
    if names.shape != (classes,):
        raise PredictionError(
            f"class_names must be {counted(classes, 'name')}; got shape {names.shape}"
        )
    found = tuple(_as_texts(names, "class_names"))
    (often, times), *_ = Counter(found).most_common(1)
    if times > 1:
        first, second = [number for number, name in enumerate(found) if name == often][:2]
        raise PredictionError(
            f"class_names must differ; classes {first} and {second} are both named {often!r}. "
            "Add to each what tells it from the other, or give no names."
        )
    return found


def _as_texts(names: NDArray[Any], what: str) -> list[str]:
    texts = []
    for position, name in enumerate(names.tolist()):
        try:
            texts.append(name.decode() if isinstance(name, bytes) else str(name))
            texts[-1].encode()  # half of a pair of surrogates is a str, yet no text
        except UnicodeError as error:
            raise PredictionError(
                f"{what} must be text in UTF-8; number {position} is {name!r}. "
                "Is it the name of a file in another encoding? Decode it with that one."
            ) from error
    return texts


def read_root(place: Storage) -> dict[str, Any]:
    """Return what the top of a record says; an error if there is none, or of another version."""
    document = place.get(layout.ROOT)
    if document is None and not place.exists():
        raise RecordMissing(
            f"{place.name}: {place.nothing}. A record is what a recorder wrote; "
            "to make one from arrays: accord import labels.npz RECORD"
        )
    if document is None:
        raise NotARecord(
            f"{place.name}: not a record: there is no {layout.ROOT} in it. "
            "If a recorder was stopped in its first moments, start it again."
        )
    root = layout.facts_in(document)
    if "format" not in root:
        raise NotARecord(f"{place.name}: {layout.ROOT} is there but was not written by Accord")
    if root["format"] != layout.FORMAT:
        raise VersionError(
            f"{place.name}: written in record format {root['format']}; this Accord reads format "
            f"{layout.FORMAT}. A newer one may read it: pip install --upgrade accord"
        )
    missing = {"layout", "samples", "classes", "split"} - root.keys()
    if missing:
        raise NotARecord(f"{place.name}: {layout.ROOT} does not say {', '.join(sorted(missing))}")
    for what in ("samples", "classes"):
        if not isinstance(root[what], int):
            raise NotARecord(
                f"{place.name}: {layout.ROOT} is damaged: {what} must be a whole number; "
                f"it says {root[what]!r}"
            )
    return root


def read_sample_info(place: Storage) -> SampleInfo:
    """Return all a record says of its samples and classes."""
    root = read_root(place)
    names = read_fact(place, "class_names")
    return SampleInfo(
        samples=root["samples"],
        classes=root["classes"],
        split=root["split"],
        truth=read_fact(place, "truth"),
        given=read_fact(place, "given"),
        ids=read_fact(place, "ids"),
        class_names=None if names is None else tuple(str(name) for name in names),
    )


def write_sample_info(place: Storage, sample_info: SampleInfo) -> None:
    """Write the facts that are not there yet; refuse those that differ from what is there."""
    for fact, values in _given(sample_info):
        _write_fact(place, fact, values)


def check_sample_info(place: Storage, sample_info: SampleInfo) -> None:
    """Refuse facts that differ from what is there; write nothing."""
    for fact, values in _given(sample_info):
        _check_fact(place, fact, values)


def _given(sample_info: SampleInfo) -> Iterator[tuple[str, NDArray[Any]]]:
    for fact in layout.FACTS:
        values = getattr(sample_info, fact)
        if values is not None:
            yield fact, np.asarray(values)


def _write_fact(place: Storage, fact: str, values: NDArray[Any]) -> None:
    document, data = encode_fact(values)
    root, chunk = f"{fact}/{layout.ROOT}", f"{fact}/c.0"
    if place.get(root) is None:
        # Without its metadata it is either being written by another recorder, which is a matter
        # of moments, or was left by one that was killed, and may say anything.
        if not place.create(chunk, data) and place.get(chunk) != data and not _comes(place, root):
            place.put(chunk, data)
        place.create(root, document)
    _check_fact(place, fact, values)


def _comes(place: Storage, key: str) -> bool:
    """Tell whether another recorder is writing this, waiting for it to be there."""
    deadline = time.monotonic() + COMES_SECONDS
    while place.get(key) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(COMES_SECONDS / 100)
    return True


def _check_fact(place: Storage, fact: str, values: NDArray[Any]) -> None:
    there = read_fact(place, fact)
    if there is not None and not _same(there, values):
        raise RecordMismatch(
            f"{place.name}: the record's {fact} differ from this recorder's. "
            "All networks of a record predict the same samples, in the same order."
        )


def _same(there: NDArray[Any], values: NDArray[Any]) -> bool:
    if there.shape != values.shape:
        return False
    if values.dtype.kind in "iu" and there.dtype.kind in "iu":
        return bool(np.array_equal(there, values))
    return [str(one) for one in there.tolist()] == [str(one) for one in values.tolist()]


def encode_fact(values: NDArray[Any]) -> tuple[bytes, bytes]:
    """Return the Zarr metadata and the one chunk of a fact: whole numbers or text."""
    dtype = values.dtype.name if values.dtype.kind in "iu" else layout.TEXT
    data = layout.encode(values if dtype != layout.TEXT else values.astype(np.str_))
    sample_info = {"blake2b": layout.checksum(data)}
    return layout.array_document(
        values.shape, chunks=values.shape, dtype=dtype, sample_info=sample_info
    ), data


def read_fact(place: Storage, fact: str) -> NDArray[Any] | None:
    """Return one of the facts, None if it was not recorded, or say that it is damaged."""
    document = place.get(f"{fact}/{layout.ROOT}")
    if document is None:
        return None
    try:
        said = json.loads(document)
        sample_info = layout.facts_in(document)
        data = place.get(f"{fact}/c.0") or b""
        if layout.checksum(data) != sample_info["blake2b"]:
            raise ValueError("it does not match its checksum")
        return layout.decode(data, shape=said["shape"], dtype=said["data_type"])
    except (ValueError, KeyError, TypeError) as error:
        raise RowDamaged(f"{place.name}: {fact} is damaged: {error}") from error
