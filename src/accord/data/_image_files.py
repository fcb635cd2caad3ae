"""Load images lazily from disk."""

import contextlib
import os
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, SourceError, missing_extra

Result = TypeVar("Result")
CURE: Final = "Remove the file, or train without such files: skip_unreadable = true"


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Lazily loaded RGB images of a fixed size.

    The shorter side is resized to `resize` pixels, then the central `size` by `size` are
    cropped. With a cache (`cache_images`), pixels are read from one file instead.

    Raises:
        ChoiceError: `size` is not between 1 and `resize`.
    """

    root: Path
    names: tuple[str, ...]  # file names below `root`, one per sample
    size: int = 224
    resize: int = 256
    pixels: NDArray[np.uint8] | None = None  # the cache, (position, channel, row, column)
    positions: NDArray[np.intp] | None = None  # in the cache, (sample,); -1 if unreadable
    cure: str = CURE  # the fix that errors for unreadable files name

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.resize:
            raise ChoiceError(
                f"the crop `size` must lie between 1 and `resize`; got size={self.size}, "
                f"resize={self.resize}. Set both."
            )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of the array of all images, (sample, channel, row, column)."""
        return (len(self), 3, self.size, self.size)

    def choose(self, samples: NDArray[np.integer]) -> "ImageFiles":
        """Select images by position without reading them."""
        names = tuple(self.names[sample] for sample in samples.tolist())
        positions = None if self.positions is None else self.positions[samples]
        return replace(self, names=names, positions=positions)

    def read(self, samples: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Load images into an array of shape (sample, channel, row, column).

        Raises:
            SourceError: a file is missing or not an image.
            ExtraMissing: pillow is not installed.
        """
        return next(self.stream([samples]))

    def stream(
        self, batches: Iterable[NDArray[np.integer]], *, ahead: int = 2
    ) -> Iterator[NDArray[np.uint8]]:
        """Iterate over batches of images, decoding `ahead` batches in advance.

        Decoding runs in one thread per core; pillow releases the interpreter lock.
        """
        if self.pixels is not None:
            yield from map(self._read_cached, batches)
            return
        for images in decode_ahead(self.decode, batches, ahead=ahead):
            block = np.empty((len(images), *self.shape[1:]), np.uint8)
            for position, image in enumerate(images):
                block[position] = image
            yield block

    def decode(self, sample: int) -> NDArray[np.uint8]:
        """Load one image into an array of shape (channel, row, column)."""
        path = self.root / self.names[sample]
        return decode_image(path, size=self.size, resize=self.resize, cure=self.cure)

    def find_unreadable(self) -> NDArray[np.intp]:
        """Find the positions of images that cannot be decoded."""
        if self.positions is not None:
            return np.flatnonzero(self.positions < 0)
        blocks = np.array_split(np.arange(len(self)), len(self) // 256 + 1)
        images = (one for block in decode_ahead(self.decode_readable, blocks) for one in block)
        return np.flatnonzero([image is None for image in images])

    def decode_readable(self, sample: int) -> NDArray[np.uint8] | None:
        """Load one image, None if it cannot be decoded."""
        try:
            return self.decode(sample)
        except SourceError:
            return None

    def _read_cached(self, samples: NDArray[np.integer]) -> NDArray[np.uint8]:
        assert self.pixels is not None
        assert self.positions is not None
        positions = self.positions[samples]
        if (positions < 0).any():
            self.decode(int(samples[positions < 0][0]))  # raises, with the cause
        return np.asarray(self.pixels[positions])


def decode_ahead(
    decode: Callable[[int], Result], batches: Iterable[NDArray[np.integer]], *, ahead: int = 2
) -> Iterator[list[Result]]:
    """Iterate over decoded batches, computing `ahead` batches in advance."""
    waiting: deque[list[Future[Result]]] = deque()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pool = ThreadPoolExecutor(cores or 1)
    try:
        for batch in batches:
            waiting.append([pool.submit(decode, position) for position in batch.tolist()])
            if len(waiting) > ahead:
                yield [future.result() for future in waiting.popleft()]
        while waiting:
            yield [future.result() for future in waiting.popleft()]
    finally:
        pool.shutdown(cancel_futures=True)


def measure_images(files: Sequence[Path], *, most: int = 20) -> int:
    """Measure the median of the shorter sides of at most `most` images, in pixels."""
    sides = []
    for file in files[:: -(-len(files) // most)]:
        with _open_image(file, CURE) as (image, _):
            sides.append(min(image.size))
    return int(np.median(sides))


def decode_image(path: Path, *, size: int, resize: int, cure: str = CURE) -> NDArray[np.uint8]:
    """Load an image file as RGB, resize its shorter side and crop the center.

    The EXIF orientation is applied. Resizes bilinearly with antialiasing, and rounds as
    torchvision's Resize and CenterCrop do.
    """
    with _open_image(path, cure) as (opened, pillow):
        image = _as_rgb(pillow.ImageOps.exif_transpose(opened), pillow.Image)
        width, height = image.size
        if width <= height:
            sides = (resize, int(resize * height / width))
        else:
            sides = (int(resize * width / height), resize)
        if min(width, height) != resize:
            image = image.resize(sides, pillow.Image.Resampling.BILINEAR)
    left, top = (round((side - size) / 2) for side in image.size)
    crop = image.crop((left, top, left + size, top + size))
    return np.asarray(crop, np.uint8).transpose(2, 0, 1)


@contextlib.contextmanager
def _open_image(path: Path, cure: str) -> Iterator[tuple[Any, Any]]:
    """Context manager for an image and pillow that raises `SourceError` on failure."""
    try:
        import PIL
        from PIL import Image, ImageOps  # noqa: F401
    except ImportError as error:
        raise missing_extra("decoding images", "pillow", extra="train", cause=error) from error
    try:
        with Image.open(path) as opened:
            yield opened, PIL
    except (OSError, SyntaxError, ValueError, struct.error, Image.DecompressionBombError) as error:
        raise SourceError(f"{path}: cannot be read as an image: {error}. {cure}") from error


def _as_rgb(image: Any, pillow: Any) -> Any:
    if image.mode[0] in "IF":  # grey of more than 8 bits, which pillow would clip at 255
        grey = np.asarray(image)
        if grey.dtype.kind not in "iu" or not 0 <= grey.min() <= grey.max() < 2**16:
            raise ValueError(
                f"its pixels are {grey.dtype} in {grey.min():g}..{grey.max():g}; "
                "expected integers of 8 or 16 bits"
            )
        # The upper 8 of 16 bits, as pillow does with colours of 16 bits.
        return pillow.fromarray((grey >> 8).astype(np.uint8)).convert("RGB")
    # Pillow warns when a palette with transparency is converted to RGB directly.
    return (image.convert("RGBA") if "transparency" in image.info else image).convert("RGB")
