"""Noise that depends on what each sample looks like."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accord.data.noise.checks import Labels, check_labels, check_noise
from accord.errors import ChoiceError

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
