"""Select networks, epochs and samples by number or position."""

import operator
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError


def pick(
    values: NDArray[Any],  # (network, epoch, sample, ...)
    networks: Sequence[int],
    epochs: Sequence[int],
    samples: slice,
) -> NDArray[Any]:
    """Index an array by networks, epochs and samples, as a view where possible."""
    by, at = as_slice(networks), as_slice(epochs)
    if isinstance(by, list) and isinstance(at, list):
        return values[:, :, samples][np.ix_(by, at)]
    found = values[by, at, samples]
    found.flags.writeable = False  # the memory is shared
    return found


def as_slice(positions: Sequence[int]) -> slice | list[int]:
    """Convert evenly spaced, ascending positions to a slice.

    >>> as_slice([0, 2, 4]), as_slice([2, 1])
    (slice(0, 5, 2), [2, 1])
    """
    if not len(positions):
        return slice(0, 0)
    first, last = positions[0], positions[-1]
    step = positions[1] - first if len(positions) > 1 else 1
    if step < 1 or list(positions) != list(range(first, last + 1, step)):
        return list(positions)
    return slice(first, last + 1, step)


def whole_numbers(name: str, argument: str, values: Iterable[Any]) -> list[int]:
    try:
        return [operator.index(value) for value in values]
    except TypeError as error:
        raise ChoiceError(
            f"{name}: {argument} must be a list of whole numbers; got {values!r}. "
            "For a single one: [3]"
        ) from error


def check_numbers(name: str, chosen: Sequence[int], present: Collection[int]) -> None:
    """Check that the numbers of networks are known and unique."""
    unknown = [number for number in chosen if number not in present]
    if unknown:
        have = ", ".join(map(str, present))
        raise ChoiceError(f"{name}: no network {unknown[0]}; there are {have}")
    if len(set(chosen)) < len(chosen):
        raise ChoiceError(f"{name}: a network is selected twice in {list(chosen)}")


def check_positions(name: str, axis: str, positions: tuple[int, ...], available: int) -> None:
    if not positions:
        raise ChoiceError(f"{name}: no {axis} is selected; there are {available}")
    if len(set(positions)) < len(positions):
        raise ChoiceError(f"{name}: the same {axis} is selected twice in {list(positions)}")
    if not all(0 <= position < available for position in positions):
        raise ChoiceError(
            f"{name}: {axis}s must lie in 0..{available - 1}; "
            f"got {min(positions)}..{max(positions)}"
        )
