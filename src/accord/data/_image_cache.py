"""Resize and cache data sets of image files."""

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from accord.data._dataset import Dataset, Split
from accord.data._image_files import ImageFiles, decode_ahead
from accord.errors import ChoiceError, SourceError, StorageError, counted

IMAGE_OPTIONS: Final = ("size", "resize", "cache", "skip_unreadable")
_VERSION: Final = "accord-images-2"  # part of the fingerprint: change it when decoding changes
_BLOCK: Final = 256


def prepare_images(
    dataset: Dataset,
    *,
    size: int | None = None,
    resize: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    skip_unreadable: bool = False,
) -> Dataset:
    """Resize and cache the images of a data set.

    Args:
        dataset: a data set whose inputs are `ImageFiles`.
        size: rows and columns of the central crop.
        resize: pixels of the shorter side before the crop. A new `size` alone keeps the
            ratio of the two.
        cache: a folder for decoded images (see `cache_images`).
        skip_unreadable: leave out files that cannot be decoded, and list them in `notes`.
            Every file is decoded once to find them, or once for all runs with `cache`.

    Raises:
        ChoiceError: the inputs are not image files.
        SourceError: without `skip_unreadable`, a file cannot be decoded into `cache`.
    """
    notes = list(dataset.notes)
    splits = []
    for part, split in (("train", dataset.train), ("test", dataset.test)):
        if not isinstance(split.inputs, ImageFiles):
            raise ChoiceError(
                f"{dataset.name} is not read from image files; {', '.join(IMAGE_OPTIONS)} do not "
                "apply."
            )
        files = split.inputs
        crop = files.size if size is None else size
        shorter = max(crop, round(files.resize * crop / files.size)) if resize is None else resize
        files = replace(files, size=crop, resize=shorter)
        if cache is not None:
            files = cache_images(files, cache, skip_unreadable=skip_unreadable)
        split = replace(split, inputs=files)
        splits.append(_skip_unreadable(split, files, part, notes) if skip_unreadable else split)
    return replace(dataset, train=splits[0], test=splits[1], notes=tuple(notes))


def _skip_unreadable(split: Split, files: ImageFiles, part: str, notes: list[str]) -> Split:
    unreadable = files.find_unreadable()
    if not len(unreadable):
        return split
    names = [files.names[sample] for sample in unreadable[:3].tolist()]
    more = ", …" if len(unreadable) > 3 else ""
    images = counted(len(unreadable), "image")
    notes.append(f"{part}: left out {images} that cannot be read: {', '.join(names)}{more}")
    return split.choose(np.delete(np.arange(len(split)), unreadable))


def cache_images(
    files: ImageFiles, folder: str | os.PathLike[str], *, skip_unreadable: bool = False
) -> ImageFiles:
    """Decode all images into a cache file.

    The cache is one .npy file of size by size pixels an image. Its name is a fingerprint of the
    image files (names, sizes, times of change) and of the image size: a cache is used again for
    the same files, and another is written for others. It is written atomically. With
    `skip_unreadable`, files that are not images are marked (see `ImageFiles.find_unreadable`).
    """
    path = Path(folder).expanduser() / f"images-{_fingerprint(files)}.npy"
    pixels, unreadable = _load_cache(path, files) or _write_cache(path, files, skip_unreadable)
    positions = np.arange(len(files))
    positions[unreadable] = -1
    if unreadable and not skip_unreadable:
        files.decode(unreadable[0])  # raises, with the cause
    return replace(files, pixels=pixels, positions=positions)


def _fingerprint(files: ImageFiles) -> str:
    digest = hashlib.sha256(f"{_VERSION} {files.size} {files.resize}".encode())
    for name in files.names:
        path = files.root / name
        try:
            status = path.stat()
        except OSError as error:
            raise SourceError(f"{path}: cannot be read as an image: {error.strerror}") from error
        digest.update(f"\0{name}\0{status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:24]


def _load_cache(path: Path, files: ImageFiles) -> tuple[NDArray[np.uint8], list[int]] | None:
    try:
        pixels = np.load(path, mmap_mode="r", allow_pickle=False)
        unreadable = json.loads(path.with_suffix(".json").read_text("utf-8"))
    except (OSError, ValueError):  # missing or damaged: written again
        return None
    if pixels.shape != files.shape or pixels.dtype != np.uint8:
        return None
    return pixels, list(unreadable)


def _write_cache(
    path: Path, files: ImageFiles, skip_unreadable: bool
) -> tuple[NDArray[np.uint8], list[int]]:
    unreadable: list[int] = []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _replacing(path) as file:
            # Not open_memmap: a disk that fills up under a mapped file kills the process.
            header = {"descr": "|u1", "fortran_order": False, "shape": files.shape}
            np.lib.format.write_array_header_1_0(file, header)
            for block in _decode_blocks(files, skip_unreadable, unreadable):
                file.write(block.tobytes())
        with _replacing(path.with_suffix(".json")) as file:
            file.write(json.dumps(unreadable).encode())
    except OSError as error:
        size = np.prod(files.shape) / 1e9
        raise StorageError(
            f"{path}: cannot write the cache of {len(files)} images ({size:.1f} GB): "
            f"{error.strerror or error}"
        ) from error
    return np.load(path, mmap_mode="r", allow_pickle=False), unreadable


def _decode_blocks(
    files: ImageFiles, skip_unreadable: bool, unreadable: list[int]
) -> Iterator[NDArray[np.uint8]]:
    decode = files.decode_readable if skip_unreadable else files.decode
    starts = range(0, len(files), _BLOCK)
    blocks = [np.arange(start, min(start + _BLOCK, len(files))) for start in starts]
    for start, images in zip(starts, decode_ahead(decode, blocks), strict=True):
        block = np.zeros((len(images), *files.shape[1:]), np.uint8)
        for position, image in enumerate(images):
            if image is None:
                unreadable.append(start + position)
            else:
                block[position] = image
        yield block


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    # Two processes may fill one cache at the same time: each has its own temporary file.
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
