"""Append one network's rows to a record, each whole and durable or not there at all."""

import contextlib
import json
import math
import operator
import os
import time
import uuid
from collections.abc import Mapping
from typing import Any, Final, NoReturn, Self

from accord.errors import (
    ChoiceError,
    NotARecord,
    RecordClosed,
    RecordError,
    RecordMismatch,
    RowExists,
    StorageError,
    counted,
)
from accord.store import _layout as layout
from accord.store._layout import committed_epochs, made_with, now, read_commit
from accord.store._metadata import check_sample_info, read_root, write_sample_info
from accord.store._record_reader import SampleInfo
from accord.store._storage import Storage, open_storage
from accord.store._validation import Row, plain

RESIZE_SECONDS: Final = 1.0


class Writer:
    """The one writer of one network; a context manager.

    Opening it again appends after the last committed row.
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        sample_info: SampleInfo,
        *,
        network: int,
        probabilities: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        network = _checked_network(network)
        said = plain(_checked_metadata(metadata))
        self.place = open_storage(location)
        self.network = network
        self.sample_info = sample_info
        self._arrays = _arrays(sample_info, probabilities=probabilities)
        self._token = uuid.uuid4().hex
        self._process = os.getpid()
        self._resources = contextlib.ExitStack()
        self._open = False
        self._tried: int | None = None
        _create_root(self.place, sample_info)
        check_sample_info(self.place, sample_info)
        _create_network(self.place, network, self._arrays, said)
        self._resources.enter_context(self.place.hold(_network_key(network)))
        try:
            write_sample_info(
                self.place, sample_info
            )  # not before: a recorder that is refused tells nothing
            self.epochs = self._resume()
        except BaseException:
            self._resources.close()
            raise
        self._open = True

    @property
    def progress(self) -> float:
        """The progress of the last row, 0 before the first."""
        return max(self._progress, 0.0)

    def _resume(self) -> int:
        self.place.sweep(layout.network_folder(self.network))
        committed = committed_epochs(self.place, self.network)
        self._progress = -math.inf
        if committed:
            self._progress = read_commit(self.place, self.network, committed - 1)["progress"]
        self._resize(committed, make=True)
        # What lies there without a commit is a dead writer's and may be overwritten; where
        # nothing lies, what appears is another writer's.
        self._tried = committed if self._leftovers(committed) else None
        return committed

    def _leftovers(self, epoch: int) -> bool:
        keys = [layout.row_key(self.network, array, epoch) for array in self._arrays]
        return any(self.place.get(key) is not None for key in keys)

    def write(
        self,
        row: Row,
        *,
        epoch: int | None = None,
        progress: float | None = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> None:
        """Append one row and return once it is on the disk.

        `epoch` is the row's position if the caller counts along, and `progress` the true
        epoch, by default one per row.
        """
        self.check_open()
        progress = self._checked_progress(self.epochs + 1 if progress is None else progress)
        self._check_new(self._checked_epoch(epoch), progress)
        objects = self._encoded(row)
        commit = self._commit_document(progress, objects, plain(metrics or {}))
        try:
            for array, data in objects.items():
                self._write_object(layout.row_key(self.network, array, self.epochs), data)
            self._write_commit(commit)
            self.epochs, self._progress = self.epochs + 1, progress
        except RowExists:
            raise
        except BaseException:  # Ctrl-C too
            self._tried = self.epochs  # what lies there is ours: the next try overwrites it
            raise
        if time.monotonic() - self._resized > RESIZE_SECONDS:
            with contextlib.suppress(StorageError):  # the row is safe; the next one may succeed
                self._resize(self.epochs)

    def _encoded(self, row: Row) -> dict[str, bytes]:
        objects = {}
        for array in self._arrays:
            values = row.labels if array == layout.LABELS else row.probabilities
            if values is None:
                raise RecordError(f"{self.place.name}: a row without {array}")
            objects[array] = layout.encode(values)
        return objects

    def _write_object(self, key: str, data: bytes) -> None:
        # Object stores have no locks: look before writing, so that a second writer finds out
        # before it overwrites the first one's row.
        commit = self.place.get(layout.commit_key(self.network, self.epochs))
        if commit is not None and not self._is_ours(commit):
            self._refuse_second_writer()
        if self._tried == self.epochs:
            self.place.put(key, data, make=False)
        elif not self.place.create(key, data, make=False):
            self._refuse_second_writer()

    def _is_ours(self, commit: bytes | None) -> bool:
        """Tell whether a commit is what an interrupted try of this very writer left."""
        return layout.facts_in_commit(commit or b"").get("writer") == self._token

    def _refuse_second_writer(self) -> NoReturn:
        raise RowExists(
            f"{self.place.name}: network {self.network}, epoch {self.epochs} was recorded by "
            "another writer since this one opened. One network takes one writer."
        )

    def _commit_document(
        self, progress: float, objects: dict[str, bytes], told: dict[str, Any]
    ) -> bytes:
        return layout.commit_document(
            {
                "epoch": self.epochs,
                "progress": progress,
                "objects": {
                    array: {"bytes": len(data), "blake2b": layout.checksum(data)}
                    for array, data in objects.items()
                },
                "told": told,
                "writer": self._token,
                "time": now(),
            }
        )

    def _write_commit(self, commit: bytes) -> None:
        key = layout.commit_key(self.network, self.epochs)
        if self.place.create(key, commit, make=False):
            return
        if not self._is_ours(self.place.get(key)):
            self._refuse_second_writer()
        self.place.put(key, commit, make=False)

    def _resize(self, epochs: int, *, make: bool = False) -> None:
        # For other Zarr readers alone: ours count commits. So a row need not wait for it, and a
        # recorder that was killed leaves it to the next one.
        for array, (shape, dtype) in self._arrays.items():
            key = layout.array_key(self.network, array)
            document = layout.array_document((epochs, *shape), chunks=(1, *shape), dtype=dtype)
            self.place.put(key, document, flush=False, make=make)
        key = layout.array_key(self.network, layout.COMMITS)
        commits = layout.array_document((epochs,), chunks=(1,), dtype=layout.TEXT, compressed=False)
        self.place.put(key, commits, flush=False, make=make)
        self._resized = time.monotonic()

    def close(self) -> None:
        """Let the network go; closing twice is harmless."""
        if self._open and os.getpid() == self._process:
            self._open = False
            with self._resources, contextlib.suppress(StorageError):  # the next one does it
                self._resize(self.epochs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check_open(self) -> None:
        """Refuse to go on if it was closed, or belongs to another process."""
        if not self._open:
            raise RecordClosed(
                f"{self.place.name}: the recorder of network {self.network} is closed; "
                "open a new one to append"
            )
        if os.getpid() != self._process:
            raise RecordClosed(
                f"{self.place.name}: the recorder of network {self.network} belongs to process "
                f"{self._process}; a forked process must open its own"
            )

    def _checked_progress(self, progress: Any) -> float:
        with contextlib.suppress(TypeError, ValueError, RuntimeError):  # tensors raise the last
            number = float(progress)
            if 0 <= number < math.inf:
                return number
        raise RecordError(
            f"{self.place.name}: progress must be a finite number, 0 or more; got {progress!r}. "
            "It is the true epoch, such as 0.1; leave it out to count one for each row."
        )

    def _checked_epoch(self, epoch: Any) -> int | None:
        if epoch is None:
            return None
        try:
            return operator.index(epoch)
        except TypeError as error:
            raise RecordError(
                f"{self.place.name}: epoch must be a whole number; got {epoch!r}. "
                "It is the row's position, from 0; the true epoch, such as 0.1, is progress."
            ) from error

    def _check_new(self, epoch: int | None, progress: float) -> None:
        here = f"{self.place.name}: network {self.network} holds {counted(self.epochs, 'epoch')}"
        if epoch is not None and epoch < self.epochs:
            raise RowExists(
                f"{here}; epoch {epoch} was recorded before. "
                "After a restart, begin at recorder.epochs."
            )
        if epoch is not None and epoch > self.epochs:
            raise RecordError(f"{here}, so the next is {self.epochs}; got epoch {epoch}")
        if progress <= self._progress:
            raise RowExists(
                f"{here}, the last at progress {self._progress:g}; got {progress:g}, which was "
                "recorded before. After a restart, begin at recorder.epochs."
            )


def _arrays(
    sample_info: SampleInfo, *, probabilities: bool
) -> dict[str, tuple[tuple[int, ...], str]]:
    arrays: dict[str, tuple[tuple[int, ...], str]] = {
        layout.LABELS: ((sample_info.samples,), layout.label_dtype(sample_info.classes).name)
    }
    if probabilities:
        arrays[layout.PROBABILITIES] = ((sample_info.samples, sample_info.classes), "float16")
    return arrays


def _create_root(place: Storage, sample_info: SampleInfo) -> None:
    if place.get(layout.ROOT) is None:
        others = [name for name in place.children() if not name.startswith(".")]
        if others and layout.ROOT not in place.children():
            raise NotARecord(
                f"{place.name}: holds {others[0]!r} and no record; give an empty or new folder"
            )
        root = {
            "format": layout.FORMAT,
            "layout": layout.ROWS,
            "samples": sample_info.samples,
            "classes": sample_info.classes,
            "split": sample_info.split,
            "created": now(),
            "made_with": made_with(),
        }
        place.create(layout.ROOT, layout.group_document(root))
    _check_same_root(place, sample_info)


def _check_same_root(place: Storage, sample_info: SampleInfo) -> None:
    root = read_root(place)
    if root["layout"] != layout.ROWS:
        raise RecordMismatch(
            f"{place.name}: the record is packed and takes no more rows; record elsewhere"
        )
    for what in ("samples", "classes", "split"):
        if root[what] != getattr(sample_info, what):
            raise RecordMismatch(
                f"{place.name}: the record has {what} {root[what]}; "
                f"this recorder says {getattr(sample_info, what)}. Record other data elsewhere."
            )


def _network_key(network: int) -> str:
    return f"{layout.network_folder(network)}/{layout.ROOT}"


def _create_network(
    place: Storage,
    network: int,
    arrays: Mapping[str, tuple[tuple[int, ...], str]],
    about: dict[str, Any],
) -> None:
    said = {"network": network, "arrays": list(arrays), "about": about}
    key = _network_key(network)
    place.create(key, layout.group_document({**said, "made_with": made_with(), "created": now()}))
    there = layout.facts_in(place.get(key) or b"")
    for what, value in said.items():
        if there.get(what) != json.loads(json.dumps(value)):
            raise RecordMismatch(
                f"{place.name}: network {network} was recorded with {what} {there.get(what)}; "
                f"this recorder says {value}. Give it another network number."
            )


def _checked_metadata(metadata: Any) -> Mapping[str, Any]:
    if metadata is None:
        return {}
    if isinstance(metadata, Mapping):
        return metadata
    raise ChoiceError(
        f"metadata must be a mapping; got a {type(metadata).__name__}. "
        'Give a dict, such as metadata={"seed": 3}'
    )


MOST_NETWORKS: Final = 1_000_000


def _checked_network(network: Any) -> int:
    with contextlib.suppress(TypeError):
        number = operator.index(network)  # numpy's numbers too: JSON takes Python's alone
        if 0 <= number < MOST_NETWORKS:
            return number
    raise ChoiceError(f"network must be a whole number in 0..{MOST_NETWORKS - 1}; got {network!r}")
