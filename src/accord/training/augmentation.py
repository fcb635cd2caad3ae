"""Augmentation: images mirrored, moved and cropped as an epoch's draws say."""

from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from accord.training.seeds import Draws

REACH: Final = {"crop": 4, "shift": 1}  # pixels an image may move, each way
AUGMENTATIONS: Final = ("flip", *REACH, "resized-crop")


def augment(
    images: Tensor,  # (sample, channel, row, column), already scaled: what comes in is the mean
    chosen: Tensor,  # (sample,)
    draws: Draws,
    *,
    kinds: tuple[str, ...],
) -> Tensor:
    """Mirror, move and crop images as an epoch's draws say."""
    if "flip" in kinds:
        flips = draws.flips[chosen].to(images.device).view(-1, 1, 1, 1)
        images = torch.where(flips, images.flip(3), images)
    if "resized-crop" in kinds:
        images = crop_images(images, draws.windows[chosen].to(images.device))
    pixels = reach_of(kinds)
    if pixels:
        images = shift_images(images, draws.moves[chosen].to(images.device), pixels=pixels)
    return images


def reach_of(kinds: tuple[str, ...]) -> int:
    """Return how many pixels these augmentations move an image at most."""
    return max([0, *(REACH[kind] for kind in kinds if kind in REACH)])


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


def crop_images(images: Tensor, windows: Tensor) -> Tensor:
    """Cut a window out of each image and stretch it to the image's size, bilinearly.

    Args:
        images: (sample, channel, row, column).
        windows: (sample, 4), top, left, height and width as shares of the image's size.

    >>> image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> crop_images(image, torch.tensor([[0.0, 0.5, 1.0, 0.5]]))
    tensor([[[[1.7500, 2.0000],
              [3.7500, 4.0000]]]])
    """
    top, left, height, width = windows.unbind(dim=1)
    zero = torch.zeros_like(top)
    # Coordinates run from -1 to 1; each row says where an output's x, then its y, comes from.
    maps = torch.stack(
        [
            torch.stack([width, zero, 2 * left + width - 1], dim=1),
            torch.stack([zero, height, 2 * top + height - 1], dim=1),
        ],
        dim=1,
    )
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)
