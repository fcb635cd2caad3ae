"""What a user may ask of a data set's image files: another size, a cache, to skip the damaged."""

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from accord.data._dataset import Dataset, Split
from accord.data._images import ImageFiles, decode_ahead
from accord.errors import ChoiceError, SourceError, StorageError, counted

_VERSION = "accord-images-2"  # part of the name: change it when decoding changes
_BLOCK = 256


def cache_images(
    files: ImageFiles,
    folder: str | os.PathLike[str],
    *,
    skip_unreadable: bool = False,
) -> ImageFiles:
    """Decode every image once into `folder`, and return the same images read from there.

    The cache is one .npy file of size by size pixels an image. Its name tells the
    image files (names, bytes, times of change) and the size: a cache that fits is used
    again, one that does not is left alone. It appears whole or not at all.

    Args:
        files: what to decode.
        folder: where the cache lies; made if need be.
        skip_unreadable: mark files that are no images, rather than refuse;
            `find_unreadable` of what is returned tells them.

    Raises:
        SourceError: a file is missing or is no image; the message names it.
        StorageError: the cache cannot be written.
    """
    place = _Place.of(files, Path(folder).expanduser())
    pixels, unreadable = place.open() or place.write(files, skip_unreadable)
    rows = np.arange(len(files))
    rows[unreadable] = -1
    if unreadable and not skip_unreadable:
        files.decode(unreadable[0])  # raises, and says why
    return replace(files, pixels=pixels, rows=rows)


@dataclass(frozen=True)
class _Place:
    path: Path  # of the pixels; the list of unreadable files lies next to it
    shape: tuple[int, int, int, int]

    @classmethod
    def of(cls, files: ImageFiles, folder: Path) -> "_Place":
        return cls(folder / f"images-{_fingerprint(files)}.npy", files.shape)

    def open(self) -> tuple[NDArray[np.uint8], list[int]] | None:
        try:
            pixels = np.load(self.path, mmap_mode="r", allow_pickle=False)
            unreadable = json.loads(self.path.with_suffix(".json").read_text("utf-8"))
        except (OSError, ValueError):  # not there, or damaged: it is written anew
            return None
        if pixels.shape != self.shape or pixels.dtype != np.uint8:
            return None
        return pixels, list(unreadable)

    def write(self, files: ImageFiles, skip: bool) -> tuple[NDArray[np.uint8], list[int]]:
        unreadable: list[int] = []
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _replacing(self.path) as file:
                _write_header(file, self.shape)
                for block in _blocks(files, skip, unreadable):
                    file.write(block.tobytes())
            with _replacing(self.path.with_suffix(".json")) as file:
                file.write(json.dumps(unreadable).encode())
        except OSError as error:
            size = np.prod(self.shape) / 1e9
            raise StorageError(
                f"{self.path}: cannot write the cache of {len(files)} images ({size:.1f} GB): "
                f"{error.strerror or error}"
            ) from error
        return np.load(self.path, mmap_mode="r", allow_pickle=False), unreadable


def _blocks(files: ImageFiles, skip: bool, unreadable: list[int]) -> Iterator[NDArray[np.uint8]]:
    def decode(sample: int) -> NDArray[np.uint8] | None:
        try:
            return files.decode(sample)
        except SourceError:
            if skip:
                return None
            raise

    done = 0
    for images in decode_ahead(decode, _batches(len(files))):
        block = np.zeros((len(images), *files.shape[1:]), np.uint8)
        for position, image in enumerate(images):
            if image is None:
                unreadable.append(done + position)
            else:
                block[position] = image
        done += len(images)
        yield block


def _batches(samples: int) -> Iterable[NDArray[np.integer]]:
    return (np.arange(start, min(start + _BLOCK, samples)) for start in range(0, samples, _BLOCK))


def _fingerprint(files: ImageFiles) -> str:
    digest = hashlib.sha256(f"{_VERSION} {files.size} {files.resize}".encode())
    for name in files.names:
        path = files.root / name
        try:
            sample_info = path.stat()
        except OSError as error:
            raise SourceError(f"{path}: cannot be read as an image: {error.strerror}") from error
        digest.update(f"\0{name}\0{sample_info.st_size} {sample_info.st_mtime_ns}".encode())
    return digest.hexdigest()[:24]


def _write_header(file: BinaryIO, shape: tuple[int, ...]) -> None:
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    # Two processes may fill one cache at once: each has its own temporary file.
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


IMAGE_OPTIONS: Final = ("size", "resize", "cache", "skip_unreadable")


def prepare_images(
    dataset: Dataset,
    *,
    size: int | None = None,
    resize: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    skip_unreadable: bool = False,
) -> Dataset:
    """Set the size of a data set's images, cache them, leave out those that cannot be read.

    Args:
        dataset: its inputs are `ImageFiles`.
        size: rows and columns of the middle part that is kept.
        resize: pixels of the shorter side before that. A new `size` alone keeps the
            ratio of the two.
        cache: folder to keep decoded images in; see `accord.data._image_cache`.
        skip_unreadable: leave out files that are no images and say so in `notes`.
            Every file is decoded once to know, or once ever with `cache`.

    Raises:
        SourceError: without `skip_unreadable`, a file that is no image, if `cache` finds one.

    """
    notes = list(dataset.notes)
    splits = {}
    for part in ("train", "test"):
        split: Split = getattr(dataset, part)
        files = _resized(_files_of(dataset.name, split), size, resize)
        if cache is not None:
            files = cache_images(files, cache, skip_unreadable=skip_unreadable)
        split = replace(split, inputs=files)
        splits[part] = _skip(split, files, part, notes) if skip_unreadable else split
    return replace(dataset, **splits, notes=tuple(notes))  # type: ignore[arg-type]


def _files_of(name: str, split: Split) -> ImageFiles:
    if not isinstance(split.inputs, ImageFiles):
        raise ChoiceError(
            f"{name} is not read from image files; {', '.join(IMAGE_OPTIONS)} do not apply."
        )
    return split.inputs


def _resized(files: ImageFiles, size: int | None, resize: int | None) -> ImageFiles:
    size = files.size if size is None else size
    if resize is None:
        resize = max(size, round(files.resize * size / files.size))
    return replace(files, size=size, resize=resize)


def _skip(split: Split, files: ImageFiles, part: str, notes: list[str]) -> Split:
    unreadable = files.find_unreadable()
    if not len(unreadable):
        return split
    names = [files.names[sample] for sample in unreadable[:3].tolist()]
    more = ", …" if len(unreadable) > 3 else ""
    images = counted(len(unreadable), "image")
    notes.append(f"{part}: left out {images} that cannot be read: {', '.join(names)}{more}")
    return split.choose(np.delete(np.arange(len(split)), unreadable))
