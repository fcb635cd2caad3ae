"""Noise that depends on what each sample looks like."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accord.data.noise._label_files import Labels, check_labels, check_mapping, check_noise
from accord.data.readers.cifar import CIFAR10_NAMES, CIFAR100_SUPERCLASS
from accord.errors import ChoiceError


def symmetric_noise(labels: Labels, *, rate: float, classes: int, seed: int) -> Labels:
    """Move exactly `int(rate * samples)` labels to another class, any with equal chance.

    No moved label keeps its class. (Some sources count the true class among the
    ones a label may move to; the paper and its code do not.)

    Args:
        labels: the class of each sample; left as it is.
        rate: the share of samples to move, 0 to 1.
        classes: how many classes there are, at least 2; labels run from 0.
        seed: the same seed always gives the same labels.

    Returns:
        The given labels, of the same type as `labels`.

    Raises:
        ChoiceError: `rate` is outside 0..1, or there are fewer than two classes.
        PredictionError: `labels` are not a row of integers in 0..classes - 1.

    >>> labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    >>> symmetric_noise(labels, rate=0.4, classes=3, seed=0)
    array([0, 0, 1, 1, 2, 0, 2, 1, 2, 2])
    """
    check_noise(rate, classes)
    check_labels(labels, classes)
    random = np.random.default_rng(seed)
    moved = _choose_samples(len(labels), rate, random)
    # A jump of 1..classes - 1 around the circle reaches each other class, never the same one.
    jumps = random.integers(1, classes, size=len(moved))
    return _replace(labels, moved, (labels[moved].astype(np.intp) + jumps) % classes)


def asymmetric_noise(
    labels: Labels,
    *,
    rate: float,
    classes: int,
    seed: int,
    mapping: Sequence[int] | NDArray[np.integer] | None = None,
) -> Labels:
    """Move exactly `int(rate * samples)` labels, each to the one class its own is mistaken for.

    The samples are drawn from all classes together, so the share that moves
    differs a little from class to class.

    Args:
        labels: the class of each sample; left as it is.
        rate: the share of samples to move, 0 to 1.
        classes: how many classes there are, at least 2; labels run from 0.
        seed: the same seed always gives the same labels.
        mapping: class c turns into `mapping[c]`, always another class; by
            default into c + 1, and the last class into 0.

    Returns:
        The given labels, of the same type as `labels`.

    Raises:
        ChoiceError: `rate` is outside 0..1, there are fewer than two classes, or
            `mapping` does not name another class for every class.
        PredictionError: `labels` are not a row of integers in 0..classes - 1.

    >>> labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    >>> asymmetric_noise(labels, rate=0.4, classes=3, seed=0)
    array([0, 0, 1, 1, 2, 2, 2, 0, 2, 2])
    """
    check_noise(rate, classes)
    check_labels(labels, classes)
    turns_into = np.roll(np.arange(classes), -1) if mapping is None else np.asarray(mapping)
    check_mapping(turns_into, classes)
    _check_all_move(turns_into, classes)
    moved = _choose_samples(len(labels), rate, np.random.default_rng(seed))
    return _replace(labels, moved, turns_into[labels[moved]])


def _choose_samples(samples: int, rate: float, random: np.random.Generator) -> NDArray[np.intp]:
    return random.choice(samples, size=int(rate * samples), replace=False).astype(np.intp)


def _replace(labels: Labels, samples: NDArray[np.intp], classes: Labels) -> Labels:
    noisy = labels.copy()
    noisy[samples] = classes
    return noisy


def _check_all_move(mapping: NDArray[np.integer], classes: int) -> None:
    unmoved = np.flatnonzero(mapping == np.arange(classes)).tolist()
    if unmoved:
        raise ChoiceError(
            f"mapping must turn every class into another; it leaves {unmoved} as they are. "
            "A sample of such a class could not be moved, and the rate would not be met."
        )


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


Samples = NDArray[np.uint8] | NDArray[np.floating]  # (sample, …)
_SPREAD = 0.1  # of the samples' own rates around `rate`, as published
_BLOCK = 1024


class SampleFiles(Protocol):
    """Samples that are read when they are needed, such as `ImageFiles`."""

    def __len__(self) -> int:
        """Return how many there are."""

    def read(self, samples: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Return the samples at these positions."""


def instance_noise(
    labels: Labels, *, rate: float, classes: int, seed: int, samples: Samples | SampleFiles
) -> Labels:
    """Move labels by the instance-dependent generator of Xia et al. (2020), algorithm 2.

    "Part-dependent Label Noise", NeurIPS 2020. Each sample i of class y draws its own
    rate q from a normal of mean `rate` and standard deviation 0.1, cut to 0..1. Each class
    y draws a matrix W(y) of standard normals, (feature, class). The label stays with
    probability 1 - q; else it moves to class c with probability softmax(x W(y))[c], y
    itself left out. So samples that look alike are mistaken alike, and the number of moved
    labels is near `rate * samples`, not exact.

    Args:
        labels: the class of each sample; left as it is.
        rate: the mean share of samples to move, 0 to 1.
        classes: how many classes there are, at least 2; labels run from 0.
        seed: the same seed, labels and samples give the same labels.
        samples: what each sample looks like, (sample, …); bytes are divided by 255.

    Returns:
        The given labels, of the same type as `labels`.

    Raises:
        ChoiceError: `rate` or `classes` are out of range, or `samples` are not numbers.
        PredictionError: `labels` are not a row of integers in 0..classes - 1.
    """
    check_noise(rate, classes)
    check_labels(labels, classes)
    _check_samples(samples, len(labels))
    random = np.random.default_rng(seed)
    moves = random.random(len(labels)) < _own_rates(rate, len(labels), random)
    draws = random.random(len(labels))
    noisy = labels.copy()
    for label in range(classes):
        moved = np.flatnonzero(moves & (labels == label))
        for block, looks in _read_blocks(samples, moved):
            shares = _softmax(looks @ _weights(seed, label, looks.shape[1], classes), label)
            reached = shares.cumsum(axis=1) > draws[block, None]
            noisy[block] = reached.argmax(axis=1)
    return noisy


def _own_rates(rate: float, samples: int, random: np.random.Generator) -> NDArray[np.float64]:
    rates = random.normal(rate, _SPREAD, samples)
    while (outside := (rates < 0) | (rates > 1)).any():
        rates[outside] = random.normal(rate, _SPREAD, outside.sum())
    return rates


def _weights(seed: int, label: int, features: int, classes: int) -> NDArray[np.float64]:
    # One matrix at a time: all of them together are classes times larger.
    return np.random.default_rng([seed, label]).standard_normal((features, classes))


def _softmax(scores: NDArray[np.float64], without: int) -> NDArray[np.float64]:
    scores[:, without] = -np.inf
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    # Rounding may leave the sum below a draw just under 1: the last class takes the rest.
    last = scores.shape[1] - 1 - (without == scores.shape[1] - 1)
    shares[:, last] += 1 - shares.sum(axis=1)
    return shares


def _read_blocks(
    samples: Samples | SampleFiles, positions: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    for start in range(0, len(positions), _BLOCK):
        block = positions[start : start + _BLOCK]
        values = samples[block] if isinstance(samples, np.ndarray) else samples.read(block)
        looks = values.reshape(len(block), -1).astype(np.float64)
        yield block, looks / 255 if values.dtype == np.uint8 else looks


def _check_samples(samples: Samples | SampleFiles, wanted: int) -> None:
    if isinstance(samples, tuple):
        raise ChoiceError(
            "instance noise needs samples made of numbers: images or a table; got texts."
        )
    if len(samples) != wanted:
        raise ChoiceError(
            f"instance noise needs {wanted} samples, one per label; got {len(samples)}."
        )
