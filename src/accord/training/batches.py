"""Samples as a network sees them: on its device, scaled, and augmented for training."""

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from accord.training.seeds import Draws

REACH = {"crop": 4, "shift": 1}  # pixels an image may move, each way


class Batches(Protocol):
    """Samples that can be taken by position."""

    device: torch.device

    def __len__(self) -> int:
        """How many samples there are."""
        ...

    def take(self, chosen: Tensor, draws: Draws | None = None) -> Tensor:
        """Return some samples; augmented as drawn, or plain."""
        ...


class Readable(Protocol):
    """Images that are read when they are needed."""

    def __len__(self) -> int:
        """How many images there are."""
        ...

    def read(self, indices: NDArray[np.intp]) -> NDArray[np.uint8]:
        """Return images (sample, channel, row, column)."""
        ...


class ImageBatches:
    """Images of bytes, scaled to mean 0 and spread 1 in each channel."""

    def __init__(
        self,
        images: NDArray[np.uint8] | Readable,
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
        self._images: Tensor | Readable
        if isinstance(images, np.ndarray):
            self._images = torch.from_numpy(images).to(device)
        else:
            self._images = images

    def __len__(self) -> int:
        return len(self._images)

    @property
    def in_memory(self) -> bool:
        """Whether all images lie on the device."""
        return isinstance(self._images, Tensor)

    def take(self, chosen: Tensor, draws: Draws | None = None) -> Tensor:
        """Return some images (sample, channel, row, column)."""
        images = (self._read(chosen).float() - self._mean) / self._spread
        if draws is not None:
            images = augment(images, chosen, draws, kinds=self._augment)
        return images.contiguous(memory_format=torch.channels_last)

    def _read(self, chosen: Tensor) -> Tensor:
        if isinstance(self._images, Tensor):
            return self._images[chosen.to(self.device)]
        return torch.from_numpy(self._images.read(chosen.numpy())).to(self.device)


class TableBatches:
    """Rows of numbers, scaled to mean 0 and spread 1 in each column."""

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
        """Return some rows (sample, feature); tables are not augmented."""
        return self._rows[chosen.to(self.device)]


class TextBatches:
    """Texts, or pairs of texts, as tokens: (sample, part, token).

    The parts are the tokens, whether each counts, and, for pairs, which text it belongs to. A
    batch is as long as its longest text.
    """

    def __init__(self, tokens: NDArray[np.int32], *, device: torch.device) -> None:
        self.device = device
        self._tokens = torch.from_numpy(tokens).to(device)

    def __len__(self) -> int:
        return len(self._tokens)

    def take(self, chosen: Tensor, draws: Draws | None = None) -> Tensor:  # noqa: ARG002
        """Return some texts; they are not augmented."""
        taken = self._tokens[chosen.to(self.device)]
        longest = int(taken[:, 1].sum(dim=1).max())
        return taken[:, :, :longest].long()


def augment(
    images: Tensor,  # (sample, channel, row, column), already scaled: what comes in is the mean
    chosen: Tensor,  # (sample,)
    draws: Draws,
    *,
    kinds: tuple[str, ...],
) -> Tensor:
    """Mirror and move images as an epoch's draws say."""
    if "flip" in kinds:
        flips = draws.flips[chosen].to(images.device).view(-1, 1, 1, 1)
        images = torch.where(flips, images.flip(3), images)
    pixels = reach_of(kinds)
    if pixels:
        images = shift_images(images, draws.moves[chosen].to(images.device), pixels=pixels)
    return images


def reach_of(kinds: tuple[str, ...]) -> int:
    """Return how many pixels these augmentations move an image at most."""
    return max((REACH[kind] for kind in kinds if kind in REACH), default=0)


def shift_images(images: Tensor, moves: Tensor, *, pixels: int) -> Tensor:
    """Move each image down and to the right by its own two numbers of pixels.

    What leaves the image is lost; what comes in is zero.

    Args:
        images: (sample, channel, row, column).
        moves: (sample, 2), whole numbers in -pixels..pixels.
        pixels: the furthest move there may be.

    >>> image = torch.tensor([[[[1, 2], [3, 4]]]])
    >>> shift_images(image, torch.tensor([[0, 1]]), pixels=1)
    tensor([[[[0, 1],
              [0, 3]]]])
    """
    rows, columns = images.shape[2:]
    padded = functional.pad(images, [pixels] * 4)
    # Every window of the image's size, as a view: (sample, channel, top, left, row, column).
    windows = padded.unfold(2, rows, 1).unfold(3, columns, 1)
    # Moving the content down means looking at it through a window further up.
    top, left = (pixels - moves).unbind(dim=1)
    return windows[torch.arange(len(images), device=images.device), :, top, left]


def channel_statistics(
    images: NDArray[np.uint8] | Readable, *, most: int = 10_000
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return each channel's mean and spread, over at most so many images, evenly chosen."""
    chosen = np.linspace(0, len(images) - 1, min(most, len(images))).astype(np.intp)
    some = images[chosen] if isinstance(images, np.ndarray) else images.read(chosen)
    axes = (0, 2, 3)
    spread = some.std(axis=axes, dtype=np.float64)
    mean = some.mean(axis=axes, dtype=np.float64)
    return mean.astype(np.float32), np.maximum(spread, 1.0).astype(np.float32)


def column_statistics(
    rows: NDArray[np.float32],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return each column's mean and spread; a constant column has spread 1."""
    spread = rows.std(axis=0, dtype=np.float64)
    mean = rows.mean(axis=0, dtype=np.float64)
    return mean.astype(np.float32), np.where(spread > 0, spread, 1.0).astype(np.float32)
