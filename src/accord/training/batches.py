"""Samples as a network sees them: on its device, scaled, and augmented for training."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accord.training.augmentation import augment
from accord.training.seeds import Draws

AT_ONCE: Final = 256  # images to measure


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

    def stream(self, batches: Iterable[NDArray[np.intp]]) -> Iterator[NDArray[np.uint8]]:
        """Yield the images of batch after batch, reading the next ones meanwhile."""
        ...


def stream_batches(
    samples: Batches, parts: Sequence[Tensor], draws: Draws | None = None
) -> Iterator[Tensor]:
    """Yield part after part of the samples; files are decoded while the network computes."""
    if isinstance(samples, ImageBatches) and not samples.in_memory:
        yield from samples.stream(parts, draws)
    else:
        for part in parts:
            yield samples.take(part, draws)


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
            # Some readers look into a file's bytes, which torch takes only as a copy.
            self._images = torch.from_numpy(np.require(images, requirements="W")).to(device)
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
        if isinstance(self._images, Tensor):
            images = self._images[chosen.to(self.device)]
        else:
            images = torch.from_numpy(self._images.read(chosen.numpy())).to(self.device)
        return self._ready(images, chosen, draws)

    def stream(self, parts: Sequence[Tensor], draws: Draws | None = None) -> Iterator[Tensor]:
        """Yield part after part of images that lie on disk, decoding ahead."""
        if isinstance(self._images, Tensor):
            raise TypeError("images in memory are taken, not streamed")
        blocks = self._images.stream(part.numpy() for part in parts)
        for part, images in zip(parts, blocks, strict=True):
            yield self._ready(torch.from_numpy(images).to(self.device), part, draws)

    def _ready(self, images: Tensor, chosen: Tensor, draws: Draws | None) -> Tensor:
        scaled = (images.float() - self._mean) / self._spread
        if draws is not None:
            scaled = augment(scaled, chosen, draws, kinds=self._augment)
        return scaled.contiguous(memory_format=torch.channels_last)


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
    batch is as long as its longest text; what fills up the shorter ones may stand on either side.
    """

    def __init__(self, tokens: NDArray[np.int32], *, device: torch.device) -> None:
        self.device = device
        self._tokens = torch.from_numpy(tokens).to(device)

    def __len__(self) -> int:
        return len(self._tokens)

    def take(self, chosen: Tensor, draws: Draws | None = None) -> Tensor:  # noqa: ARG002
        """Return some texts; they are not augmented."""
        taken = self._tokens[chosen.to(self.device)]
        used = taken[:, 1].any(dim=0).nonzero()
        return taken[:, :, int(used[0]) : int(used[-1]) + 1].long()


def channel_statistics(
    images: NDArray[np.uint8] | Readable, *, most: int = 10_000
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return each channel's mean and spread, over at most so many images, evenly chosen."""
    chosen = np.linspace(0, len(images) - 1, min(most, len(images))).astype(np.intp)
    # Block by block: at 224 pixels, 10,000 images and their squares would take 13 GB.
    blocks = np.array_split(chosen, math.ceil(len(chosen) / AT_ONCE))
    counts = np.sum([_count_values(images, block) for block in blocks], axis=0)
    shares, values = counts / counts.sum(axis=1, keepdims=True), np.arange(256)
    mean = shares @ values
    spread = np.sqrt((shares * (values - mean[:, np.newaxis]) ** 2).sum(axis=1))
    return mean.astype(np.float32), np.maximum(spread, 1.0).astype(np.float32)


def _count_values(
    images: NDArray[np.uint8] | Readable, chosen: NDArray[np.intp]
) -> NDArray[np.intp]:  # (channel, value)
    some = images[chosen] if isinstance(images, np.ndarray) else images.read(chosen)
    channels = some.swapaxes(0, 1).reshape(some.shape[1], -1)
    return np.stack([np.bincount(channel, minlength=256) for channel in channels])


def column_statistics(
    rows: NDArray[np.float32],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return each column's mean and spread; a constant column has spread 1."""
    spread = rows.std(axis=0, dtype=np.float64)
    mean = rows.mean(axis=0, dtype=np.float64)
    return mean.astype(np.float32), np.where(spread > 0, spread, 1.0).astype(np.float32)
