"""Labels as whole numbers that stand for classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError


def checked_classes(labels: NDArray[Any], *, classes: int) -> NDArray[np.intp]:
    """Return labels as whole numbers in 0..classes-1, or say what is wrong with them.

    Raises:
        PredictionError: they are no whole numbers, or out of range.

    >>> checked_classes(np.array([0, 2], np.uint8), classes=3)
    array([0, 2])
    """
    found = np.asarray(labels)
    if found.dtype.kind not in "iu":
        raise PredictionError(
            f"labels must be whole numbers; got {found.dtype}. Convert them: labels.astype(int)"
        )
    if found.size and (found.min() < 0 or found.max() >= classes):
        raise PredictionError(
            f"labels must lie in 0..{classes - 1} for {classes} classes; got "
            f"{found.min()}..{found.max()}. Leave out samples on which a rule abstains"
        )
    return found.astype(np.intp)
