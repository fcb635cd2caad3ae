"""Open records and read them in unpacked form."""

import logging
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, NotARecord, RowDamaged, UnequalNetworks
from accord.store import _record_format as layout
from accord.store._metadata import open_record_storage, read_root, read_sample_info
from accord.store._packed_reader import PackedReader
from accord.store._record_format import committed_epochs, read_commit
from accord.store._record_reader import NetworkInfo, RecordReader, SampleInfo
from accord.store._selection import check_numbers, whole_numbers
from accord.store._storage import Storage

_logger = logging.getLogger(__name__)


def open_reader(
    location: str | os.PathLike[str],
    *,
    common: bool = False,
    networks: Sequence[int] | None = None,
    split: str | None = None,
    first: str = "test",
    quiet: bool = False,
) -> RecordReader:
    """Open a record for reading.

    A network without an epoch is left out, and a warning is logged.

    Args:
        location: a path or URL of a record or a run folder. Rows committed later are not seen.
        common: cut networks of unequal length to the epochs that all of them have.
        networks: only these, by number. The others need not be readable.
        split: which record of a run folder, by default `first`, else "test", else the only one.
        first: the split that is used by default.
        quiet: without the warning.
    """
    storage = open_record_storage(location, split=split, first=first)
    if read_root(storage)["layout"] == layout.PACKED:
        packed = PackedReader(storage)
        return packed if networks is None else packed.select(networks)
    lengths = network_lengths(storage)
    if networks is not None:
        networks = whole_numbers(storage.name, "networks", networks)
        check_numbers(storage.name, networks, lengths)
        if not networks:
            raise ChoiceError(f"{storage.name}: no network is selected; there are {len(lengths)}")
        lengths = {number: lengths[number] for number in networks}
    empty = [number for number, epochs in lengths.items() if not epochs]
    lengths = {number: epochs for number, epochs in lengths.items() if epochs}
    _check_lengths(storage, lengths, common=common)
    if empty and not quiet:
        listed = ",".join(map(str, empty))
        _logger.warning(
            "%s: network %s has no epochs yet and is left out. If it never will: "
            "accord remove %s --networks %s",
            *(storage.name, listed, storage.name, listed),
        )
    return UnpackedReader(storage, tuple(lengths), min(lengths.values()))


def network_lengths(storage: Storage) -> dict[int, int]:
    return {network: committed_epochs(storage, network) for network in network_numbers(storage)}


def network_numbers(storage: Storage) -> list[int]:
    """List the numbers of the networks in an unpacked record.

    A folder without metadata is not a network yet, unless it has commits: then it is damaged.
    """
    named = (layout.network_of(name) for name in storage.children())
    return sorted(
        number
        for number in named
        if number is not None
        and (
            storage.get(layout.network_key(number)) is not None or committed_epochs(storage, number)
        )
    )


def _check_lengths(storage: Storage, lengths: dict[int, int], *, common: bool) -> None:
    if not lengths:
        raise NotARecord(f"{storage.name}: the record has no epochs yet")
    listed = ", ".join(f"network {network}: {epochs}" for network, epochs in lengths.items())
    if not common and len(set(lengths.values())) > 1:
        raise UnequalNetworks(
            f"{storage.name}: the networks have different numbers of epochs ({listed}). "
            "To use the epochs that all have: --common, or open(…, common=True)"
        )


class UnpackedReader(RecordReader):
    def __init__(self, storage: Storage, numbers: tuple[int, ...], epochs: int) -> None:
        self.storage = storage
        self.name = storage.name
        self.sample_info = read_sample_info(storage)
        self.numbers = numbers
        self.epochs = epochs
        self._networks = [read_network(storage, number) for number in numbers]
        self._with_probabilities = tuple(
            number
            for number, network in zip(numbers, self._networks, strict=True)
            if layout.PROBABILITIES in network.get("arrays", ())
        )
        self.has_probabilities = self._with_probabilities == numbers
        self._commits: dict[tuple[int, int], dict[str, Any]] = {}

    @property
    def with_probabilities(self) -> tuple[int, ...]:
        return self._with_probabilities

    def read(
        self, array: str, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        shape, dtype = layout.row_shape(array, samples=self.samples, classes=self.classes)
        size = len(range(*samples.indices(self.samples)))
        values = np.empty((len(networks), len(epochs), size, *shape[1:]), dtype)
        for i, network in enumerate(networks):
            for j, epoch in enumerate(epochs):
                number, commit = self.numbers[network], self._commit(network, epoch)
                row = read_row(
                    self.storage, number, epoch, commit, array=array, sample_info=self.sample_info
                )
                values[i, j] = row[samples]
        return values

    def _commit(self, network: int, epoch: int) -> dict[str, Any]:
        key = network, epoch
        if key not in self._commits:
            self._commits[key] = read_commit(self.storage, self.numbers[network], epoch)
        return self._commits[key]

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        return tuple(self._info(network) for network in range(self.networks))

    def _info(self, network: int) -> NetworkInfo:
        commits = [self._commit(network, epoch) for epoch in range(self.epochs)]
        return NetworkInfo(
            self.numbers[network],
            tuple(float(commit["progress"]) for commit in commits),
            tuple(commit.get(layout.METRICS, {}) for commit in commits),
            tuple(commit.get("time", "") for commit in commits),
            self._networks[network].get(layout.METADATA, {}),
            self._networks[network].get("made_with", {}),
        )


def read_network(storage: Storage, number: int) -> dict[str, Any]:
    key = layout.network_key(number)
    attributes = layout.parse_attributes(storage.get(key) or b"")
    if not attributes:
        raise RowDamaged(
            f"{storage.name}: network {number} has rows, but {key} is missing or cannot be read. "
            "Restore it from a copy."
        )
    return attributes


def read_row(
    storage: Storage,
    network: int,
    epoch: int,
    commit: dict[str, Any],
    *,
    array: str,
    sample_info: SampleInfo,
) -> NDArray[Any]:
    """Read one row and verify its checksum."""
    data = storage.get(layout.row_key(network, array, epoch))
    shape, dtype = layout.row_shape(array, samples=sample_info.samples, classes=sample_info.classes)
    try:
        if data is None:
            raise ValueError(f"its {array} are missing")
        if layout.checksum(data) != commit["objects"].get(array, {}).get("blake2b"):
            raise ValueError(f"its {array} do not match the checksum in its commit")
        return layout.decode(data, shape=shape, dtype=dtype)
    except ValueError as error:
        raise RowDamaged(
            f"{storage.name}: network {network}, epoch {epoch} is damaged: {error}. "
            f"To list all damaged rows: accord check {storage.name}"
        ) from error
