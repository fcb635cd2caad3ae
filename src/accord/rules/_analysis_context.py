"""Caching of records and results in memory.

A command wraps the reader of a record in one `Context` and passes it down. Rules and analysis
functions read through it, so that each row is decoded once however many of them need it, and
use `once` for what others may need as well: a fit, the agreement of pairs, a rule's prediction.
`select` returns a context over the same rows; equal selections share their results, too.
"""

import math
import os
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final, TypeVar, TypeVarTuple, cast
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import DTypeLike, NDArray

from accord.errors import ChoiceError
from accord.store import ArrayReader, Block, NetworkInfo, RecordReader, label_dtype
from accord.store._record_format import LABELS, PROBABILITIES
from accord.store._record_reader import Subset
from accord.store._selection import pick

VARIABLE: Final = "ACCORD_MEMORY"
MEMORY: Final = 512 << 20  # bytes
UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


def memory_budget() -> int:
    """Read the memory budget in bytes from `ACCORD_MEMORY`."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return MEMORY
    size = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMG]?)(?:I?B)?", text.strip().upper())
    if size is None:
        raise ChoiceError(f"{VARIABLE} must be a size such as 512M, 4G or 1000000; got {text!r}")
    return int(float(size[1]) * UNITS[size[2]])


class Context(RecordReader):
    """Reader that caches rows and results of a record.

    It stands wherever a `RecordReader` does. Up to `ACCORD_MEMORY` bytes of labels (512 MiB by
    default), and as many of probabilities, are kept: each row is read once, when it is first
    needed. Rows of a larger record are read again by each pass over its blocks of samples.

    Args:
        reader: of a record, or of arrays.
        memory: bytes to keep, instead of `ACCORD_MEMORY`.

    >>> from accord.store import SampleInfo
    >>> context = Context(ArrayReader(np.zeros((2, 5, 3), int), SampleInfo(3, classes=2)))
    >>> context.select(networks=[1]) is context.select(networks=[1])
    True
    """

    def __init__(self, reader: RecordReader, *, memory: int | None = None) -> None:
        memory = memory_budget() if memory is None else memory
        self._look_through(_KeptReader(reader, memory), memory)

    def _look_through(
        self,
        view: RecordReader,
        memory: int,
        *,
        longer: "Context | None" = None,
        labels: NDArray[Any] | None = None,
    ) -> None:
        self.name, self.sample_info = view.name, view.sample_info
        self.numbers, self.epochs = view.numbers, view.epochs
        self.has_probabilities = view.has_probabilities
        self.longer = longer  # the context whose first epochs these are, if it is one
        self._view, self._memory = view, memory
        self.has_missing = view.has_missing
        self._labels = labels  # all of them, once they are read
        self._results: dict[Hashable, Any] = {}
        # Weak: many selections are needed once, and what was fitted on each may be large.
        self._selections: WeakValueDictionary[Hashable, Context] = WeakValueDictionary()

    @classmethod
    def of(cls, reader: RecordReader) -> "Context":
        """Create a context unless the reader already is one."""
        return reader if isinstance(reader, Context) else cls(reader)

    def once(
        self, compute: "Callable[[Context, *Arguments], Result]", *arguments: *Arguments
    ) -> Result:
        """Compute a result on first use and cache it.

        The arguments must be hashable. The result is shared: do not change it.
        """
        key = compute, arguments
        if key not in self._results:
            self._results[key] = compute(self, *arguments)
        return cast("Result", self._results[key])

    def computed(self, compute: "Callable[[Context], Result]") -> Result | None:
        """Get a cached result or None."""
        return self._results.get((compute, ()))

    def select(
        self,
        networks: Sequence[int] | None = None,
        epochs: slice | Sequence[int] | None = None,
        samples: slice | None = None,
    ) -> "Context":
        """Select networks, epochs and samples.

        While it exists, the same selection returns the same context; of everything, this one.
        """
        by, at = self.positions(networks, epochs)
        samples = slice(None) if samples is None else samples
        within = range(self.samples)[samples]
        first = range(len(at))  # epochs, if all that come before are selected too
        whole = by == tuple(range(self.networks)) and within == range(self.samples)
        if whole and at == tuple(range(self.epochs)):
            return self
        selected = self._selections.get((by, at, within))
        if selected is None:
            view = Subset(self._view, by, at, samples)
            longer = self if whole and at == tuple(first) else None
            labels = None if self._labels is None else pick(self._labels, by, at, samples)
            selected = _Selection(view, self._memory, longer=longer, labels=labels)
            self._selections[by, at, within] = selected
        return selected

    def last(self) -> "Context":
        """Select the last epoch."""
        return self if self.epochs == 1 else self.select(epochs=[self.epochs - 1])

    @property
    def keeps_labels(self) -> bool:
        """Whether labels are cached in memory."""
        votes = len(self.numbers) * self.epochs * self.sample_info.samples
        kind = label_dtype(self.sample_info.classes + self.has_missing)
        return votes * kind.itemsize <= self._memory

    def load_labels(self, *, gaps: bool = False) -> NDArray[Any] | None:
        """Load all labels if they fit into the memory budget.

        They are read-only. With `gaps`, missing votes are `classes`, and otherwise refused.
        """
        if self.has_missing and not gaps:
            self.check_complete()
        if self._labels is None and self.keeps_labels:
            everything = range(self.networks), range(self.epochs)
            self._labels = self._view.read(LABELS, *everything, slice(None))
        return self._labels

    def blocks(self, *, gaps: bool = False) -> Iterator[Block]:
        """Iterate over the labels in blocks of samples."""
        labels = self.load_labels(gaps=gaps)
        if labels is None:
            return super().blocks(gaps=gaps)
        cuts = list(self._cuts(labels.dtype.itemsize))
        return iter([Block(cut.start, cut.stop, labels[:, :, cut]) for cut in cuts])

    def read(
        self, array: str, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Read labels, `classes` where a vote is missing, or probabilities."""
        return self._view.read(array, networks, epochs, samples)

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """Get the metadata of each network."""
        return self._view.networks_info()

    @property
    def with_probabilities(self) -> tuple[int, ...]:
        """Numbers of the networks with recorded probabilities."""
        return self._view.with_probabilities

    def __reduce__(self) -> tuple[Any, ...]:
        return _Selection, (self._view, self._memory)  # rows can be read again


class _Selection(Context):
    """Context for a selection from another context."""

    def __init__(
        self,
        view: RecordReader,
        memory: int,
        *,
        longer: Context | None = None,
        labels: NDArray[Any] | None = None,
    ) -> None:
        self._look_through(view, memory, longer=longer, labels=labels)


class _KeptReader(RecordReader):
    """Reader that caches the rows of another reader, up to `memory` bytes of each array."""

    def __init__(self, reader: RecordReader, memory: int) -> None:
        self.name, self.sample_info = reader.name, reader.sample_info
        self.numbers, self.epochs = reader.numbers, reader.epochs
        self.has_probabilities, self.has_missing = reader.has_probabilities, reader.has_missing
        self._reader, self._memory = reader, memory
        shape = self.networks, self.epochs, self.samples
        kind = label_dtype(self.classes + self.has_missing)
        self._values: dict[str, NDArray[Any]] = {}
        self._kept: dict[str, NDArray[np.bool_]] = {}  # (network, epoch)
        if not isinstance(reader, ArrayReader):
            self._keep(LABELS, shape, kind)
            self._keep(PROBABILITIES, (*shape, self.classes), np.float16)

    def _keep(self, array: str, shape: tuple[int, ...], kind: DTypeLike) -> None:
        if math.prod(shape) * np.dtype(kind).itemsize <= self._memory:
            self._values[array] = np.empty(shape, kind)  # takes memory as it is filled
            self._kept[array] = np.zeros(shape[:2], bool)

    def read(
        self, array: str, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        if array not in self._values:
            return self._reader.read(array, networks, epochs, samples)
        values, kept = self._values[array], self._kept[array]
        for network in networks:
            missing = [epoch for epoch in epochs if not kept[network, epoch]]
            if missing:
                rows = self._reader.read(array, [network], missing, slice(None))
                values[network, missing] = rows[0]
                kept[network, missing] = True
        return pick(values, networks, epochs, samples)

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        return self._reader.networks_info()

    @property
    def with_probabilities(self) -> tuple[int, ...]:
        return self._reader.with_probabilities

    def __reduce__(self) -> tuple[Any, ...]:
        return _KeptReader, (self._reader, self._memory)
