"""Remove networks from records and runs."""

import contextlib
import os
import shutil
from collections.abc import Sequence

from accord.errors import ChoiceError, RecordMismatch
from accord.store import _record_format as layout
from accord.store._metadata import read_root, record_paths
from accord.store._selection import check_numbers, whole_numbers
from accord.store._storage import Folder, Storage, open_storage
from accord.store._unpacked_reader import network_numbers


def remove_networks(location: str | os.PathLike[str], networks: Sequence[int]) -> None:
    """Remove networks from a record, or from all records of a run with their checkpoints.

    Args:
        location: a path or URL of a record or a run folder.
        networks: their numbers.

    Raises:
        ChoiceError: no such network.
        RecordBusy: a network is being recorded; nothing is removed.
        RecordMismatch: the record is packed, so that it cannot be changed.

    >>> import accord, tempfile
    >>> path = tempfile.mkdtemp()
    >>> for network in range(2):
    ...     with accord.Recorder(path, network=network, samples=2, classes=2) as recorder:
    ...         recorder.record([0, 1])
    >>> accord.remove(path, [1])
    >>> accord.open(path).networks
    1
    """
    records = [open_storage(path) for path in record_paths(location).values() or [location]]
    present = {number for storage in records for number in _numbers_of(storage)}
    numbers = whole_numbers(str(location), "networks", networks)
    check_numbers(str(location), numbers, sorted(present))
    if not numbers:
        raise ChoiceError(f"{location}: no network is selected; give networks=[…]")
    with contextlib.ExitStack() as held:
        for storage in records:
            hold_networks(storage, numbers, held)
        if isinstance(storage := open_storage(location), Folder):
            for number in numbers:
                shutil.rmtree(layout.checkpoint_folder(storage.path, number), ignore_errors=True)
        for storage in records:
            for number in numbers:
                remove_network(storage, number)


def _numbers_of(storage: Storage) -> list[int]:
    if read_root(storage)["layout"] == layout.PACKED:
        raise RecordMismatch(
            f"{storage.name}: the record is packed and read-only. To copy the other networks: "
            f"accord pack {storage.name} OUT --networks …"
        )
    return network_numbers(storage)


def hold_networks(storage: Storage, networks: Sequence[int], held: contextlib.ExitStack) -> None:
    for number in networks:
        key = layout.network_key(number)
        if storage.get(key) is not None:
            held.enter_context(storage.hold(key))


def remove_network(storage: Storage, network: int) -> None:
    """Remove a network that the caller has locked.

    Rows are removed from the last to the first, and metadata after them: if the process is
    stopped, the first rows remain, a valid network.
    """
    folder = layout.network_folder(network)
    storage.sweep(folder)
    commits = storage.children(f"{folder}/{layout.COMMITS}")
    for name in sorted(commits, key=lambda name: (len(name), name), reverse=True):
        storage.remove(f"{folder}/{layout.COMMITS}/{name}", flush=True)
    for array in (layout.LABELS, layout.PROBABILITIES):
        for name in storage.children(f"{folder}/{array}"):
            storage.remove(f"{folder}/{array}/{name}")
    storage.remove(layout.network_key(network), flush=True)
