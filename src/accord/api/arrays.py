"""Max agreement for arrays alone, without a record."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord import kernels
from accord.errors import PredictionError
from accord.store.intake import to_numpy


def max_agreement(labels: NDArray[Any], *, classes: int) -> NDArray[np.intp]:
    """Predict the class with the most votes over all networks and all epochs.

    Equal votes go to the smaller class.

    Args:
        labels: predicted classes (network, epoch, sample), whole numbers from 0.
        classes: how many classes there are.

    Returns:
        One class per sample.

    Two networks say class 0 for two epochs, then both drift to class 1:

    >>> max_agreement(np.array([[[0], [0], [1]], [[0], [0], [1]]]), classes=2)
    array([0])
    """
    return kernels.winners(_checked(labels), classes=classes).labels


def agreement(labels: NDArray[Any], *, classes: int) -> NDArray[np.float64]:
    """Return the share of all votes that each class has, over networks and epochs.

    >>> agreement(np.array([[[0], [0], [1]], [[0], [0], [1]]]), classes=2).round(2)
    array([[0.67, 0.33]])
    """
    return kernels.agreement(_checked(labels), classes=classes)


def _checked(labels: object) -> NDArray[Any]:
    array = to_numpy(labels)
    if array.ndim != 3:
        raise PredictionError(
            f"labels must have axes (network, epoch, sample); got shape {array.shape}. "
            "For one network, add an axis: labels[None]"
        )
    return array
