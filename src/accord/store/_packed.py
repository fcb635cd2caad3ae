"""Rewrite a record as one small array over networks, epochs and samples."""

import contextlib
import os
import shutil
import tempfile
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from accord._files import storage_error
from accord.errors import ProbabilitiesMissing, RecordExists, StorageError
from accord.store import _layout as layout
from accord.store._layout import made_with, now
from accord.store._metadata import write_sample_info
from accord.store._object_store import Bucket
from accord.store._record_reader import NetworkInfo, RecordReader
from accord.store._recorded import open_reader
from accord.store._storage import CountProgress, Folder, Storage, open_storage

EPOCHS_PER_CHUNK: Final = 128
LABELS_PER_CHUNK: Final = 1 << 20
ZSTD_LEVEL: Final = 9  # written once, read often: 0.2 s for 4 million labels


def pack_record(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    common: bool = False,
    networks: Sequence[int] | None = None,
    labels_only: bool = False,
    progress: CountProgress | None = None,
) -> None:
    """Write the record at `source` anew at `out`, smaller and faster to read.

    The packed record appears whole or not at all; `out` may end in `.zip`, which makes it
    one file. A packed record takes no more rows; the source is left as it is. With
    `networks` only those are packed, by number. With `labels_only` probabilities, far larger
    than labels, are left out; without it, all networks must have them or none.
    """
    rows = open_reader(source, common=common, networks=networks)
    write_packed(rows, out, labels_only=labels_only, progress=progress)


def write_packed(
    rows: RecordReader,
    out: str | os.PathLike[str],
    *,
    labels_only: bool = False,
    progress: CountProgress | None = None,
) -> None:
    """Write any rows as a packed record."""
    if not labels_only:
        _check_alike(rows)
    target = open_storage(out)
    _check_free(out)
    if isinstance(target, Bucket):
        with tempfile.TemporaryDirectory() as scratch:
            _build(rows, Path(scratch), progress, labels_only=labels_only)
            target.upload(Path(scratch), last=layout.ROOT)
        return
    path = Path(target.name)
    with _scratch_beside(path) as scratch:
        _build(rows, scratch, progress, labels_only=labels_only)
        if path.suffix == ".zip":
            archive = scratch / "record.zip"
            _zip(scratch, archive)
            archive.replace(path)
        else:
            scratch.replace(path)


def _check_alike(rows: RecordReader) -> None:
    kept = rows.with_probabilities
    others = [str(number) for number in rows.numbers if number not in kept]
    if kept and others:
        raise ProbabilitiesMissing(
            f"{rows.name}: the probabilities of some networks were recorded "
            f"({', '.join(map(str, kept))}), of others not ({', '.join(others)}). To pack the "
            "labels of all: --labels-only, or labels_only=True. To pack the networks with "
            f"probabilities alone: --networks {','.join(map(str, kept))}, or "
            f"networks={list(kept)}"
        )


def _check_free(out: str | os.PathLike[str]) -> None:
    place = open_storage(out)
    if place.exists():
        raise RecordExists(f"{place.name}: already there; choose a new name or remove it first")


@contextlib.contextmanager
def _scratch_beside(path: Path) -> Iterator[Path]:
    """Yield a folder on the same disk as `path`, gone afterwards unless it was renamed."""
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
    rows: RecordReader, folder: Path, progress: CountProgress | None, *, labels_only: bool
) -> None:
    place = Folder(folder)
    write_sample_info(place, rows.sample_info)
    samples = min(rows.samples, LABELS_PER_CHUNK // min(rows.epochs, EPOCHS_PER_CHUNK))
    labels = _create_array(folder, layout.LABELS, rows, samples=samples)
    for block in rows.blocks():
        labels[:, :, block.where] = block.values
        if progress is not None:
            progress(block.stop, rows.samples)
    if rows.has_probabilities and not labels_only:
        samples = min(rows.samples, max(1, LABELS_PER_CHUNK // (rows.classes * 8)))
        probabilities = _create_array(folder, layout.PROBABILITIES, rows, samples=samples)
        for block in rows.probability_blocks():
            probabilities[:, :, block.where] = block.values
    for file in folder.rglob("*"):
        if file.is_file():
            _flush(file)
    place.put(layout.ROOT, layout.group_document(_root(rows, place)))


def _create_array(folder: Path, array: str, rows: RecordReader, *, samples: int) -> Any:
    import zarr
    from zarr.codecs import Crc32cCodec, TransposeCodec, ZstdCodec

    labels = array == layout.LABELS
    # A sample's labels change little from epoch to epoch: side by side they take 0.8 MB where
    # epoch after epoch takes 1.2 MB (5 networks, 75 epochs, 10,000 samples of CIFAR-10).
    filters = [TransposeCodec(order=(0, 2, 1))] if labels else []
    classes = () if labels else (rows.classes,)
    epochs = min(rows.epochs, EPOCHS_PER_CHUNK if labels else 8)
    return zarr.create_array(
        folder,
        name=array,
        shape=(rows.networks, rows.epochs, rows.samples, *classes),
        chunks=(1, epochs, samples, *classes),
        dtype=layout.label_dtype(rows.classes) if labels else "float16",
        filters=filters,
        compressors=[ZstdCodec(level=ZSTD_LEVEL), Crc32cCodec()],
        chunk_key_encoding={"name": "default", "separator": "."},
        fill_value=0,
        config={"write_empty_chunks": True},  # a chunk that is missing is damage, never zeros
        zarr_format=3,
    )


def _root(rows: RecordReader, place: Storage) -> dict[str, Any]:
    forms = {
        array: layout.form_in(place.get(f"{array}/{layout.ROOT}"))
        for array in (layout.LABELS, layout.PROBABILITIES)
    }
    return {
        "format": layout.FORMAT,
        "layout": layout.PACKED,
        "samples": rows.samples,
        "classes": rows.classes,
        "split": rows.sample_info.split,
        "created": now(),
        "made_with": made_with(),
        "arrays": {array: form for array, form in forms.items() if form},
        "networks": [_network(told) for told in rows.networks_info()],
    }


def _network(told: NetworkInfo) -> dict[str, Any]:
    return {
        "network": told.network,
        "about": told.metadata,
        "made_with": told.made_with,
        "progress": list(told.progress),
        "told": list(told.metrics),
        "times": list(told.times),
    }


def _zip(folder: Path, archive: Path) -> None:
    """Pack a folder into a zip file, the root last; chunks are compressed already."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    with zipfile.ZipFile(archive, "w") as packed:
        for file in sorted(files, key=lambda file: file == folder / layout.ROOT):
            # The root tells of every epoch: 53 KB for 5 networks and 100 epochs, deflated 9 KB.
            how = zipfile.ZIP_DEFLATED if file.suffix == ".json" else zipfile.ZIP_STORED
            packed.write(file, file.relative_to(folder).as_posix(), compress_type=how)
    _flush(archive)


def _flush(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
