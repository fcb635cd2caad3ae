"""Write records in packed form."""

import contextlib
import os
import shutil
import tempfile
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from accord._files import storage_error
from accord.errors import ChoiceError, ProbabilitiesMissing, RecordExists, StorageError
from accord.store import _record_format as layout
from accord.store._metadata import check_sample_info
from accord.store._object_store import Bucket
from accord.store._record_format import made_with, now
from accord.store._record_reader import RecordReader
from accord.store._storage import CountProgress, Folder, Storage, open_storage
from accord.store._unpacked_reader import open_reader

EPOCHS_PER_CHUNK: Final = 128
LABELS_PER_CHUNK: Final = 1 << 20
ZSTD_LEVEL: Final = 9  # written once, read often: 0.2 s for 4 million labels


def pack_record(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    common: bool = False,
    networks: Sequence[int] | None = None,
    epochs: slice | Sequence[int] | None = None,
    labels_only: bool = False,
    split: str | None = None,
    progress: CountProgress | None = None,
) -> None:
    """Write a packed copy of a record atomically.

    Args:
        source: the record, which is not changed.
        out: where to write; with the ending `.zip` a single file. Nothing may exist there.
        common: cut networks of unequal length to the epochs that all of them have.
        networks: pack only these, by number.
        epochs: pack only these, by position or from the end, in ascending order; the true
            epochs remain in `progress`.
        labels_only: leave out probabilities, which are far larger than labels; otherwise all
            networks must have them, or none.
        split: which record of a run folder.
        progress: called with samples done and the total.
    """
    reader = open_reader(source, common=common, networks=networks, split=split)
    if epochs is not None:
        _, chosen = reader.positions(None, epochs)
        if any(later <= earlier for earlier, later in pairwise(chosen)):
            raise ChoiceError(
                f"{reader.name}: the epochs of a packed record must ascend; got "
                f"{', '.join(map(str, chosen[:3]))}, …"
            )
        reader = reader.select(epochs=chosen)
    write_packed(reader, out, labels_only=labels_only, progress=progress)


def write_packed(
    reader: RecordReader,
    out: str | os.PathLike[str],
    *,
    labels_only: bool = False,
    progress: CountProgress | None = None,
) -> None:
    """Write the predictions of a reader as a packed record."""
    if not labels_only:
        _check_alike(reader)
    target = open_storage(out)
    if target.exists():
        raise RecordExists(f"{target.name}: exists; choose another name or remove it")
    if isinstance(target, Bucket):
        with tempfile.TemporaryDirectory() as scratch:
            _build(reader, Path(scratch), progress, labels_only=labels_only)
            target.upload(Path(scratch), last=layout.ROOT)
        return
    path = Path(target.name)
    with _scratch_beside(path) as scratch:
        _build(reader, scratch, progress, labels_only=labels_only)
        if path.suffix == ".zip":
            archive = scratch / "record.zip"
            _zip(scratch, archive)
            archive.replace(path)
        else:
            scratch.replace(path)


def _check_alike(reader: RecordReader) -> None:
    kept = reader.with_probabilities
    others = [str(number) for number in reader.numbers if number not in kept]
    if kept and others:
        raise ProbabilitiesMissing(
            f"{reader.name}: some networks have probabilities "
            f"({', '.join(map(str, kept))}), others do not ({', '.join(others)}). To pack the "
            "labels of all: --labels-only, or labels_only=True. To pack only the networks with "
            f"probabilities: --networks {','.join(map(str, kept))}, or "
            f"networks={list(kept)}"
        )


@contextlib.contextmanager
def _scratch_beside(path: Path) -> Iterator[Path]:
    """Create a temporary folder on the same disk as `path`."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        scratch.mkdir(parents=True)
        yield scratch
    except StorageError:
        raise
    except OSError as error:
        raise storage_error(path, error, "write") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _build(
    reader: RecordReader, folder: Path, progress: CountProgress | None, *, labels_only: bool
) -> None:
    storage = Folder(folder)
    check_sample_info(storage, reader.sample_info, write=True)
    samples = min(reader.samples, LABELS_PER_CHUNK // min(reader.epochs, EPOCHS_PER_CHUNK))
    labels = _create_array(folder, layout.LABELS, reader, samples=samples)
    absent = (
        _create_array(folder, layout.MISSING, reader, samples=samples)
        if reader.has_missing
        else None
    )
    missing = 0
    for block in reader.blocks(gaps=True):
        values = block.values
        if absent is not None:
            absent[:, :, block.where] = gaps = values == reader.classes
            values, missing = np.where(gaps, 0, values), missing + int(gaps.sum())
        labels[:, :, block.where] = values
        if progress is not None:
            progress(block.stop, reader.samples)
    if reader.has_probabilities and not labels_only:
        samples = min(reader.samples, max(1, LABELS_PER_CHUNK // (reader.classes * 8)))
        probabilities = _create_array(folder, layout.PROBABILITIES, reader, samples=samples)
        for block in reader.probability_blocks():
            probabilities[:, :, block.where] = block.values
    for file in folder.rglob("*"):
        if file.is_file():
            _flush(file)
    storage.put(layout.ROOT, layout.group_document(_root(reader, storage, missing=missing)))


def _create_array(folder: Path, array: str, reader: RecordReader, *, samples: int) -> Any:
    import zarr
    from zarr.codecs import Crc32cCodec, TransposeCodec, ZstdCodec

    probabilities = array == layout.PROBABILITIES
    # A sample's labels change little between epochs: adjacent they take 0.8 MB, ordered by epoch
    # 1.2 MB (5 networks, 75 epochs, 10,000 samples of CIFAR-10).
    filters = [] if probabilities else [TransposeCodec(order=(0, 2, 1))]
    classes = (reader.classes,) if probabilities else ()
    epochs = min(reader.epochs, 8 if probabilities else EPOCHS_PER_CHUNK)
    kinds = {layout.PROBABILITIES: "float16", layout.MISSING: "bool"}
    return zarr.create_array(
        folder,
        name=array,
        shape=(reader.networks, reader.epochs, reader.samples, *classes),
        chunks=(1, epochs, samples, *classes),
        dimension_names=layout.AXES[: 3 + len(classes)],
        dtype=kinds.get(array, layout.label_dtype(reader.classes)),
        filters=filters,
        compressors=[ZstdCodec(level=ZSTD_LEVEL), Crc32cCodec()],
        chunk_key_encoding={"name": "default", "separator": "."},
        fill_value=0,
        config={"write_empty_chunks": True},  # a missing chunk is damage, never zeros
        zarr_format=3,
    )


def _root(reader: RecordReader, storage: Storage, *, missing: int) -> dict[str, Any]:
    encodings = {
        array: layout.parse_encoding(storage.get(f"{array}/{layout.ROOT}"))
        for array in layout.PACKED_ARRAYS
    }
    return {
        "format": layout.FORMAT_WITH_MISSING if reader.has_missing else layout.FORMAT,
        **({"missing_votes": missing} if reader.has_missing else {}),
        "layout": layout.PACKED,
        "samples": reader.samples,
        "classes": reader.classes,
        "split": reader.sample_info.split,
        "created": now(),
        "made_with": made_with(),
        "arrays": {array: encoding for array, encoding in encodings.items() if encoding},
        "networks": [
            {
                "network": info.network,
                layout.METADATA: info.metadata,
                "made_with": info.made_with,
                "progress": list(info.progress),
                layout.METRICS: list(info.metrics),
                "times": list(info.times),
            }
            for info in reader.networks_info()
        ],
    }


def _zip(folder: Path, archive: Path) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    with zipfile.ZipFile(archive, "w") as packed:
        for file in sorted(files, key=lambda file: file == folder / layout.ROOT):
            # For 5 networks and 100 epochs, the metadata take 53 KB, deflated 9 KB.
            how = zipfile.ZIP_DEFLATED if file.suffix == ".json" else zipfile.ZIP_STORED
            packed.write(file, file.relative_to(folder).as_posix(), compress_type=how)
    _flush(archive)


def _flush(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
