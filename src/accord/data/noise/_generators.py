"""Generators of label noise."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from accord.data._dataset import Labels
from accord.data._image_files import ImageFiles
from accord.data.readers.cifar import CIFAR10_NAMES, CIFAR100_SUPERCLASS
from accord.errors import ChoiceError, PredictionError
from accord.kernels import check_class_range

Mapping = Sequence[int] | NDArray[np.integer]  # (class,) -> class
Samples = NDArray[np.uint8] | NDArray[np.floating]  # (sample, …)
_PATRINI_CIFAR10 = {
    "truck": "automobile",
    "bird": "airplane",
    "deer": "horse",
    "cat": "dog",
    "dog": "cat",
}
_BLOCK = 1024


def symmetric_noise(labels: Labels, *, rate: float, classes: int, seed: int) -> Labels:
    """Generate symmetric label noise.

    Exactly `int(rate * samples)` labels move, to each other class with equal probability.
    (Some sources count the true class among them. The paper and its code do not.)

    Args:
        labels: the class of each sample.
        rate: the share of samples to move, 0 to 1.
        classes: the number of classes, at least 2, with labels from 0.
        seed: the same seed gives the same labels.

    Returns:
        The noisy labels, of the same type as `labels`.

    Raises:
        ChoiceError: `rate` is outside 0..1, or there are fewer than two classes.
        PredictionError: `labels` are not a vector of integers in 0..classes - 1.

    >>> labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    >>> symmetric_noise(labels, rate=0.4, classes=3, seed=0)
    array([0, 0, 1, 1, 2, 0, 2, 1, 2, 2])
    """
    _check_arguments(labels, rate, classes)
    random = np.random.default_rng(seed)
    moved = _choose_samples(len(labels), rate, random)
    # Adding 1..classes - 1 modulo classes reaches each other class, and never the same one.
    steps = random.integers(1, classes, size=len(moved))
    noisy = labels.copy()
    noisy[moved] = (labels[moved].astype(np.intp) + steps) % classes
    return noisy


def asymmetric_noise(
    labels: Labels, *, rate: float, classes: int, seed: int, mapping: Mapping | None = None
) -> Labels:
    """Generate asymmetric label noise.

    Exactly `int(rate * samples)` labels move, each class to one other class.
    The samples are drawn from all classes together, so the share that moves differs
    slightly between classes. Class c turns into `mapping[c]`, always another class, by default
    into c + 1, and the last class into 0. All else is as in `symmetric_noise`.

    >>> labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    >>> asymmetric_noise(labels, rate=0.4, classes=3, seed=0)
    array([0, 0, 1, 1, 2, 2, 2, 0, 2, 2])
    """
    _check_arguments(labels, rate, classes)
    turns_into = np.roll(np.arange(classes), -1) if mapping is None else np.asarray(mapping)
    _check_mapping(turns_into, classes)
    if unmoved := np.flatnonzero(turns_into == np.arange(classes)).tolist():
        raise ChoiceError(
            f"mapping must turn every class into another; it keeps {unmoved}. Samples of such a "
            "class cannot be moved, and the rate would not be reached. To keep classes: kind='map'"
        )
    moved = _choose_samples(len(labels), rate, np.random.default_rng(seed))
    noisy = labels.copy()
    noisy[moved] = turns_into[labels[moved]]
    return noisy


def mapped_noise(
    labels: Labels, *, rate: float, classes: int, seed: int, mapping: Mapping
) -> Labels:
    """Generate label noise along a mapping of classes.

    Exactly `int(rate * size)` labels move in each class that the mapping changes.
    Unlike in `asymmetric_noise`, classes may remain the same (`mapping[c] == c`), and the
    rate holds within each class that moves: the share of wrong labels overall is smaller.

    >>> labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2])
    >>> mapped_noise(labels, rate=0.5, classes=3, seed=0, mapping=[1, 0, 2])
    array([1, 0, 1, 0, 1, 1, 0, 0, 2, 2])
    """
    _check_arguments(labels, rate, classes)
    turns_into = np.asarray(mapping)
    _check_mapping(turns_into, classes)
    random = np.random.default_rng(seed)
    noisy = labels.copy()
    for source in np.flatnonzero(turns_into != np.arange(classes)):
        samples = np.flatnonzero(labels == source)
        moved = random.permutation(samples)[: int(rate * len(samples))]
        noisy[moved] = turns_into[source]
    return noisy


def patrini_noise(labels: Labels, *, rate: float, classes: int, seed: int) -> Labels:
    """Generate the label noise of Patrini et al. (2017) for CIFAR-10 and CIFAR-100.

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
    """Generate label noise within the superclasses of CIFAR-100.

    Exactly `int(rate * samples)` labels move to the next class of their superclass.
    The five classes of a superclass form a cycle, in the order of their numbers. Errors
    are those of `asymmetric_noise`; also a ChoiceError if there are not 100 classes.

    >>> superclass_noise(np.array([4, 30, 95]), rate=1, classes=100, seed=0)  # beaver, dolphin, …
    array([30, 55,  4])
    """
    mapping = superclass_mapping(classes)
    return asymmetric_noise(labels, rate=rate, classes=classes, seed=seed, mapping=mapping)


def patrini_mapping(classes: int) -> NDArray[np.intp]:
    if classes == 100:
        numbers = np.arange(100)
        return numbers - numbers % 5 + (numbers + 1) % 5
    if classes == 10:
        names = [_PATRINI_CIFAR10.get(name, name) for name in CIFAR10_NAMES]
        return np.array([CIFAR10_NAMES.index(name) for name in names])
    raise ChoiceError(
        f"patrini noise is defined for CIFAR-10 and CIFAR-100; got {classes} classes. "
        "For other data give a mapping: kind='map'"
    )


def superclass_mapping(classes: int) -> NDArray[np.intp]:
    if classes != 100:
        raise ChoiceError(
            f"superclass noise is defined for CIFAR-100; got {classes} classes. "
            "For other data give a mapping: kind='asymmetric'"
        )
    mapping = np.empty(100, dtype=np.intp)
    for superclass in np.unique(CIFAR100_SUPERCLASS):
        members = np.flatnonzero(superclass == CIFAR100_SUPERCLASS)
        mapping[members] = np.roll(members, -1)
    return mapping


def instance_noise(
    labels: Labels, *, rate: float, classes: int, seed: int, samples: Samples | ImageFiles
) -> Labels:
    """Generate the instance-dependent label noise of Xia et al. (2020).

    "Part-dependent Label Noise", NeurIPS 2020, algorithm 2. Each sample i of class y draws a
    rate q from a normal distribution of mean `rate` and standard deviation 0.1, truncated to
    0..1. Each class y draws a matrix W(y) of standard normals, (feature, class). The label
    stays with probability 1 - q; otherwise it moves to class c with probability
    softmax(x W(y))[c], with y left out. Similar samples thus get similar wrong labels, and the
    number of moved labels is close to `rate * samples`, not exact.

    The features of `samples`, (sample, …), are numbers; uint8 is divided by 255. All else is as
    in `symmetric_noise`.
    """
    _check_arguments(labels, rate, classes)
    if isinstance(samples, tuple):
        raise ChoiceError("instance noise needs numeric samples, images or a table; got texts.")
    if len(samples) != len(labels):
        raise ChoiceError(
            f"instance noise needs {len(labels)} samples, one per label; got {len(samples)}."
        )
    random = np.random.default_rng(seed)
    moves = random.random(len(labels)) < _own_rates(rate, len(labels), random)
    draws = random.random(len(labels))
    noisy = labels.copy()
    for label in range(classes):
        moved = np.flatnonzero(moves & (labels == label))
        for block, features in _read_blocks(samples, moved):
            # One matrix at a time: together they would take `classes` times as much memory.
            shape = (features.shape[1], classes)
            weights = np.random.default_rng([seed, label]).standard_normal(shape)
            probabilities = _softmax(features @ weights, without=label)
            noisy[block] = (probabilities.cumsum(axis=1) > draws[block, None]).argmax(axis=1)
    return noisy


def _own_rates(rate: float, samples: int, random: np.random.Generator) -> NDArray[np.float64]:
    spread = 0.1  # as published
    rates = random.normal(rate, spread, samples)
    while (outside := (rates < 0) | (rates > 1)).any():
        rates[outside] = random.normal(rate, spread, outside.sum())
    return rates


def _softmax(scores: NDArray[np.float64], *, without: int) -> NDArray[np.float64]:
    scores[:, without] = -np.inf
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    # Rounding may leave the sum below a draw just under 1: the last class takes the rest.
    last = scores.shape[1] - 1 - (without == scores.shape[1] - 1)
    shares[:, last] += 1 - shares.sum(axis=1)
    return shares


def _read_blocks(
    samples: Samples | ImageFiles, positions: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    for start in range(0, len(positions), _BLOCK):
        block = positions[start : start + _BLOCK]
        values = samples[block] if isinstance(samples, np.ndarray) else samples.read(block)
        features = values.reshape(len(block), -1).astype(np.float64)
        yield block, features / 255 if values.dtype == np.uint8 else features


def _choose_samples(samples: int, rate: float, random: np.random.Generator) -> NDArray[np.intp]:
    return random.choice(samples, size=int(rate * samples), replace=False).astype(np.intp)


def _check_arguments(labels: Labels, rate: float, classes: int) -> None:
    if not 0 <= rate <= 1:
        raise ChoiceError(f"rate must lie in 0..1; got {rate}. Is it a percentage?")
    if classes < 2:
        raise ChoiceError(
            f"label noise needs at least 2 classes; got {classes}. "
            "A single class has no wrong labels."
        )
    check_labels(labels, classes)


def check_labels(labels: Labels, classes: int) -> None:
    """Check that labels are valid class indices."""
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise PredictionError(
            "labels must be integers, one per sample; "
            f"got {labels.dtype} of shape {labels.shape}. Are they one-hot or probabilities?"
        )
    check_class_range(labels, classes=classes)
    if np.iinfo(labels.dtype).max < classes - 1:
        raise PredictionError(
            f"labels of type {labels.dtype} cannot hold class {classes - 1}, which noise may give. "
            "Use a wider type: labels.astype(int)"
        )


def _check_mapping(mapping: NDArray[np.integer], classes: int) -> None:
    if mapping.shape != (classes,) or not np.issubdtype(mapping.dtype, np.integer):
        raise ChoiceError(
            f"mapping must hold one class for each of the {classes} classes; "
            f"got {mapping.dtype} of shape {mapping.shape}."
        )
    check_class_range(mapping, classes=classes, name="mapping: classes", error=ChoiceError)
