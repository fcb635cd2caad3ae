"""What a rule reads: labels, and perhaps probabilities, by network, epoch and block of samples."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, ProbabilitiesMissing, TruthMissing
from accord.store._layout import label_dtype

BLOCK_BYTES: Final = 256 << 20  # labels or probabilities held at once while streaming
LEAST_BLOCK: Final = 1024  # samples, however many networks and epochs there are
HELD_OUT: Final = frozenset({"test", "validation"})  # splits that networks are not trained on


@dataclass(frozen=True)
class SampleInfo:
    """What a record says of its samples and classes, apart from the predictions."""

    samples: int
    classes: int
    split: str = "test"
    truth: NDArray[Any] | None = None  # (sample,)
    given: NDArray[Any] | None = None  # (sample,)
    ids: NDArray[Any] | None = None  # (sample,) numbers or strings
    class_names: tuple[str, ...] | None = None

    @property
    def trained_on(self) -> bool:
        """Whether the networks learnt from these samples, as far as their split and labels tell."""
        if self.split in HELD_OUT:  # whatever labels they were given
            return False
        return self.split == "train" or self.given is not None


@dataclass(frozen=True)
class Block:
    """All chosen networks and epochs, for the samples from `start` to `stop`."""

    start: int
    stop: int
    values: NDArray[Any]  # (network, epoch, sample) or (network, epoch, sample, class)

    @property
    def where(self) -> slice:
        """The samples of the block, as a slice."""
        return slice(self.start, self.stop)


@dataclass(frozen=True)
class NetworkInfo:
    """What the recorder was told of each epoch of one network."""

    network: int
    progress: tuple[float, ...]
    metrics: tuple[dict[str, Any], ...]
    times: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    made_with: dict[str, str] = field(default_factory=dict)


class RecordReader(ABC):
    """Predictions by (network, epoch, sample), read in blocks of samples.

    `numbers` are the networks' own numbers, which `select` takes; the methods that read count
    networks and epochs by position, from 0.
    """

    name: str
    sample_info: SampleInfo
    numbers: tuple[int, ...]
    epochs: int
    has_probabilities: bool

    @abstractmethod
    def read_labels(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return labels (network, epoch, sample)."""

    @abstractmethod
    def read_probabilities(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return probabilities (network, epoch, sample, class)."""

    @abstractmethod
    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """Return what was told of each network and its epochs."""

    @property
    def networks(self) -> int:
        """How many networks there are."""
        return len(self.numbers)

    @property
    def with_probabilities(self) -> tuple[int, ...]:
        """The numbers of the networks whose probabilities were recorded."""
        return self.numbers if self.has_probabilities else ()

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return self.sample_info.samples

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.sample_info.classes

    def truth(self) -> NDArray[Any]:
        """Return the true labels; an error if the record has none."""
        if self.sample_info.truth is None:
            raise TruthMissing(
                f"{self.name}: no true labels were recorded, so nothing can be scored. "
                "Give them when recording: Recorder(…, truth=labels)"
            )
        return self.sample_info.truth

    def blocks(self) -> Iterator[Block]:
        """Read the labels of all networks and epochs, one block of samples after another."""
        everything = range(self.networks), range(self.epochs)
        for where in self._cuts(label_dtype(self.classes).itemsize):
            yield Block(where.start, where.stop, self.read_labels(*everything, where))

    def probability_blocks(self) -> Iterator[Block]:
        """Read the probabilities of all networks and epochs, one block of samples at a time."""
        self.check_probabilities()
        everything = range(self.networks), range(self.epochs)
        for where in self._cuts(self.classes * np.dtype(np.float16).itemsize):
            yield Block(where.start, where.stop, self.read_probabilities(*everything, where))

    def check_probabilities(self) -> None:
        """Raise unless the probabilities of all networks were recorded."""
        if self.has_probabilities:
            return
        kept = ", ".join(map(str, self.with_probabilities))
        what = "labels were recorded. Record them with Recorder(…, probabilities=True)"
        if kept:
            what = f"some networks have them. Choose those: {kept}"
        raise ProbabilitiesMissing(f"{self.name}: this rule needs probabilities, and only {what}")

    def select(
        self,
        networks: Sequence[int] | None = None,
        epochs: slice | Sequence[int] | None = None,
        samples: slice | None = None,
    ) -> "RecordReader":
        """Return a view of some networks, some epochs and a range of samples.

        Networks are chosen by their numbers; epochs and samples by position, also from the end.
        """
        chosen = Subset(self, *self.positions(networks, epochs))
        return chosen if samples is None else SampleRange(chosen, samples)

    def positions(
        self, networks: Sequence[int] | None, epochs: slice | Sequence[int] | None
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return positions of networks given by number, and of epochs given from either end."""
        numbers = self.numbers if networks is None else networks
        if isinstance(epochs, slice) or epochs is None:
            epochs = range(self.epochs)[epochs or slice(None)]
        chosen = whole_numbers(self.name, "epochs", epochs)
        counted = (epoch + self.epochs if epoch < 0 else epoch for epoch in chosen)
        return tuple(self.numbered(numbers)), tuple(counted)

    def numbered(self, numbers: Sequence[int]) -> list[int]:
        """Return the positions of networks given by their own numbers."""
        numbers = whole_numbers(self.name, "networks", numbers)
        check_numbers(self.name, numbers, self.numbers)
        return [self.numbers.index(number) for number in numbers]

    def last(self) -> "RecordReader":
        """Return a view of the last epoch alone."""
        return self.select(epochs=[self.epochs - 1])

    def _cuts(self, cell_bytes: int) -> Iterator[slice]:
        column = max(1, self.networks * self.epochs * cell_bytes)
        step = min(self.samples, max(LEAST_BLOCK, BLOCK_BYTES // column))
        for start in range(0, self.samples, step):
            yield slice(start, min(start + step, self.samples))


class ArrayReader(RecordReader):
    """Rows that lie in memory."""

    def __init__(
        self,
        labels: NDArray[Any],
        sample_info: SampleInfo,
        *,
        probabilities: NDArray[Any] | None = None,
        name: str = "labels",
    ) -> None:
        self.name = name
        self.sample_info = sample_info
        self.numbers = tuple(range(labels.shape[0]))
        self.epochs = labels.shape[1]
        self.has_probabilities = probabilities is not None
        self._labels = labels
        self._probabilities = probabilities

    def read_labels(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return labels (network, epoch, sample)."""
        return pick(self._labels, networks, epochs, samples)

    def read_probabilities(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return probabilities (network, epoch, sample, class)."""
        self.check_probabilities()
        assert self._probabilities is not None
        return pick(self._probabilities, networks, epochs, samples)

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """Return one plain progress per epoch."""
        progress = tuple(float(epoch + 1) for epoch in range(self.epochs))
        nothing: tuple[dict[str, Any], ...] = ({},) * self.epochs
        return tuple(NetworkInfo(number, progress, nothing) for number in self.numbers)


def pick(
    values: NDArray[Any],  # (network, epoch, sample, ...)
    networks: Sequence[int],
    epochs: Sequence[int],
    samples: slice,
) -> NDArray[Any]:
    """Return some networks, epochs and samples: a read-only view if both are evenly spaced."""
    by, at = as_slice(networks), as_slice(epochs)
    if isinstance(by, list) and isinstance(at, list):
        return values[:, :, samples][np.ix_(by, at)]
    found = values[by, at, samples]
    found.flags.writeable = False  # the memory belongs to others too
    return found


def as_slice(positions: Sequence[int]) -> slice | list[int]:
    """Return evenly spaced, ascending positions as a slice, which arrays read without gathering.

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


class Subset(RecordReader):
    """Some networks and epochs of other rows."""

    def __init__(
        self, rows: RecordReader, networks: tuple[int, ...], epochs: tuple[int, ...]
    ) -> None:
        _check_choice(rows.name, "network", networks, rows.networks)
        _check_choice(rows.name, "epoch", epochs, rows.epochs)
        self.name = rows.name
        self.sample_info = rows.sample_info
        self.numbers = tuple(rows.numbers[network] for network in networks)
        self.epochs = len(epochs)
        self.has_probabilities = set(self.numbers) <= set(rows.with_probabilities)
        self._rows = rows
        self._networks = networks
        self._chosen_epochs = epochs

    @property
    def with_probabilities(self) -> tuple[int, ...]:
        """The numbers of the chosen networks whose probabilities were recorded."""
        return tuple(number for number in self.numbers if number in self._rows.with_probabilities)

    def read_labels(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return labels (network, epoch, sample)."""
        return self._rows.read_labels(*self._positions(networks, epochs), samples)

    def read_probabilities(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return probabilities (network, epoch, sample, class)."""
        return self._rows.read_probabilities(*self._positions(networks, epochs), samples)

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """Return what was told of the chosen networks and epochs."""
        everything = self._rows.networks_info()
        return tuple(self._cut(everything[network]) for network in self._networks)

    def _cut(self, told: NetworkInfo) -> NetworkInfo:
        return NetworkInfo(
            told.network,
            tuple(told.progress[epoch] for epoch in self._chosen_epochs),
            tuple(told.metrics[epoch] for epoch in self._chosen_epochs),
            tuple(told.times[epoch] for epoch in self._chosen_epochs) if told.times else (),
            told.metadata,
            told.made_with,
        )

    def _positions(
        self, networks: Sequence[int], epochs: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        return (
            [self._networks[network] for network in networks],
            [self._chosen_epochs[epoch] for epoch in epochs],
        )


class SampleRange(RecordReader):
    """A range of the samples of other rows, counted anew from 0."""

    def __init__(self, rows: RecordReader, samples: slice) -> None:
        self._range = range(rows.samples)[samples]
        _check_range(rows.name, self._range, rows.samples)
        self.name = rows.name
        self.sample_info = _cut_sample_info(rows.sample_info, samples)
        self.numbers = rows.numbers
        self.epochs = rows.epochs
        self.has_probabilities = rows.has_probabilities
        self._rows = rows

    @property
    def with_probabilities(self) -> tuple[int, ...]:
        """The numbers of the networks whose probabilities were recorded."""
        return self._rows.with_probabilities

    def read_labels(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return labels (network, epoch, sample)."""
        return self._rows.read_labels(networks, epochs, self._inside(samples))

    def read_probabilities(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Return probabilities (network, epoch, sample, class)."""
        return self._rows.read_probabilities(networks, epochs, self._inside(samples))

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """Return what was told of each network and its epochs."""
        return self._rows.networks_info()

    def _inside(self, samples: slice) -> slice:
        inside = self._range[samples]
        return slice(inside.start, inside.stop, inside.step)


def _cut_sample_info(sample_info: SampleInfo, samples: slice) -> SampleInfo:
    def cut(values: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if values is None else values[samples]

    return replace(
        sample_info,
        samples=len(range(sample_info.samples)[samples]),
        truth=cut(sample_info.truth),
        given=cut(sample_info.given),
        ids=cut(sample_info.ids),
    )


def _check_range(name: str, chosen: range, samples: int) -> None:
    if chosen.step != 1:
        raise ChoiceError(f"{name}: samples are chosen by a range without steps; got {chosen}")
    if not chosen:
        raise ChoiceError(f"{name}: that choice leaves no sample; there are {samples}")


def whole_numbers(name: str, what: str, chosen: Iterable[Any]) -> list[int]:
    """Return networks or epochs as chosen, or say that it must be a list of whole numbers."""
    try:
        return [operator.index(one) for one in chosen]
    except TypeError as error:
        raise ChoiceError(
            f"{name}: {what} are chosen by a list of whole numbers; got {chosen!r}. "
            "For one alone: [3]"
        ) from error


def check_numbers(name: str, asked: Sequence[int], there: Collection[int]) -> None:
    """Refuse numbers of networks that are not there, or asked for twice."""
    strange = [number for number in asked if number not in there]
    if strange:
        have = ", ".join(map(str, there))
        raise ChoiceError(f"{name}: no network {strange[0]}; there are {have}")
    if len(set(asked)) < len(asked):
        raise ChoiceError(f"{name}: a network is chosen twice in {list(asked)}")


def _check_choice(name: str, what: str, chosen: tuple[int, ...], available: int) -> None:
    if not chosen:
        raise ChoiceError(f"{name}: that choice leaves no {what}; there are {available}")
    if len(set(chosen)) < len(chosen):
        raise ChoiceError(f"{name}: the same {what} is chosen twice in {list(chosen)}")
    if not all(0 <= one < available for one in chosen):
        raise ChoiceError(
            f"{name}: {what}s must lie in 0..{available - 1}; got {min(chosen)}..{max(chosen)}"
        )
