"""Stored predictions that look like an array and are read when indexed."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Read = Callable[[Sequence[int], Sequence[int], slice], NDArray[Any]]


class StoredArray:
    """An array over (network, epoch, sample) or (network, epoch, sample, class) on disk.

    Index it as you would a numpy array; only the rows asked for are read, so
    `record.labels[:, -1]` reads the last epoch alone.
    """

    def __init__(self, read: Read, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self._read = read
        self.shape = shape
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        networks, epochs, *rest = self._split(key)
        positions = _positions(networks, self.shape[0]), _positions(epochs, self.shape[1])
        values = self._read(*positions, *_span(rest[0]))
        chosen: NDArray[Any] = values[(_again(networks), _again(epochs), *_inside(rest))]
        return chosen

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("reading a record always makes a copy")
        return self[:].astype(dtype or self.dtype, copy=False)

    def __repr__(self) -> str:
        return f"<stored array, shape {self.shape}, {self.dtype}>"

    def _split(self, key: Any) -> list[Any]:
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in [one for one in keys if one is Ellipsis]:
            at = next(i for i, one in enumerate(keys) if one is Ellipsis)
            keys[at : at + 1] = [slice(None)] * (self.ndim - len(keys) + 1)
        if len(keys) > self.ndim:
            raise IndexError(f"{self.ndim} axes, {len(keys)} indices")
        keys += [slice(None)] * (self.ndim - len(keys))
        return [_as_key(one) for one in keys]


def _as_key(key: Any) -> Any:
    if isinstance(key, slice):
        return key
    if isinstance(key, list | tuple | range | np.ndarray):
        values = np.asarray(key)
        return np.flatnonzero(values).tolist() if values.dtype == bool else values.tolist()
    return operator.index(key)


def _positions(key: Any, size: int) -> list[int]:
    positions = range(size)
    if isinstance(key, slice):
        return list(positions[key])
    return [positions[one] for one in (key if isinstance(key, list) else [key])]


def _again(key: Any) -> Any:
    """Return how to take, as numpy would, what was read of an axis in the order of its key."""
    if isinstance(key, list):
        return list(range(len(key)))
    return slice(None) if isinstance(key, slice) else 0


def _span(key: Any) -> tuple[slice]:
    """Return the samples to read: exactly a plain slice, everything for anything else."""
    plain = isinstance(key, slice) and key.step in (None, 1)
    return (key if plain else slice(None),)


def _inside(keys: list[Any]) -> list[Any]:
    """Return what is left to index once the samples were read."""
    plain = isinstance(keys[0], slice) and keys[0].step in (None, 1)
    return [slice(None) if plain else keys[0], *keys[1:]]
