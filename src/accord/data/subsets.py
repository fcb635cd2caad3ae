"""Parts of a split, drawn class by class."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from accord.data.dataset import Labels, Split
from accord.errors import ChoiceError


def hold_out(split: Split, share: float, seed: int) -> tuple[Split, Split]:
    """Set a share of the samples aside, for validation; the classes stay in proportion.

    `round(share * samples)` are held out: of each class its share rounded down, the rest
    from the classes that rounding robbed most, the smaller class first. A class always
    keeps a sample to train on. Classes are those of `split.labels`, wrong or not. Both
    parts keep the order of `split`.

    Args:
        split: what to divide; left as it is.
        share: how much to hold out, between 0 and 1.
        seed: the same seed always holds out the same samples.

    Returns:
        What is left, then what is held out.

    Raises:
        ChoiceError: `share` does not lie between 0 and 1, or would hold out nothing.

    >>> split = Split(tuple("abcdefgh"), np.array([0, 0, 0, 0, 0, 0, 1, 1]))
    >>> rest, held = hold_out(split, 0.5, seed=0)
    >>> rest.labels, held.labels
    (array([0, 0, 0, 1]), array([0, 0, 0, 1]))
    """
    if not 0 < share < 1:
        raise ChoiceError(
            f"the share to hold out must lie between 0 and 1; got {share}. "
            "Is it a percentage, or a number of samples?"
        )
    held = np.zeros(len(split), dtype=bool)
    quotas = _quotas(np.unique(split.labels, return_counts=True)[1], share)
    for members, quota in zip(_shuffled(split.labels, seed), quotas.tolist(), strict=True):
        held[members[:quota]] = True
    if not held.any():
        raise ChoiceError(
            f"a share of {share} of {len(split)} samples holds out none: give a larger "
            "share, as validation or held_out under [data]."
        )
    return split.choose(~held), split.choose(held)


def fewer_per_class(split: Split, count: int, seed: int) -> Split:
    """Keep at most `count` samples of each class; a class that has fewer keeps them all.

    Args:
        split: what to draw from; left as it is, and its order is kept.
        count: at least 1.
        seed: the same seed always keeps the same samples.

    Raises:
        ChoiceError: `count` is below 1.

    >>> split = Split(tuple("abcdef"), np.array([0, 0, 0, 0, 1, 1]))
    >>> fewer_per_class(split, 3, seed=0).labels
    array([0, 0, 0, 1, 1])
    """
    if count < 1:
        raise ChoiceError(f"at least 1 sample of each class must stay; got {count}.")
    kept = np.concatenate([members[:count] for members in _shuffled(split.labels, seed)])
    return split.choose(np.sort(kept))


def _shuffled(labels: Labels, seed: int) -> Iterator[NDArray[np.intp]]:
    random = np.random.default_rng(seed)
    for label in np.unique(labels):
        yield random.permutation(np.flatnonzero(labels == label))


def _quotas(sizes: NDArray[np.intp], share: float) -> NDArray[np.intp]:
    exact = share * sizes
    quotas: NDArray[np.intp] = np.floor(exact).astype(np.intp)
    missing = round(share * int(sizes.sum())) - int(quotas.sum())
    robbed_most_first = np.argsort(quotas - exact, kind="stable")
    can_spare = robbed_most_first[quotas[robbed_most_first] + 1 < sizes[robbed_most_first]]
    quotas[can_spare[: max(missing, 0)]] += 1
    return quotas
