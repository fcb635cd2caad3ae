"""The shapes of input that networks take."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from accord.errors import ChoiceError, PredictionError

Size = int | tuple[int, int]  # rows and columns; one number for a square


def as_pair(size: Size) -> tuple[int, int]:
    """Return rows and columns.

    >>> as_pair(8), as_pair((8, 16))
    ((8, 8), (8, 16))
    """
    rows, columns = (size, size) if isinstance(size, int) else size
    return rows, columns


def check_sizes(*, classes: int, channels: int, size: Size) -> None:
    """Refuse sizes for which there is no network."""
    if min(classes, channels, *as_pair(size)) < 1:
        raise ChoiceError(
            "a network needs at least 1 class, 1 channel and 1 pixel; "
            f"got classes={classes}, channels={channels}, size={size}."
        )


@dataclass(frozen=True)
class ImageCheck:
    """Refuses images that a network cannot take, before one of its layers trips over them."""

    name: str
    channels: int
    smallest: int  # pixels, each way

    def check_size(self, size: Size) -> None:
        """Refuse a size that is too small, before there are images."""
        rows, columns = as_pair(size)
        if min(rows, columns) < self.smallest:
            raise ChoiceError(
                f"{self.name} needs images of at least {self.smallest} by {self.smallest} pixels; "
                f"got {rows} by {columns}. Enlarge the images, or take a smaller network."
            )

    def __call__(self, network: nn.Module, inputs: tuple[Any, ...]) -> None:  # noqa: ARG002
        """Refuse images of the wrong shape; torch calls this before the network."""
        shape = tuple(inputs[0].shape)
        fits = len(shape) == 4 and shape[1] == self.channels and min(shape[2:]) >= self.smallest
        if not fits:
            raise PredictionError(
                f"{self.name} takes images (sample, {self.channels}, row, column) of at least "
                f"{self.smallest} by {self.smallest} pixels; got {shape}. "
                "Is the channel axis missing or last, or was the network built for other images?"
            )
