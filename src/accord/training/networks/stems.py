"""Stems: the first layers of a network, as the size of the images asks for."""

from typing import Final, Literal, get_args

from torch import nn

from accord.errors import ChoiceError
from accord.training.networks.shapes import Size, as_pair

Stem = Literal["small", "imagenet"]
LARGEST_SMALL: Final = 64  # pixels: up to TinyImageNet's size, nothing is thrown away at the start


def settle_stem(stem: Stem | None, *, size: Size) -> Stem:
    """Return the stem that was asked for, or else the one for images of this size.

    >>> settle_stem(None, size=32), settle_stem(None, size=224), settle_stem("small", size=224)
    ('small', 'imagenet', 'small')
    """
    if stem is None:
        return "small" if max(as_pair(size)) <= LARGEST_SMALL else "imagenet"
    if stem not in get_args(Stem):
        raise ChoiceError(f"stem must be one of {', '.join(get_args(Stem))}; got {stem!r}.")
    return stem


def stem_convolution(channels: int, width: int, *, stem: Stem) -> nn.Conv2d:
    """Return the first convolution: 7 by 7 at half the size, or 3 by 3 at the full size."""
    if stem == "imagenet":
        return nn.Conv2d(channels, width, kernel_size=7, stride=2, padding=3, bias=False)
    return nn.Conv2d(channels, width, kernel_size=3, padding=1, bias=False)


def stem_pool(*, stem: Stem) -> nn.Module:
    """Return what follows the first convolution: a max-pool that halves again, or nothing."""
    return nn.MaxPool2d(3, stride=2, padding=1) if stem == "imagenet" else nn.Identity()
