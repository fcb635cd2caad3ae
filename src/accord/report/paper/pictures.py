"""A sample's picture, small and plain enough for a file of numbers."""

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError

MOST_PIXELS: Final = 64  # on a side; larger pictures are thinned


def picture_of(
    pictures: NDArray[Any] | None, sample: int, *, samples: int
) -> list[list[list[int]]] | None:
    """Return one picture as rows of [red, green, blue], 0..255; None if there are no pictures.

    Args:
        pictures: (sample, height, width) in grey or (sample, height, width, 3) in colour;
            integers count from 0 to 255, fractions from 0 to 1.
        sample: which one.
        samples: how many there must be.

    Raises:
        ChoiceError: the pictures have another shape, or values out of range.

    >>> picture_of(np.ones((4, 1, 2)), 3, samples=4)
    [[[255, 255, 255], [255, 255, 255]]]
    """
    if pictures is None:
        return None
    _check_shape(pictures.shape, samples)
    values = _in_bytes(np.asarray(pictures[sample]))
    step = math.ceil(max(values.shape[:2]) / MOST_PIXELS)
    thinned = values[::step, ::step].reshape(*values[::step, ::step].shape[:2], -1)
    colours: list[list[list[int]]] = np.broadcast_to(thinned, (*thinned.shape[:2], 3)).tolist()
    return colours


def _check_shape(shape: tuple[int, ...], samples: int) -> None:
    coloured = len(shape) == 4 and shape[3] in {1, 3}
    if shape[:1] != (samples,) or not (len(shape) == 3 or coloured) or 0 in shape:
        raise ChoiceError(
            f"pictures must have the shape ({samples}, height, width) or "
            f"({samples}, height, width, 3); got {shape}. Does the colour axis come last?"
        )


def _in_bytes(picture: NDArray[Any]) -> NDArray[np.uint8]:
    highest = 255 if np.issubdtype(picture.dtype, np.integer) else 1
    if not (picture.min() >= 0 and picture.max() <= highest):
        raise ChoiceError(
            f"pictures of {picture.dtype} must lie in 0..{highest}; "
            f"got {picture.min()}..{picture.max()}. Were they standardised for training?"
        )
    return np.asarray(np.rint(picture * (255 / highest)), np.uint8)
