"""Open a record for reading, while it is being written or after it was packed."""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import storage_error
from accord.errors import (
    ChoiceError,
    NotARecord,
    ProbabilitiesMissing,
    RowDamaged,
    StorageError,
    UnequalNetworks,
)
from accord.store import _layout as layout
from accord.store._layout import committed_epochs, read_commit
from accord.store._metadata import read_root, read_sample_info
from accord.store._record_reader import (
    NetworkInfo,
    RecordReader,
    SampleInfo,
    check_numbers,
    whole_numbers,
)
from accord.store._storage import ZIP_DAMAGE, Storage, open_storage

# What Zarr raises over chunks and metadata that are not what they should be.
ZARR_DAMAGE: Final = (
    *ZIP_DAMAGE,
    OSError,
    TypeError,
    AttributeError,
    ArithmeticError,
)


def open_reader(
    location: str | os.PathLike[str],
    *,
    common: bool = False,
    networks: Sequence[int] | None = None,
) -> RecordReader:
    """Open a record as it stands now; rows committed later are not seen.

    With `common`, networks of unequal length are cut to the epochs that all of them have.
    With `networks`, by their numbers, the others need not be readable.
    """
    place = open_storage(location)
    if read_root(place)["layout"] == layout.PACKED:
        packed = PackedReader(place)
        return packed if networks is None else packed.select(networks)
    lengths = _chosen_lengths(place, network_lengths(place), networks)
    _check_lengths(place, lengths, common=common)
    return UnpackedReader(place, tuple(lengths), min(lengths.values()))


def _chosen_lengths(
    place: Storage, lengths: dict[int, int], networks: Sequence[int] | None
) -> dict[int, int]:
    if networks is None:
        return lengths
    networks = whole_numbers(place.name, "networks", networks)
    check_numbers(place.name, networks, lengths)
    if not networks:
        raise ChoiceError(f"{place.name}: that choice leaves no network; there are {len(lengths)}")
    return {number: lengths[number] for number in networks}


def network_lengths(place: Storage) -> dict[int, int]:
    """Return how many epochs each network of a record being written holds."""
    return {network: committed_epochs(place, network) for network in network_numbers(place)}


def network_numbers(place: Storage) -> list[int]:
    """Return the numbers of the networks of a record being written.

    A folder without metadata is none yet, unless rows were committed in it: then it is damaged.
    """
    return sorted(
        network
        for name in place.children()
        if (network := layout.network_of(name)) is not None
        and (place.get(f"{name}/{layout.ROOT}") is not None or committed_epochs(place, network))
    )


def _check_lengths(place: Storage, lengths: dict[int, int], *, common: bool) -> None:
    if not lengths or not any(lengths.values()):
        raise NotARecord(f"{place.name}: the record holds no epochs yet")
    told = ", ".join(f"network {network}: {epochs}" for network, epochs in lengths.items())
    if min(lengths.values()) == 0:
        with_epochs = ",".join(str(network) for network, epochs in lengths.items() if epochs)
        raise UnequalNetworks(
            f"{place.name}: a network holds no epochs yet ({told}). "
            f"To leave it out: --networks {with_epochs}, or open(…, networks=[{with_epochs}])"
        )
    if not common and len(set(lengths.values())) > 1:
        raise UnequalNetworks(
            f"{place.name}: the networks hold different numbers of epochs ({told}). "
            "To take the epochs that all have: --common, or open(…, common=True)"
        )


class UnpackedReader(RecordReader):
    """A record in the form that recorders write: one object per row."""

    def __init__(self, place: Storage, numbers: tuple[int, ...], epochs: int) -> None:
        self.place = place
        self.name = place.name
        self.sample_info = read_sample_info(place)
        self.numbers = numbers
        self.epochs = epochs
        self._networks = [network_facts(place, number) for number in numbers]
        self.has_probabilities = self.with_probabilities == numbers
        self._commits: dict[tuple[int, int], dict[str, Any]] = {}

    @property
    def with_probabilities(self) -> tuple[int, ...]:
        """The numbers of the networks whose probabilities were recorded."""
        said = zip(self.numbers, self._networks, strict=True)
        return tuple(
            number
            for number, sample_info in said
            if layout.PROBABILITIES in sample_info.get("arrays", ())
        )

    def read_labels(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return labels (network, epoch, sample); each row is checked against its commit."""
        return self._read(layout.LABELS, networks, epochs, samples)

    def read_probabilities(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return probabilities (network, epoch, sample, class)."""
        if not {self.numbers[network] for network in networks} <= set(self.with_probabilities):
            self.check_probabilities()
        return self._read(layout.PROBABILITIES, networks, epochs, samples)

    def _read(
        self, array: str, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        shape, dtype = row_form(array, samples=self.samples, classes=self.classes)
        size = len(range(*samples.indices(self.samples)))
        values = np.empty((len(networks), len(epochs), size, *shape[1:]), dtype)
        for i, network in enumerate(networks):
            for j, epoch in enumerate(epochs):
                values[i, j] = self._row(array, network, epoch)[samples]
        return values

    def _row(self, array: str, network: int, epoch: int) -> NDArray[Any]:
        number = self.numbers[network]
        commit = self._commit(network, epoch)
        return read_row(
            self.place, number, epoch, commit, array=array, sample_info=self.sample_info
        )

    def _commit(self, network: int, epoch: int) -> dict[str, Any]:
        key = network, epoch
        if key not in self._commits:
            self._commits[key] = read_commit(self.place, self.numbers[network], epoch)
        return self._commits[key]

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """Return what the commits say of each epoch."""
        return tuple(self._told(network) for network in range(self.networks))

    def _told(self, network: int) -> NetworkInfo:
        commits = [self._commit(network, epoch) for epoch in range(self.epochs)]
        return NetworkInfo(
            self.numbers[network],
            tuple(float(commit["progress"]) for commit in commits),
            tuple(commit.get("told", {}) for commit in commits),
            tuple(commit.get("time", "") for commit in commits),
            self._networks[network].get("about", {}),
            self._networks[network].get("made_with", {}),
        )


def network_facts(place: Storage, number: int) -> dict[str, Any]:
    """Return what the writer of one network said of it, or say that it is damaged."""
    key = f"{layout.network_folder(number)}/{layout.ROOT}"
    sample_info = layout.facts_in(place.get(key) or b"")
    if not sample_info:
        raise RowDamaged(
            f"{place.name}: network {number} holds rows, and {key} is missing or cannot be read. "
            "Restore it from a copy."
        )
    return sample_info


def row_form(array: str, *, samples: int, classes: int) -> tuple[tuple[int, ...], str]:
    """Return the shape and type of one stored row of an array."""
    if array == layout.PROBABILITIES:
        return (samples, classes), "float16"
    return (samples,), layout.label_dtype(classes).name


def read_row(
    place: Storage,
    network: int,
    epoch: int,
    commit: dict[str, Any],
    *,
    array: str,
    sample_info: SampleInfo,
) -> NDArray[Any]:
    """Return one row, or say that it is damaged and how."""
    data = place.get(layout.row_key(network, array, epoch))
    shape, dtype = row_form(array, samples=sample_info.samples, classes=sample_info.classes)
    try:
        if data is None:
            raise ValueError(f"its {array} are missing")
        if layout.checksum(data) != commit["objects"].get(array, {}).get("blake2b"):
            raise ValueError(f"its {array} do not match the checksum in its commit")
        return layout.decode(data, shape=shape, dtype=dtype)
    except ValueError as error:
        raise RowDamaged(
            f"{place.name}: network {network}, epoch {epoch} is damaged: {error}. "
            f"To see every damaged row: accord check {place.name}"
        ) from error


class PackedReader(RecordReader):
    """A packed record: one array over networks, epochs and samples.

    What is `damaged` is opened for a check: facts are not read, and chunks may be missing.
    """

    def __init__(self, place: Storage, *, damaged: bool = False) -> None:
        self.place = place
        self.name = place.name
        root = read_root(place)
        self.sample_info = (
            SampleInfo(root["samples"], root["classes"]) if damaged else read_sample_info(place)
        )
        self._opened: dict[tuple[str, int], Any] = {}
        self._forms = root.get("arrays")
        self.epochs = _epochs(place, self._array(layout.LABELS))
        self._networks = _checked_networks(place, root.get("networks"), self.epochs)
        self.numbers = tuple(network["network"] for network in self._networks)
        self.has_probabilities = place.get(f"{layout.PROBABILITIES}/{layout.ROOT}") is not None
        for name in (layout.LABELS, layout.PROBABILITIES)[: 1 + self.has_probabilities]:
            _check_shape(self, name, self._array(name))
            if not damaged:
                _check_chunks(self, name, self._array(name))
                self.check_form(name)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}

    def _array(self, name: str) -> Any:
        # Opened anew after a fork: a parent and its children would move the position in one and
        # the same zip file, and read each other's bytes.
        key = name, os.getpid()
        if key not in self._opened:
            self._opened[key] = _open_array(self.place, name)
        return self._opened[key]

    def read_labels(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return labels (network, epoch, sample)."""
        return self._read(layout.LABELS, networks, epochs, samples)

    def read_probabilities(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return probabilities (network, epoch, sample, class)."""
        if not self.has_probabilities:
            raise ProbabilitiesMissing(f"{self.name}: the record holds labels alone")
        return self._read(layout.PROBABILITIES, networks, epochs, samples)

    def _read(
        self, name: str, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        array = self._array(name)
        chosen = _as_slice(networks), _as_slice(epochs), samples
        try:
            return np.asarray(array.oindex[chosen])
        except PermissionError as error:
            raise _denied(self.place, error) from error
        except ZARR_DAMAGE as error:
            raise RowDamaged(
                f"{self.name}: a chunk of the packed record is damaged ({error}). "
                "Pack the original again, or restore this one from a copy."
            ) from error

    def chunks(self, name: str) -> tuple[int, ...]:
        """Return the chunk shape of the labels or the probabilities."""
        return tuple(self._array(name).chunks)

    def chunk_name(self, name: str, numbers: tuple[int, ...]) -> str:
        """Return the name under which Zarr looks for a chunk, by its number along each axis."""
        return str(self._array(name).metadata.encode_chunk_key(numbers))

    def check_form(self, name: str) -> None:
        """Raise if an array's metadata say how to read its chunks, and not as they were written.

        Without the codec that turns them, chunks of the right size would be read permuted.
        Records of before this was told are taken at their word.
        """
        key = f"{name}/{layout.ROOT}"
        told = self._forms.get(name) if isinstance(self._forms, dict) else None
        if told and layout.form_in(self.place.get(key)) != told:
            raise RowDamaged(
                f"{self.name}: {key} was changed: the {name} were written in another form than it "
                "says. Pack the original again, or restore this file from a copy."
            )

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """Return what the packed record kept of each epoch."""
        return tuple(
            NetworkInfo(
                network["network"],
                tuple(network["progress"]),
                tuple(network["told"]),
                tuple(network.get("times", ())),
                network.get("about", {}),
                network.get("made_with", {}),
            )
            for network in self._networks
        )


def _check_shape(rows: PackedReader, name: str, array: Any) -> None:
    promised: tuple[int, ...] = rows.networks, rows.epochs, rows.samples
    if name == layout.PROBABILITIES:
        promised = (*promised, rows.classes)
    if array.shape != promised:
        raise NotARecord(
            f"{rows.name}: {name} have shape {array.shape}; the record promises {promised}"
        )


def _check_chunks(rows: PackedReader, name: str, array: Any) -> None:
    sizes = zip(array.shape, array.chunks, strict=True)
    numbers = itertools.product(*(range(-(-size // step)) for size, step in sizes))
    wanted = {rows.chunk_name(name, number) for number in numbers}
    missing = wanted - set(rows.place.children(name))
    if missing:
        raise RowDamaged(
            f"{rows.name}: {len(missing)} of {len(wanted)} chunks of {name} are missing"
        )


def _open_array(place: Storage, array: str) -> Any:
    import zarr

    from accord.store._strict_store import StrictStore

    store = StrictStore(place.zarr_store())
    form = layout.form_in(place.get(f"{array}/{layout.ROOT}"))
    try:
        if 0 in form["chunk_grid"]["configuration"]["chunk_shape"]:
            # Zarr 3.4 would take the 0 for a 1, with a warning; older ones for what it is.
            raise ValueError("a chunk holds nothing")
        opened = zarr.open_array(store, path=array, mode="r", zarr_format=3)
    except PermissionError as error:
        raise _denied(place, error) from error
    except ZARR_DAMAGE as error:
        raise NotARecord(f"{place.name}: half a packed record: no readable {array}") from error
    return opened


def _denied(place: Storage, error: PermissionError) -> StorageError:
    """Say that a file of a packed record may not be read, which is no damage."""
    return storage_error(Path(error.filename or place.name), error, "read")


def _epochs(place: Storage, labels: Any) -> int:
    if labels.ndim != 3:
        raise NotARecord(f"{place.name}: labels have {labels.ndim} axes; a packed record has 3")
    return int(labels.shape[1])


def _checked_networks(place: Storage, networks: Any, epochs: int) -> list[dict[str, Any]]:
    if isinstance(networks, list) and all(_tells(network, epochs) for network in networks):
        return networks
    raise NotARecord(
        f"{place.name}: {layout.ROOT} does not tell of {epochs} epochs of all networks. "
        "Pack the original again, or restore this one from a copy."
    )


def _tells(network: Any, epochs: int) -> bool:
    """Tell whether a packed record says of a network what a reader needs."""
    if not isinstance(network, dict) or not isinstance(network.get("network"), int):
        return False
    kinds: dict[str, Any] = {"progress": int | float, "told": dict}
    if network.get("times", []) != []:  # older records told none
        kinds["times"] = str
    return all(
        isinstance(values := network.get(what), list)
        and len(values) == epochs
        and all(isinstance(value, kind) for value in values)
        for what, kind in kinds.items()
    )


def _as_slice(positions: Sequence[int]) -> slice | list[int]:
    """Return neighbouring positions as a slice, which Zarr reads without gathering."""
    if not positions:
        return slice(0, 0)
    first, last = positions[0], positions[-1]
    if list(positions) == list(range(first, last + 1)):
        return slice(first, last + 1)
    return list(positions)
