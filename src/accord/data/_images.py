"""Image files on disk, decoded when they are asked for."""

import os
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, SourceError, missing_extra

Result = TypeVar("Result")
CURE: Final = "Take it away, or train without such files: skip_unreadable = true"


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Images that stay on disk: each is decoded to RGB, resized and cropped when it is read.

    The shorter side becomes `resize` pixels, the middle `size` by `size` are kept. Once
    cached (`accord.data._image_cache.cache_images`) they are read from one file instead.

    Raises:
        ChoiceError: `size` is not between 1 and `resize`.
    """

    root: Path
    names: tuple[str, ...]  # file names below `root`, one per sample
    size: int = 224
    resize: int = 256
    pixels: NDArray[np.uint8] | None = None  # the cache: (row, channel, row, column)
    rows: NDArray[np.intp] | None = None  # (sample,) -> row of `pixels`; -1 is unreadable
    cure: str = CURE  # for a file that is no image

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
        """(sample, channel, row, column), as all of them together would have it."""
        return (len(self), 3, self.size, self.size)

    def choose(self, samples: NDArray[np.integer]) -> "ImageFiles":
        """Return the images at these positions, in this order; nothing is read."""
        names = tuple(self.names[sample] for sample in samples.tolist())
        return replace(self, names=names, rows=None if self.rows is None else self.rows[samples])

    def read(self, samples: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Decode the images at these positions: (sample, channel, row, column).

        Raises:
            SourceError: a file is missing or is no image; the message names it.
            ExtraMissing: pillow is not installed.
        """
        return next(self.stream([samples]))

    def stream(
        self, batches: Iterable[NDArray[np.integer]], *, ahead: int = 2
    ) -> Iterator[NDArray[np.uint8]]:
        """Yield the images of each batch of positions, decoding `ahead` batches meanwhile.

        Decoding runs in threads, one per core; pillow lets them run side by side.
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
        """Decode one image: (channel, row, column)."""
        path = self.root / self.names[sample]
        return decode_image(path, size=self.size, resize=self.resize, cure=self.cure)

    def find_unreadable(self) -> NDArray[np.intp]:
        """Return the positions of images that cannot be decoded; without a cache, try each."""
        if self.rows is not None:
            return np.flatnonzero(self.rows < 0)
        positions = np.arange(len(self))
        blocks = decode_ahead(self._is_readable, np.array_split(positions, len(self) // 256 + 1))
        return np.flatnonzero([not readable for block in blocks for readable in block])

    def _is_readable(self, sample: int) -> bool:
        try:
            self.decode(sample)
        except SourceError:
            return False
        return True

    def _read_cached(self, samples: NDArray[np.integer]) -> NDArray[np.uint8]:
        if self.pixels is None or self.rows is None:
            raise ChoiceError("these images have no cache; make one with cache_images")
        rows = self.rows[samples]
        if (rows < 0).any():
            self.decode(int(samples[rows < 0][0]))  # raises, and says why
        return np.asarray(self.pixels[rows])


def decode_ahead(
    decode: Callable[[int], Result], batches: Iterable[NDArray[np.integer]], *, ahead: int = 2
) -> Iterator[list[Result]]:
    """Yield what `decode` returns for each batch of positions, working on `ahead` more."""
    waiting: deque[list[Future[Result]]] = deque()
    pool = ThreadPoolExecutor(_cores())
    try:
        for batch in batches:
            waiting.append([pool.submit(decode, position) for position in batch.tolist()])
            if len(waiting) > ahead:
                yield [future.result() for future in waiting.popleft()]
        while waiting:
            yield [future.result() for future in waiting.popleft()]
    finally:
        pool.shutdown(cancel_futures=True)


def decode_image(path: Path, *, size: int, resize: int, cure: str = CURE) -> NDArray[np.uint8]:
    """Decode one image file to RGB: shorter side to `resize`, then the middle `size` by `size`.

    A photograph is turned as its camera says. Rounds as torchvision's Resize and CenterCrop do.
    Bilinear, with antialiasing.
    """
    pillow = _pillow()
    try:
        with pillow.open(path) as opened:
            upright = _pillow_ops().exif_transpose(opened)
            image = _resize(_as_rgb(upright), resize, pillow.Resampling.BILINEAR)
    except (OSError, SyntaxError, ValueError, struct.error, pillow.DecompressionBombError) as error:
        raise SourceError(f"{path}: cannot be read as an image: {error}. {cure}") from error
    left, top = (round((side - size) / 2) for side in image.size)
    crop = image.crop((left, top, left + size, top + size))
    return np.asarray(crop, np.uint8).transpose(2, 0, 1)


def _as_rgb(image: Any) -> Any:
    if image.mode[0] in "IF":  # grey of more than 8 bits, which pillow would cut off at 255
        return _pillow().fromarray(_as_bytes(np.asarray(image))).convert("RGB")
    # Pillow warns when a palette with transparency goes to RGB directly.
    return (image.convert("RGBA") if "transparency" in image.info else image).convert("RGB")


def _as_bytes(grey: NDArray[Any]) -> NDArray[np.uint8]:
    """Keep the upper 8 of 16 bits, as pillow does with colours of 16 bits."""
    if grey.dtype.kind not in "iu" or not 0 <= grey.min() <= grey.max() < 2**16:
        raise ValueError(
            f"its pixels are {grey.dtype} in {grey.min():g}..{grey.max():g}, where images have "
            "whole numbers of 8 or 16 bits"
        )
    return (grey >> 8).astype(np.uint8)


def _resize(image: Any, resize: int, resample: Any) -> Any:
    width, height = image.size
    if min(width, height) == resize:
        return image
    if width <= height:
        sides = (resize, int(resize * height / width))
    else:
        sides = (int(resize * width / height), resize)
    return image.resize(sides, resample)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise missing_extra("decoding images", "pillow", extra="train", cause=error) from error
    return Image


def _pillow_ops() -> Any:
    from PIL import ImageOps

    return ImageOps


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
