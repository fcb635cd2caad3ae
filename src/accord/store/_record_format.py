"""Layout of records on disk.

A record is a Zarr group with one folder per network. A row is stored as one object per array
(labels, probabilities); it belongs to the record only if its commit exists, which is written last
and holds the checksums of the row. `zarr.json` of the record and of each network hold metadata.
"""

import contextlib
import datetime as dt
import hashlib
import json
import platform
import struct
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._version import __version__
from accord.errors import RowDamaged
from accord.store._storage import Storage


def made_with() -> dict[str, str]:
    """Collect the versions of the packages that a record depends on."""
    found = {"accord": __version__, "python": platform.python_version()}
    for package in ("numpy", "zarr", "numcodecs", "torch"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")


FORMAT: Final = 1
FORMAT_WITH_MISSING: Final = 2  # so that readers that know no missing votes refuse the record
ROOT: Final = "zarr.json"
ROWS: Final = "rows"
PACKED: Final = "packed"
LABELS: Final = "labels"
PROBABILITIES: Final = "probabilities"
MISSING: Final = "missing"
COMMITS: Final = "commits"
SAMPLE_ARRAYS: Final = ("truth", "given", "ids", "class_names")
PACKED_ARRAYS: Final = (LABELS, PROBABILITIES, MISSING)
AXES: Final = ("network", "epoch", "sample", "class")
# Keys of metadata in commits and in `zarr.json`, as version 1 of the format spells them.
METRICS: Final = "told"  # of an epoch
METADATA: Final = "about"  # of a network
TEXT: Final = "string"
ZSTD_LEVEL: Final = 1  # 0.42 of the raw size in 0.06 ms for 50,000 labels; level 3 takes 0.43 ms
_LITTLE_ENDIAN: Final = {"name": "bytes", "configuration": {"endian": "little"}}
_ZSTD: Final = {"name": "zstd", "configuration": {"level": ZSTD_LEVEL, "checksum": False}}


def label_dtype(classes: int) -> np.dtype[Any]:
    """Find the smallest unsigned integer type for a number of classes.

    >>> label_dtype(10), label_dtype(257)
    (dtype('uint8'), dtype('uint16'))
    """
    return np.min_scalar_type(max(classes - 1, 0))


def network_folder(network: int) -> str:
    """Return the name of a network's folder.

    >>> network_folder(3)
    'network-003'
    """
    return f"network-{network:03d}"


def checkpoint_folder(run: Path, network: int) -> Path:
    """Return the folder of a network's checkpoints in a run folder."""
    return run / "checkpoints" / network_folder(network)


def network_of(folder: str) -> int | None:
    """Parse the number of a network from the name of its folder."""
    prefix, _, digits = folder.partition("-")
    return int(digits) if prefix == "network" and digits.isdecimal() else None


def network_key(network: int) -> str:
    return f"{network_folder(network)}/{ROOT}"


def array_key(network: int, array: str) -> str:
    return f"{network_folder(network)}/{array}/{ROOT}"


def row_key(network: int, array: str, epoch: int) -> str:
    rest = ".0.0" if array == PROBABILITIES else ".0"
    return f"{network_folder(network)}/{array}/c.{epoch}{rest}"


def row_shape(array: str, *, samples: int, classes: int) -> tuple[tuple[int, ...], str]:
    if array == PROBABILITIES:
        return (samples, classes), "float16"
    return (samples,), label_dtype(classes).name


def commit_key(network: int, epoch: int) -> str:
    return f"{network_folder(network)}/{COMMITS}/c.{epoch}"


def commit_document(commit: Mapping[str, Any]) -> bytes:
    """Encode a commit with Zarr's vlen-utf8 codec."""
    text = _json(commit)
    return struct.pack("<II", 1, len(text)) + text


def parse_commit(document: bytes) -> dict[str, Any]:
    try:
        commit = json.loads(document[8:])
    except ValueError:
        return {}
    return commit if isinstance(commit, dict) else {}


def group_document(attributes: Mapping[str, Any]) -> bytes:
    return _json(
        {"zarr_format": 3, "node_type": "group", "attributes": {"accord": dict(attributes)}}
    )


def array_document(
    shape: Sequence[int],
    *,
    axes: Sequence[str],
    chunks: Sequence[int],
    dtype: str,
    attributes: Mapping[str, Any] | None = None,
    compressed: bool = True,
) -> bytes:
    """Build the metadata of a Zarr array that `encode` compresses.

    `axes` are optional in the format: they name dimensions for other readers, such as xarray.
    """
    text = dtype == TEXT
    codecs = [{"name": "vlen-utf8"} if text else _LITTLE_ENDIAN, _ZSTD]
    return _json(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(shape),
            "data_type": dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": "" if text else 0,
            "codecs": codecs if compressed else codecs[:1],
            "dimension_names": list(axes),
            "attributes": {"accord": dict(attributes)} if attributes else {},
        }
    )


def parse_attributes(document: bytes) -> dict[str, Any]:
    """Parse the attribute "accord" from Zarr metadata."""
    try:
        attributes = json.loads(document)["attributes"]["accord"]
    except (ValueError, KeyError, TypeError):
        return {}
    return attributes if isinstance(attributes, dict) else {}


def parse_encoding(document: bytes | None) -> dict[str, Any]:
    try:
        metadata = json.loads(document or b"")
        return {key: metadata[key] for key in ("data_type", "chunk_grid", "codecs")}
    except (ValueError, KeyError, TypeError):
        return {}


def encode(values: NDArray[Any]) -> bytes:
    """Encode an array with the codecs of Zarr."""
    from numcodecs import VLenUTF8, Zstd

    if values.dtype.kind in "OUT":
        raw = VLenUTF8().encode(np.array(values.tolist(), dtype=object))
    else:
        raw = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return bytes(Zstd(level=ZSTD_LEVEL).encode(raw))


def decode(data: bytes, *, shape: Sequence[int], dtype: str) -> NDArray[Any]:
    from numcodecs import VLenUTF8, Zstd

    try:
        raw = Zstd().decode(data)
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    if dtype == TEXT:
        return np.array(VLenUTF8().decode(raw).tolist(), dtype=np.str_).reshape(shape)
    return np.frombuffer(raw, dtype=np.dtype(dtype).newbyteorder("<")).reshape(shape)


def checksum(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, allow_nan=False).encode()


def committed_epochs(storage: Storage, network: int) -> int:
    """Count the committed rows of a network."""
    names = storage.children(f"{network_folder(network)}/{COMMITS}")
    numbers = (name.removeprefix("c.") for name in names if name.startswith("c."))
    epochs = {int(number) for number in numbers if number.isdecimal()}
    missing = set(range(len(epochs))) - epochs
    if missing:
        raise RowDamaged(
            f"{storage.name}: network {network}, epoch {min(missing)} is missing, but later ones "
            f"exist. To list all damaged rows: accord check {storage.name}"
        )
    return len(epochs)


def read_commit(storage: Storage, network: int, epoch: int) -> dict[str, Any]:
    commit = parse_commit(storage.get(commit_key(network, epoch)) or b"")
    if not {"progress", "objects"} <= commit.keys():
        raise RowDamaged(
            f"{storage.name}: network {network}, epoch {epoch}: its commit cannot be read. "
            f"To list all damaged rows: accord check {storage.name}"
        )
    return commit
