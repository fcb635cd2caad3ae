"""Reader of the handwritten digits included in Accord."""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accord.data._dataset import Dataset, Split
from accord.errors import ChoiceError


@dataclass(frozen=True, eq=False)
class Digits:
    """Container for images of digits and their labels."""

    images: NDArray[np.uint8]  # (sample, row, column), 0 (paper) to 16 (ink)
    labels: NDArray[np.uint8]  # (sample,)


def load_digits() -> Digits:
    """Load the digits data set.

    It has 1,797 images of 8 by 8 pixels, in the order of scikit-learn.
    The images are the test part of "Optical Recognition of Handwritten Digits" by
    E. Alpaydin and C. Kaynak, UCI Machine Learning Repository (1998), CC BY 4.0.

    >>> digits = load_digits()
    >>> digits.images.shape, digits.labels[:5].tolist()
    ((1797, 8, 8), [0, 1, 2, 3, 4])
    """
    source = files("accord.data").joinpath("digits.npz")
    with source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return Digits(images=arrays["images"], labels=arrays["labels"])


def split_digits(digits: Digits, *, seed: int, train_share: float = 0.6) -> tuple[Digits, Digits]:
    """Split digits into training and test subsets, stratified by class.

    The share is rounded to whole samples in each class. Both parts keep the order of `digits`.

    Args:
        digits: the samples to split.
        seed: the same seed gives the same split.
        train_share: the share of each class to train on, between 0 and 1.

    Returns:
        The training part, then the test part.

    Raises:
        ChoiceError: `train_share` does not lie between 0 and 1.

    >>> train, test = split_digits(load_digits(), seed=0)
    >>> len(train.labels), len(test.labels)
    (1078, 719)
    """
    train, test = _split_rows(digits.labels, seed, train_share)
    return (
        Digits(digits.images[train], digits.labels[train]),
        Digits(digits.images[test], digits.labels[test]),
    )


def _split_rows(
    labels: NDArray[np.uint8], seed: int, train_share: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if not 0 < train_share < 1:
        raise ChoiceError(
            f"train_share must lie between 0 and 1; got {train_share}. "
            "Is it a percentage, or a number of samples?"
        )
    random = np.random.default_rng(seed)
    in_train = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        samples = np.flatnonzero(labels == label)
        in_train[random.permutation(samples)[: round(train_share * len(samples))]] = True
    return np.flatnonzero(in_train), np.flatnonzero(~in_train)


def read_digits(path: Path | None = None, *, seed: int = 0, train_share: float = 0.6) -> Dataset:
    """Read the digits data set as a `Dataset`, split as by `split_digits`.

    Pixels, 0 to 16 in the original, are scaled to 0..255. Ids are rows of `load_digits`.

    >>> read_digits().train.inputs.shape
    (1078, 1, 8, 8)
    """
    if path is not None:
        raise ChoiceError(f"the digits come with Accord and take no path; got {path}.")
    digits = load_digits()
    images = np.rint(digits.images[:, None] * (255 / 16)).astype(np.uint8)
    whole = Split(images, digits.labels.astype(np.int64))
    train, test = map(whole.choose, _split_rows(digits.labels, seed, train_share))
    return Dataset("digits", "image", tuple(map(str, range(10))), train=train, test=test)
