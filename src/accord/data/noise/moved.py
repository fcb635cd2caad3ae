"""Noise that moves an exact share of all labels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accord.data.noise.checks import Labels, check_labels, check_mapping, check_noise
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
