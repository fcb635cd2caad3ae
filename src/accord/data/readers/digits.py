"""The embedded digits, as a data set."""

from pathlib import Path

import numpy as np

from accord.data.dataset import Dataset, Split
from accord.data.digits import Digits, load_digits, split_digits
from accord.errors import ChoiceError


def read_digits(path: Path | None = None, *, seed: int = 0, train_share: float = 0.6) -> Dataset:
    """Read the 1,797 digits of 8 by 8 pixels that come with Accord.

    The ink, 0 to 16 in the original, is spread over 0 to 255.

    Args:
        path: there is none; leave it out.
        seed: which samples are for training.
        train_share: how much of each class to train on.

    >>> read_digits().train.inputs.shape
    (1078, 1, 8, 8)
    """
    if path is not None:
        raise ChoiceError(f"the digits come with Accord and take no path; got {path}.")
    train, test = split_digits(load_digits(), seed=seed, train_share=train_share)
    names = tuple(str(digit) for digit in range(10))
    return Dataset("digits", "image", names, train=_as_split(train), test=_as_split(test))


def _as_split(digits: Digits) -> Split:
    images = np.rint(digits.images[:, None] * (255 / 16)).astype(np.uint8)
    return Split(images, digits.labels.astype(np.int64))
