"""Noise that turns each class into one other, class by class."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accord.data.cifar_classes import CIFAR10_NAMES, CIFAR100_SUPERCLASS
from accord.data.noise.checks import Labels, check_labels, check_mapping, check_noise
from accord.data.noise.moved import asymmetric_noise
from accord.errors import ChoiceError

Mapping = Sequence[int] | NDArray[np.integer]  # (class,) -> class
_PATRINI_CIFAR10 = {
    "truck": "automobile",
    "bird": "airplane",
    "deer": "horse",
    "cat": "dog",
    "dog": "cat",
}


def mapped_noise(
    labels: Labels, *, rate: float, classes: int, seed: int, mapping: Mapping
) -> Labels:
    """Move exactly `int(rate * size)` labels of each class that the mapping moves.

    Unlike `asymmetric_noise`, classes may stay as they are (`mapping[c] == c`), and the
    rate holds within each class that moves: the share of wrong labels overall is smaller.

    Args:
        labels: the class of each sample; left as it is.
        rate: the share to move of each class that moves, 0 to 1.
        classes: how many classes there are, at least 2; labels run from 0.
        seed: the same seed always gives the same labels.
        mapping: class c turns into `mapping[c]`.

    Returns:
        The given labels, of the same type as `labels`.

    Raises:
        ChoiceError: `rate` is outside 0..1, or `mapping` does not name a class for each class.
        PredictionError: `labels` are not a row of integers in 0..classes - 1.

    >>> labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2])
    >>> mapped_noise(labels, rate=0.5, classes=3, seed=0, mapping=[1, 0, 2])
    array([1, 0, 1, 0, 1, 1, 0, 0, 2, 2])
    """
    check_noise(rate, classes)
    check_labels(labels, classes)
    turns_into = np.asarray(mapping)
    check_mapping(turns_into, classes)
    random = np.random.default_rng(seed)
    noisy = labels.copy()
    for source in np.flatnonzero(turns_into != np.arange(classes)):
        members = np.flatnonzero(labels == source)
        moved = random.permutation(members)[: int(rate * len(members))]
        noisy[moved] = turns_into[source]
    return noisy


def patrini_noise(labels: Labels, *, rate: float, classes: int, seed: int) -> Labels:
    """Move labels as Patrini et al. (2017) do on CIFAR-10 and CIFAR-100.

    CIFAR-10: truck to automobile, bird to airplane, deer to horse, cat to dog and back.
    CIFAR-100: each class to the next within blocks of five consecutive classes, the last
    to the first. The blocks are alphabetical, and so not the superclasses; for those see
    `superclass_noise`. Counts and errors are those of `mapped_noise`.

    >>> labels = np.array([9, 9, 0, 3, 3, 5, 5])
    >>> patrini_noise(labels, rate=0.5, classes=10, seed=0)
    array([1, 9, 0, 5, 3, 3, 5])
    """
    mapping = patrini_mapping(classes)
    return mapped_noise(labels, rate=rate, classes=classes, seed=seed, mapping=mapping)


def superclass_noise(labels: Labels, *, rate: float, classes: int, seed: int) -> Labels:
    """Move exactly `int(rate * samples)` labels to the next class of their CIFAR-100 superclass.

    The five classes of a superclass form a circle, in the order of their numbers. Errors
    are those of `asymmetric_noise`; also a ChoiceError if there are not 100 classes.

    >>> superclass_noise(np.array([4, 30, 95]), rate=1, classes=100, seed=0)  # beaver, dolphin, …
    array([30, 55,  4])
    """
    mapping = superclass_mapping(classes)
    return asymmetric_noise(labels, rate=rate, classes=classes, seed=seed, mapping=mapping)


def patrini_mapping(classes: int) -> NDArray[np.intp]:
    """Return the class that each class turns into, for 10 classes or 100."""
    if classes == 100:
        numbers = np.arange(100)
        return numbers - numbers % 5 + (numbers + 1) % 5
    if classes == 10:
        names = [_PATRINI_CIFAR10.get(name, name) for name in CIFAR10_NAMES]
        return np.array([CIFAR10_NAMES.index(name) for name in names])
    raise ChoiceError(
        f"patrini noise is defined for CIFAR-10 and CIFAR-100; got {classes} classes. "
        "For other data name a mapping: kind='map'"
    )


def superclass_mapping(classes: int) -> NDArray[np.intp]:
    """Return the class that each of CIFAR-100's classes turns into."""
    if classes != 100:
        raise ChoiceError(
            f"superclass noise is defined for CIFAR-100; got {classes} classes. "
            "For other data name a mapping: kind='asymmetric'"
        )
    mapping = np.empty(100, dtype=np.intp)
    for superclass in np.unique(CIFAR100_SUPERCLASS):
        members = np.flatnonzero(superclass == CIFAR100_SUPERCLASS)
        mapping[members] = np.roll(members, -1)
    return mapping
