"""Read records in packed form."""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import ZIP_DAMAGE, storage_error
from accord.errors import NotARecord, RowDamaged, StorageError
from accord.store import _record_format as layout
from accord.store._metadata import read_root, read_sample_info
from accord.store._record_reader import NetworkInfo, RecordReader, SampleInfo, encode_votes
from accord.store._selection import as_slice
from accord.store._storage import Storage

# What Zarr raises for damaged chunks and metadata.
ZARR_DAMAGE: Final = (*ZIP_DAMAGE, OSError, TypeError, AttributeError, ArithmeticError)


class PackedReader(RecordReader):
    """Reader of a packed record.

    With `damaged`, for a check: sample arrays are not read, and chunks may be missing.
    """

    def __init__(self, storage: Storage, *, damaged: bool = False) -> None:
        self.storage = storage
        self.name = storage.name
        root = read_root(storage)
        self.sample_info = (
            SampleInfo(root["samples"], root["classes"]) if damaged else read_sample_info(storage)
        )
        self._opened: dict[tuple[str, int], Any] = {}
        self._encodings = root.get("arrays")
        axes = self._array(layout.LABELS).ndim
        if axes != 3:
            raise NotARecord(f"{storage.name}: labels have {axes} axes; a packed record has 3")
        self.epochs = int(self._array(layout.LABELS).shape[1])
        self._networks = _checked_networks(storage, root.get("networks"), self.epochs)
        self.numbers = tuple(network["network"] for network in self._networks)
        self.arrays = [
            name
            for name in layout.PACKED_ARRAYS
            if storage.get(f"{name}/{layout.ROOT}") is not None
        ]
        self.has_probabilities = layout.PROBABILITIES in self.arrays
        self.has_missing = root["format"] == layout.FORMAT_WITH_MISSING
        if self.has_missing != (layout.MISSING in self.arrays):
            raise NotARecord(
                f"{storage.name}: a record of format {root['format']} must "
                f"{'' if self.has_missing else 'not '}have an array {layout.MISSING}. "
                "Restore it from a copy."
            )
        expected = self.networks, self.epochs, self.samples, self.classes
        for name in self.arrays:
            shape = self._array(name).shape
            needed = expected if name == layout.PROBABILITIES else expected[:3]
            if shape != needed:
                raise NotARecord(
                    f"{self.name}: {name} have shape {shape}; {layout.ROOT} requires {needed}"
                )
            if not damaged:
                _check_chunks(self, name, self._array(name))
                self.check_encoding(name)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}

    def _array(self, name: str) -> Any:
        # Opened again after a fork: a parent and its children share the position in an open zip
        # file, and would read each other's bytes.
        key = name, os.getpid()
        if key not in self._opened:
            self._opened[key] = _open_array(self.storage, name)
        return self._opened[key]

    def read(
        self, array: str, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        values = self.read_array(array, networks, epochs, samples)
        if array != layout.LABELS or not self.has_missing:
            return values
        missing = self.read_array(layout.MISSING, networks, epochs, samples)
        return encode_votes(values, missing, classes=self.classes)

    def read_array(
        self, array: str, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Read a part of a stored array."""
        opened = self._array(array)
        try:
            return np.asarray(opened.oindex[as_slice(networks), as_slice(epochs), samples])
        except PermissionError as error:
            raise _denied(self.storage, error) from error
        except ZARR_DAMAGE as error:
            raise RowDamaged(
                f"{self.name}: a chunk of the packed record is damaged ({error}). "
                "Pack the original again, or restore this one from a copy."
            ) from error

    def chunks(self, name: str) -> tuple[int, ...]:
        """Return the chunk shape of an array."""
        return tuple(self._array(name).chunks)

    def chunk_name(self, name: str, numbers: tuple[int, ...]) -> str:
        """Return the Zarr key of a chunk."""
        return str(self._array(name).metadata.encode_chunk_key(numbers))

    def check_encoding(self, name: str) -> None:
        """Check that the encoding of an array has not changed.

        Without the transpose codec, for example, chunks of the right size would be read permuted.
        Records that were packed before the encoding was stored cannot be checked.
        """
        key = f"{name}/{layout.ROOT}"
        encoding = self._encodings.get(name) if isinstance(self._encodings, dict) else None
        if encoding and layout.parse_encoding(self.storage.get(key)) != encoding:
            raise RowDamaged(
                f"{self.name}: {key} was changed: it does not match the encoding of the {name}. "
                "Pack the original again, or restore this file from a copy."
            )

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        return tuple(
            NetworkInfo(
                network["network"],
                tuple(network["progress"]),
                tuple(network[layout.METRICS]),
                tuple(network.get("times", ())),
                network.get(layout.METADATA, {}),
                network.get("made_with", {}),
            )
            for network in self._networks
        )


def _check_chunks(reader: PackedReader, name: str, array: Any) -> None:
    sizes = zip(array.shape, array.chunks, strict=True)
    numbers = itertools.product(*(range(-(-size // step)) for size, step in sizes))
    expected = {reader.chunk_name(name, number) for number in numbers}
    missing = expected - set(reader.storage.children(name))
    if missing:
        raise RowDamaged(
            f"{reader.name}: {len(missing)} of {len(expected)} chunks of {name} are missing"
        )


def _open_array(storage: Storage, array: str) -> Any:
    # Imported here: Zarr takes as long as everything else that a reader imports, and unpacked
    # records do not require it.
    import zarr
    from zarr.abc.store import Store
    from zarr.storage import WrapperStore

    class StrictStore(WrapperStore[Store]):
        """Zarr store that raises an error for missing chunks."""

        async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
            found = await super().get(key, prototype, byte_range)
            if found is None and not key.endswith(layout.ROOT):
                raise FileNotFoundError(f"{key} is missing")
            return found

    store = StrictStore(storage.zarr_store())
    encoding = layout.parse_encoding(storage.get(f"{array}/{layout.ROOT}"))
    try:
        if 0 in encoding["chunk_grid"]["configuration"]["chunk_shape"]:
            # Zarr 3.4 would read the 0 as a 1, with a warning; older versions fail.
            raise ValueError("a chunk has size 0")
        opened = zarr.open_array(store, path=array, mode="r", zarr_format=3)
    except PermissionError as error:
        raise _denied(storage, error) from error
    except ZARR_DAMAGE as error:
        raise NotARecord(
            f"{storage.name}: the packed record is incomplete: `{array}` cannot be read"
        ) from error
    return opened


def _denied(storage: Storage, error: PermissionError) -> StorageError:
    # Missing permission to read a file is not damage.
    return storage_error(Path(error.filename or storage.name), error, "read")


def _checked_networks(storage: Storage, networks: Any, epochs: int) -> list[dict[str, Any]]:
    if isinstance(networks, list) and all(_is_complete(network, epochs) for network in networks):
        return networks
    raise NotARecord(
        f"{storage.name}: {layout.ROOT} does not describe {epochs} epochs of all networks. "
        "Pack the original again, or restore this one from a copy."
    )


def _is_complete(network: Any, epochs: int) -> bool:
    if not isinstance(network, dict) or not isinstance(network.get("network"), int):
        return False
    kinds: dict[str, Any] = {"progress": int | float, layout.METRICS: dict}
    if network.get("times", []) != []:  # missing in older records
        kinds["times"] = str
    return all(
        isinstance(values := network.get(key), list)
        and len(values) == epochs
        and all(isinstance(value, kind) for value in values)
        for key, kind in kinds.items()
    )
