"""Batches of images, tables and texts on a device."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from accord.data import ImageFiles
from accord.training._randomness import Draws

REACH: Final = {"crop": 4, "shift": 1}  # the largest shift in pixels


def augment(
    images: Tensor,  # (sample, channel, row, column), scaled: the padding is the mean
    chosen: Tensor,  # (sample,)
    draws: Draws,
    *,
    kinds: tuple[str, ...],
) -> Tensor:
    if "flip" in kinds:
        flips = draws.flips[chosen].to(images.device).view(-1, 1, 1, 1)
        images = torch.where(flips, images.flip(3), images)
    if "resized-crop" in kinds:
        images = crop_images(images, draws.windows[chosen].to(images.device))
    pixels = max_shift(kinds)
    if pixels:
        images = shift_images(images, draws.moves[chosen].to(images.device), pixels=pixels)
    return images


def max_shift(kinds: tuple[str, ...]) -> int:
    return max([0, *(REACH[kind] for kind in kinds if kind in REACH)])


def shift_images(images: Tensor, moves: Tensor, *, pixels: int) -> Tensor:
    """Shift each image down and to the right with zero padding.

    `moves` are (sample, 2), integers in -pixels..pixels.

    >>> image = torch.tensor([[[[1, 2], [3, 4]]]])
    >>> shift_images(image, torch.tensor([[0, 1]]), pixels=1)
    tensor([[[[0, 1],
              [0, 3]]]])
    """
    rows, columns = images.shape[2:]
    padded = functional.pad(images, [pixels] * 4)
    # Every window of the image's size, as a view: (sample, channel, top, left, row, column).
    windows = padded.unfold(2, rows, 1).unfold(3, columns, 1)
    # Shifting the content down is the same as taking a window further up.
    top, left = (pixels - moves).unbind(dim=1)
    return windows[torch.arange(len(images), device=images.device), :, top, left]


def crop_images(images: Tensor, windows: Tensor) -> Tensor:
    """Crop a window of each image and resize it to the original size by bilinear interpolation.

    `windows` are (sample, 4): top, left, height and width as fractions of the image size.

    >>> image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> crop_images(image, torch.tensor([[0.0, 0.5, 1.0, 0.5]]))
    tensor([[[[1.7500, 2.0000],
              [3.7500, 4.0000]]]])
    """
    top, left, height, width = windows.unbind(dim=1)
    zero = torch.zeros_like(top)
    # Coordinates run from -1 to 1; the rows map an output to the x and y of its input.
    maps = torch.stack(
        [
            torch.stack([width, zero, 2 * left + width - 1], dim=1),
            torch.stack([zero, height, 2 * top + height - 1], dim=1),
        ],
        dim=1,
    )
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


STATISTICS_BATCH: Final = 256  # images


class Batches(ABC):
    """Base class for batches of samples on a device."""

    device: torch.device

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, chosen: Tensor, draws: Draws | None = None) -> Tensor:
        """Select samples by position and augment them if `draws` are given."""

    def stream(self, parts: Sequence[Tensor], draws: Draws | None = None) -> Iterator[Tensor]:
        """Iterate over batches of samples, decoding image files in the background."""
        for part in parts:
            yield self.take(part, draws)


class ImageBatches(Batches):
    """Batches of images with standardised channels."""

    def __init__(
        self,
        images: NDArray[np.uint8] | ImageFiles,
        *,
        device: torch.device,
        mean: NDArray[np.float32],
        spread: NDArray[np.float32],
        augment: tuple[str, ...] = (),
    ) -> None:
        self.device = device
        self._augment = augment
        self._mean, self._spread = (
            torch.tensor(values, device=device).view(-1, 1, 1) for values in (mean, spread)
        )
        self._images: Tensor | ImageFiles
        if isinstance(images, np.ndarray):
            # Some readers return a read-only view of a file, which torch cannot take.
            self._images = torch.from_numpy(np.require(images, requirements="W")).to(device)
        else:
            self._images = images

    def __len__(self) -> int:
        return len(self._images)

    @property
    def in_memory(self) -> bool:
        """Whether all images are in the memory of the device."""
        return isinstance(self._images, Tensor)

    def take(self, chosen: Tensor, draws: Draws | None = None) -> Tensor:
        """Select images of shape (sample, channel, row, column) by position."""
        if isinstance(self._images, Tensor):
            images = self._images[chosen.to(self.device)]
        else:
            images = torch.from_numpy(self._images.read(chosen.numpy())).to(self.device)
        return self._prepare(images, chosen, draws)

    def stream(self, parts: Sequence[Tensor], draws: Draws | None = None) -> Iterator[Tensor]:
        images = self._images
        blocks: Iterator[Tensor]
        if isinstance(images, Tensor):
            blocks = (images[part.to(self.device)] for part in parts)
        else:
            blocks = map(torch.from_numpy, images.stream(part.numpy() for part in parts))
        for part, block in zip(parts, blocks, strict=True):
            yield self._prepare(block.to(self.device), part, draws)

    def _prepare(self, images: Tensor, chosen: Tensor, draws: Draws | None) -> Tensor:
        scaled = (images.float() - self._mean) / self._spread
        if draws is not None:
            scaled = augment(scaled, chosen, draws, kinds=self._augment)
        return scaled.contiguous(memory_format=torch.channels_last)


class TableBatches(Batches):
    """Batches of table rows with standardised columns."""

    def __init__(
        self,
        rows: NDArray[np.float32],
        *,
        device: torch.device,
        mean: NDArray[np.float32],
        spread: NDArray[np.float32],
    ) -> None:
        self.device = device
        self._rows = torch.from_numpy((rows - mean) / spread).to(device)

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, chosen: Tensor, draws: Draws | None = None) -> Tensor:  # noqa: ARG002
        return self._rows[chosen.to(self.device)]


class TextBatches(Batches):
    """Batches of tokenized texts or text pairs, of shape (sample, part, token).

    The parts are the tokens, the attention mask and, for pairs, the token types. A batch is as
    long as its longest text. The padding may be on either side.
    """

    def __init__(self, tokens: NDArray[np.int32], *, device: torch.device) -> None:
        self.device = device
        self._tokens = torch.from_numpy(tokens).to(device)

    def __len__(self) -> int:
        return len(self._tokens)

    def take(self, chosen: Tensor, draws: Draws | None = None) -> Tensor:  # noqa: ARG002
        taken = self._tokens[chosen.to(self.device)]
        used = taken[:, 1].any(dim=0).nonzero()
        return taken[:, :, int(used[0]) : int(used[-1]) + 1].long()


def channel_statistics(
    images: NDArray[np.uint8] | ImageFiles, *, most: int = 10_000
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Compute channel means and standard deviations on at most `most` evenly spaced images."""
    chosen = np.linspace(0, len(images) - 1, min(most, len(images))).astype(np.intp)
    # In blocks: 10,000 images of 224 pixels and their squares would take 13 GB.
    blocks = np.array_split(chosen, math.ceil(len(chosen) / STATISTICS_BATCH))
    counts = np.sum([_count_values(images, block) for block in blocks], axis=0)
    shares, values = counts / counts.sum(axis=1, keepdims=True), np.arange(256)
    mean = shares @ values
    spread = np.sqrt((shares * (values - mean[:, np.newaxis]) ** 2).sum(axis=1))
    return mean.astype(np.float32), np.maximum(spread, 1.0).astype(np.float32)


def _count_values(
    images: NDArray[np.uint8] | ImageFiles, chosen: NDArray[np.intp]
) -> NDArray[np.intp]:  # (channel, value)
    some = images[chosen] if isinstance(images, np.ndarray) else images.read(chosen)
    channels = some.swapaxes(0, 1).reshape(some.shape[1], -1)
    return np.stack([np.bincount(channel, minlength=256) for channel in channels])


def column_statistics(rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Compute the mean and standard deviation of each column, using 1 for constant columns."""
    spread = rows.std(axis=0, dtype=np.float64)
    mean = rows.mean(axis=0, dtype=np.float64)
    return mean.astype(np.float32), np.where(spread > 0, spread, 1.0).astype(np.float32)
