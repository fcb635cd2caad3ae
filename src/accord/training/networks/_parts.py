"""Shape checks and stems shared by several networks."""

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from torch import nn

from accord.errors import ChoiceError, PredictionError

Size = int | tuple[int, int]  # rows and columns; one number for a square


def as_pair(size: Size) -> tuple[int, int]:
    """Convert a size to a pair of rows and columns.

    >>> as_pair(8), as_pair((8, 16))
    ((8, 8), (8, 16))
    """
    rows, columns = (size, size) if isinstance(size, int) else size
    return rows, columns


def check_sizes(*, classes: int, channels: int, size: Size) -> None:
    if min(classes, channels, *as_pair(size)) < 1:
        raise ChoiceError(
            "a network needs at least 1 class, 1 channel and 1 pixel; "
            f"got classes={classes}, channels={channels}, size={size}."
        )


@dataclass(frozen=True)
class ImageCheck:
    """Forward hook that checks the shape of input images."""

    name: str
    channels: int
    smallest: int  # pixels, each way

    def check_size(self, size: Size) -> None:
        rows, columns = as_pair(size)
        if min(rows, columns) < self.smallest:
            raise ChoiceError(
                f"{self.name} needs images of at least {self.smallest} by {self.smallest} pixels; "
                f"got {rows} by {columns}. Enlarge the images, or use a smaller network."
            )

    def __call__(self, network: nn.Module, inputs: tuple[Any, ...]) -> None:  # noqa: ARG002
        shape = tuple(inputs[0].shape)
        fits = len(shape) == 4 and shape[1] == self.channels and min(shape[2:]) >= self.smallest
        if not fits:
            raise PredictionError(
                f"{self.name} takes images (sample, {self.channels}, row, column) of at least "
                f"{self.smallest} by {self.smallest} pixels; got {shape}. "
                "Is the channel axis missing or last, or was the network built for other images?"
            )


Stem = Literal["small", "imagenet"]
LARGEST_SMALL: Final = 64  # pixels: up to the size of TinyImageNet, the stem keeps the resolution


def choose_stem(stem: Stem | None, *, size: Size) -> Stem:
    """Choose the stem for an image size unless one is given.

    >>> choose_stem(None, size=32), choose_stem(None, size=224), choose_stem("small", size=224)
    ('small', 'imagenet', 'small')
    """
    if stem is None:
        return "small" if max(as_pair(size)) <= LARGEST_SMALL else "imagenet"
    if stem not in get_args(Stem):
        raise ChoiceError(f"stem must be one of {', '.join(get_args(Stem))}; got {stem!r}.")
    return stem


def stem_convolution(channels: int, width: int, *, stem: Stem) -> nn.Conv2d:
    if stem == "imagenet":
        return nn.Conv2d(channels, width, kernel_size=7, stride=2, padding=3, bias=False)
    return nn.Conv2d(channels, width, kernel_size=3, padding=1, bias=False)


def stem_pool(*, stem: Stem) -> nn.Module:
    return nn.MaxPool2d(3, stride=2, padding=1) if stem == "imagenet" else nn.Identity()
