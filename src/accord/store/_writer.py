"""Append rows to a record atomically.

A row is written in two steps: its arrays, then a commit with their checksums. Whatever lies in
the record without a commit was left by a writer that was stopped, and may be overwritten. Each
writer's commits carry a random token, which distinguishes its own interrupted attempt from a
second writer's row, on storage without locks.
"""

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
from accord.store import _record_format as layout
from accord.store._metadata import check_sample_info, check_sizes, read_root
from accord.store._record_format import committed_epochs, made_with, now, read_commit
from accord.store._record_reader import SampleInfo
from accord.store._removal import hold_networks, remove_network
from accord.store._storage import Storage, open_storage
from accord.store._unpacked_reader import network_numbers
from accord.store._validation import Row, plain

RESIZE_SECONDS: Final = 1.0


class Writer:
    """Context manager for writing the rows of one network.

    Opening it again resumes after the last committed row.
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        sample_info: SampleInfo,
        *,
        network: int,
        probabilities: bool = False,
        metadata: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        network = _checked_network(network)
        checked = plain(_checked_metadata(metadata))
        self.storage = open_storage(location)
        self.network = network
        self.sample_info = sample_info
        size = {"samples": sample_info.samples, "classes": sample_info.classes}
        names = (layout.LABELS, layout.PROBABILITIES)[: 1 + probabilities]
        self._arrays = {name: layout.row_shape(name, **size) for name in names}
        self._token = uuid.uuid4().hex
        self._process = os.getpid()
        self._resources = contextlib.ExitStack()
        self._open = False
        self._attempted: int | None = None  # an epoch whose arrays may be overwritten
        _create_root(self.storage, sample_info)
        if overwrite:
            _start_anew(self.storage, sample_info, network)
        check_sizes(self.storage, sample_info)
        check_sample_info(self.storage, sample_info)
        _create_network(self.storage, network, self._arrays, checked)
        self._resources.enter_context(self.storage.hold(layout.network_key(network)))
        try:
            # Only now: a recorder that is refused must write nothing.
            check_sample_info(self.storage, sample_info, write=True)
            self.epochs = self._resume()
        except BaseException:
            self._resources.close()
            raise
        self._open = True

    @property
    def is_open(self) -> bool:
        """Whether this process can write rows."""
        return self._open and os.getpid() == self._process

    @property
    def progress(self) -> float:
        """Progress of the last row, 0 before the first."""
        return max(self._progress, 0.0)

    def _resume(self) -> int:
        self.storage.sweep(layout.network_folder(self.network))
        committed = committed_epochs(self.storage, self.network)
        self._progress = -math.inf
        if committed:
            self._progress = read_commit(self.storage, self.network, committed - 1)["progress"]
        self._resize(committed, make=True)
        # Arrays without a commit were left by a dead writer and may be overwritten. If there are
        # none now, arrays that appear later are another writer's.
        keys = [layout.row_key(self.network, array, committed) for array in self._arrays]
        leftovers = any(self.storage.get(key) is not None for key in keys)
        self._attempted = committed if leftovers else None
        return committed

    def write(
        self,
        row: Row,
        *,
        epoch: int | None = None,
        progress: float | None = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> None:
        """Append one row and flush it to disk.

        Args:
            row: the predictions.
            epoch: the expected position of the row, checked before writing.
            progress: the true epoch, by default one per row.
            metrics: stored with the row as JSON.
        """
        self.check_open()
        progress = self._checked_progress(self.epochs + 1 if progress is None else progress)
        self._check_new(epoch, progress)
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
            self._attempted = self.epochs  # the arrays are ours: the next attempt overwrites them
            raise
        if time.monotonic() - self._resized > RESIZE_SECONDS:
            with contextlib.suppress(StorageError):  # the row is safe; the next resize may succeed
                self._resize(self.epochs)

    def _encoded(self, row: Row) -> dict[str, bytes]:
        objects = {}
        for array in self._arrays:
            values = row.labels if array == layout.LABELS else row.probabilities
            if values is None:
                raise RecordError(f"{self.storage.name}: the row has no {array}")
            objects[array] = layout.encode(values)
        return objects

    def _write_object(self, key: str, data: bytes) -> None:
        # Object stores have no locks: check before writing, so that a second writer raises
        # before it overwrites the first one's row.
        commit = self.storage.get(layout.commit_key(self.network, self.epochs))
        if commit is not None and not self._is_ours(commit):
            self._refuse_second_writer()
        if self._attempted == self.epochs:
            self.storage.put(key, data, make=False)
        elif not self.storage.create(key, data, make=False):
            self._refuse_second_writer()

    def _is_ours(self, commit: bytes | None) -> bool:
        return layout.parse_commit(commit or b"").get("writer") == self._token

    def _refuse_second_writer(self) -> NoReturn:
        raise RowExists(
            f"{self.storage.name}: network {self.network}, epoch {self.epochs} was recorded by "
            "another writer since this one opened. One network takes one writer."
        )

    def _commit_document(
        self, progress: float, objects: dict[str, bytes], metrics: dict[str, Any]
    ) -> bytes:
        return layout.commit_document(
            {
                "epoch": self.epochs,
                "progress": progress,
                "objects": {
                    array: {"bytes": len(data), "blake2b": layout.checksum(data)}
                    for array, data in objects.items()
                },
                layout.METRICS: metrics,
                "writer": self._token,
                "time": now(),
            }
        )

    def _write_commit(self, commit: bytes) -> None:
        key = layout.commit_key(self.network, self.epochs)
        if self.storage.create(key, commit, make=False):
            return
        if not self._is_ours(self.storage.get(key)):
            self._refuse_second_writer()
        self.storage.put(key, commit, make=False)

    def _resize(self, epochs: int, *, make: bool = False) -> None:
        # Only other Zarr readers need the shape; ours count commits. A row therefore does not wait
        # for it, and if a recorder is killed, the next one writes it.
        for array, (shape, dtype) in self._arrays.items():
            key = layout.array_key(self.network, array)
            axes = layout.AXES[1 : 2 + len(shape)]
            document = layout.array_document(
                (epochs, *shape), axes=axes, chunks=(1, *shape), dtype=dtype
            )
            self.storage.put(key, document, flush=False, make=make)
        key = layout.array_key(self.network, layout.COMMITS)
        commits = layout.array_document(
            (epochs,), axes=["epoch"], chunks=(1,), dtype=layout.TEXT, compressed=False
        )
        self.storage.put(key, commits, flush=False, make=make)
        self._resized = time.monotonic()

    def close(self) -> None:
        """Release the network for other writers."""
        if self.is_open:
            self._open = False
            with self._resources, contextlib.suppress(StorageError):  # the next writer does it
                self._resize(self.epochs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check_open(self) -> None:
        """Check that the writer is open."""
        if not self._open:
            raise RecordClosed(
                f"{self.storage.name}: the recorder of network {self.network} is closed; "
                "open a new one to append"
            )
        if os.getpid() != self._process:
            raise RecordClosed(
                f"{self.storage.name}: the recorder of network {self.network} belongs to process "
                f"{self._process}; a forked process must open its own"
            )

    def _checked_progress(self, progress: Any) -> float:
        with contextlib.suppress(TypeError, ValueError, RuntimeError):  # tensors raise RuntimeError
            number = float(progress)
            if 0 <= number < math.inf:
                return number
        raise RecordError(
            f"{self.storage.name}: progress must be a finite number, 0 or more; got {progress!r}. "
            "It is the true epoch, such as 0.1; omit it to count one per row."
        )

    def _check_new(self, epoch: Any, progress: float) -> None:
        here = f"{self.storage.name}: network {self.network} holds {counted(self.epochs, 'epoch')}"
        try:
            epoch = self.epochs if epoch is None else operator.index(epoch)
        except TypeError as error:
            raise RecordError(
                f"{self.storage.name}: epoch must be a whole number; got {epoch!r}. "
                "It is the row's position, from 0; the true epoch, such as 0.1, goes to `progress`."
            ) from error
        if epoch < self.epochs:
            raise RowExists(
                f"{here}; epoch {epoch} was recorded before. "
                "After a restart, start at recorder.epochs."
            )
        if epoch > self.epochs:
            raise RecordError(f"{here}, so the next is {self.epochs}; got epoch {epoch}")
        if progress <= self._progress:
            raise RowExists(
                f"{here}, the last at progress {self._progress:g}; got {progress:g}, which was "
                "recorded before. After a restart, start at recorder.epochs."
            )


def _create_root(storage: Storage, sample_info: SampleInfo) -> None:
    if storage.get(layout.ROOT) is None:
        others = [name for name in storage.children() if not name.startswith(".")]
        if others and layout.ROOT not in storage.children():
            raise NotARecord(
                f"{storage.name}: contains {others[0]!r} and no record; give an empty or new folder"
            )
        storage.create(layout.ROOT, _root_document(sample_info))


def _root_document(sample_info: SampleInfo) -> bytes:
    return layout.group_document(
        {
            "format": layout.FORMAT,
            "layout": layout.ROWS,
            "samples": sample_info.samples,
            "classes": sample_info.classes,
            "split": sample_info.split,
            "created": now(),
            "made_with": made_with(),
        }
    )


def _start_anew(storage: Storage, sample_info: SampleInfo, network: int) -> None:
    """Remove a network, and the whole record if its samples or classes differ.

    If the process is stopped, a valid record remains, with fewer of the earlier rows.
    """
    with contextlib.ExitStack() as held:
        try:
            check_sizes(storage, sample_info)
            check_sample_info(storage, sample_info)
        except RecordMismatch:
            if read_root(storage)["layout"] != layout.ROWS:
                raise
            held.enter_context(storage.hold(layout.ROOT))
            networks = network_numbers(storage)
            hold_networks(storage, networks, held)
            for number in networks:
                remove_network(storage, number)
            for name in layout.SAMPLE_ARRAYS:
                storage.remove(f"{name}/{layout.ROOT}", flush=True)
                storage.remove(f"{name}/c.0")
            storage.put(layout.ROOT, _root_document(sample_info))
        else:
            hold_networks(storage, [network], held)
            remove_network(storage, network)


def _create_network(
    storage: Storage,
    network: int,
    arrays: Mapping[str, tuple[tuple[int, ...], str]],
    metadata: dict[str, Any],
) -> None:
    settings = {"network": network, "arrays": list(arrays), layout.METADATA: metadata}
    key = layout.network_key(network)
    storage.create(
        key, layout.group_document({**settings, "made_with": made_with(), "created": now()})
    )
    recorded = layout.parse_attributes(storage.get(key) or b"")
    for name, value in settings.items():
        before, now_given = recorded.get(name), json.loads(json.dumps(value))
        if before != now_given:
            argument = "metadata" if name == layout.METADATA else name
            if isinstance(before, dict):
                equal = [key for key in before if before[key] == now_given.get(key, ...)]
                before = {key: before[key] for key in before if key not in equal}
                now_given = {key: now_given[key] for key in now_given if key not in equal}
            raise RecordMismatch(
                f"{storage.name}: network {network} was recorded with {argument} {before}; this "
                f"recorder has {now_given}. To keep its epochs, use another network number; to "
                "remove them and record it anew: overwrite=True."
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
        number = operator.index(network)  # also numpy's numbers; JSON accepts only Python's
        if 0 <= number < MOST_NETWORKS:
            return number
    raise ChoiceError(f"network must be a whole number in 0..{MOST_NETWORKS - 1}; got {network!r}")
