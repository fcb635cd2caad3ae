"""Base class for readers of records."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, ProbabilitiesMissing, TruthMissing, VotesMissing
from accord.store._record_format import LABELS, PROBABILITIES, label_dtype
from accord.store._selection import check_numbers, check_positions, pick, whole_numbers

BLOCK_BYTES: Final = 256 << 20  # labels or probabilities in memory at a time while streaming
LEAST_BLOCK: Final = 1024  # samples, for any number of networks and epochs


@dataclass(frozen=True)
class SampleInfo:
    """Information about the samples and classes of a record."""

    samples: int
    classes: int
    split: str = "test"
    truth: NDArray[Any] | None = None  # (sample,)
    given: NDArray[Any] | None = None  # (sample,)
    ids: NDArray[Any] | None = None  # (sample,) numbers or strings
    class_names: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes, or their numbers if they have none."""
        return self.class_names or tuple(map(str, range(self.classes)))

    @property
    def reference(self) -> Literal["truth", "given"] | None:
        """Labels that predictions are compared with: true ones, else the given ones, if any."""
        if self.truth is not None:
            return "truth"
        return None if self.given is None else "given"

    @property
    def trained_on(self) -> bool:
        """Whether the networks were trained on these samples."""
        held_out = self.split in ("test", "validation", "new")  # even if labels are given
        return not held_out and (self.split == "train" or self.given is not None)


@dataclass(frozen=True)
class Block:
    """Predictions for a range of samples."""

    start: int
    stop: int
    values: NDArray[Any]  # (network, epoch, sample) or (network, epoch, sample, class)

    @property
    def where(self) -> slice:
        """Slice of the samples in the block."""
        return slice(self.start, self.stop)


@dataclass(frozen=True)
class NetworkInfo:
    """Metadata, progress and metrics of a network."""

    network: int
    progress: tuple[float, ...]
    metrics: tuple[dict[str, Any], ...]
    times: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    made_with: dict[str, str] = field(default_factory=dict)


class RecordReader(ABC):
    """Base class for readers of predictions.

    `numbers` are the networks' own numbers, which `select` takes; the methods that read count
    networks and epochs by position, from 0. A reader implements `read` and `networks_info`.
    """

    name: str
    sample_info: SampleInfo
    numbers: tuple[int, ...]
    epochs: int
    has_probabilities: bool
    has_missing: bool = False  # whether some votes are missing

    @abstractmethod
    def read(
        self, array: str, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Read labels, `classes` where a vote is missing, or probabilities."""

    def read_labels(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Read an array of labels (network, epoch, sample).

        Raises:
            VotesMissing: some votes of the record are missing; `read` marks them.
        """
        self.check_complete()
        return self.read(LABELS, networks, epochs, samples)

    def check_complete(self, what: str = "this") -> None:
        """Check that no vote is missing, as `what` requires."""
        if self.has_missing:
            raise VotesMissing(
                f"{self.name}: some votes are missing, and {what} requires all of them. Rules "
                "that leave missing votes out: max-agreement, majority, and with probabilities "
                "soft-agreement and probability-average"
            )

    def read_probabilities(
        self, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        """Read an array of probabilities (network, epoch, sample, class)."""
        if not {self.numbers[network] for network in networks} <= set(self.with_probabilities):
            self.check_probabilities()
        return self.read(PROBABILITIES, networks, epochs, samples)

    @abstractmethod
    def networks_info(self) -> tuple[NetworkInfo, ...]:
        """Read the metadata of each network."""

    @property
    def networks(self) -> int:
        """Number of networks."""
        return len(self.numbers)

    @property
    def with_probabilities(self) -> tuple[int, ...]:
        """Numbers of the networks with recorded probabilities."""
        return self.numbers if self.has_probabilities else ()

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.sample_info.samples

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.sample_info.classes

    @property
    def cross_fitted(self) -> bool:
        """Whether no network was trained on the samples that it predicts."""
        return any(one.metadata.get("cross_fit") for one in self.networks_info())

    @property
    def trained_on(self) -> bool:
        """Whether the networks were trained on these samples."""
        return self.sample_info.trained_on and not self.cross_fitted

    def truth(self) -> NDArray[Any]:
        """Return the true labels of the samples."""
        if self.sample_info.truth is None:
            raise TruthMissing(
                f"{self.name}: the record has no true labels, which this requires. "
                "Pass them when recording: Recorder(…, truth=labels); or, if the labels of the "
                "test split are verified, set verified = true in the [data] table of the spec"
            )
        return self.sample_info.truth

    def reference_labels(self) -> NDArray[Any]:
        """Return the true labels of the samples, or the given ones if no true ones are known."""
        info = self.sample_info
        if info.reference is None:
            raise TruthMissing(
                f"{self.name}: the record has no true labels and no given ones, so nothing can be "
                "scored. Pass them when recording: Recorder(…, truth=labels) or given=labels"
            )
        return np.asarray(info.given if info.truth is None else info.truth)

    def blocks(self, *, gaps: bool = False) -> Iterator[Block]:
        """Iterate over the labels in blocks of samples.

        Missing votes are `classes` with `gaps`, and refused otherwise.
        """
        everything = range(self.networks), range(self.epochs)
        if not gaps:
            self.check_complete()
        for where in self._cuts(label_dtype(self.classes + self.has_missing).itemsize):
            yield Block(where.start, where.stop, self.read(LABELS, *everything, where))

    def probability_blocks(self) -> Iterator[Block]:
        """Iterate over the probabilities in blocks of samples."""
        self.check_probabilities()
        everything = range(self.networks), range(self.epochs)
        for where in self._cuts(self.classes * np.dtype(np.float16).itemsize):
            yield Block(where.start, where.stop, self.read_probabilities(*everything, where))

    def check_probabilities(self) -> None:
        """Check that all networks have recorded probabilities."""
        if self.has_probabilities:
            return
        numbers = ", ".join(map(str, self.with_probabilities))
        hint = "the record has labels only. Record them with Recorder(…, probabilities=True)"
        if numbers:
            hint = f"only some networks have them. Select those: {numbers}"
        raise ProbabilitiesMissing(f"{self.name}: probabilities are required, but {hint}")

    def select(
        self,
        networks: Sequence[int] | None = None,
        epochs: slice | Sequence[int] | None = None,
        samples: slice | None = None,
    ) -> "RecordReader":
        """Select networks, epochs and a range of samples.

        Networks are selected by number; epochs and samples by position, also from the end.
        """
        return Subset(self, *self.positions(networks, epochs), samples or slice(None))

    def positions(
        self, networks: Sequence[int] | None, epochs: slice | Sequence[int] | None
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Convert the selected networks and epochs to positions."""
        everything = range(len(self.numbers))
        by = everything if networks is None else self.numbered(networks)
        if isinstance(epochs, slice) or epochs is None:
            epochs = range(self.epochs)[epochs or slice(None)]
        chosen = whole_numbers(self.name, "epochs", epochs)
        from_start = (epoch + self.epochs if epoch < 0 else epoch for epoch in chosen)
        return tuple(by), tuple(from_start)

    def numbered(self, numbers: Sequence[int]) -> list[int]:
        """Convert the numbers of networks to positions."""
        numbers = whole_numbers(self.name, "networks", numbers)
        check_numbers(self.name, numbers, self.numbers)
        return [self.numbers.index(number) for number in numbers]

    def last(self) -> "RecordReader":
        """Select the last epoch."""
        return self.select(epochs=[self.epochs - 1])

    def _cuts(self, cell_bytes: int) -> Iterator[slice]:
        column = max(1, len(self.numbers) * self.epochs * cell_bytes)
        samples = self.sample_info.samples
        step = min(samples, max(LEAST_BLOCK, BLOCK_BYTES // column))
        for start in range(0, samples, step):
            yield slice(start, min(start + step, samples))


class ArrayReader(RecordReader):
    """Reader of arrays in memory."""

    def __init__(
        self,
        labels: NDArray[Any],
        sample_info: SampleInfo,
        *,
        probabilities: NDArray[Any] | None = None,
        missing: NDArray[np.bool_] | None = None,  # (network, epoch, sample)
        numbers: Sequence[int] | None = None,
        progress: Sequence[float] | None = None,
        metadata: Sequence[dict[str, Any]] = (),  # of each network
        name: str = "labels",
    ) -> None:
        networks, self.epochs = labels.shape[:2]
        if missing is not None and missing.any():
            self.has_missing = True
            labels = encode_votes(labels, missing, classes=sample_info.classes)
        self.name = name
        self.sample_info = sample_info
        self.numbers = tuple(range(networks) if numbers is None else numbers)
        self._progress = tuple(range(1, self.epochs + 1) if progress is None else progress)
        self._metadata = list(metadata) or [{} for _ in self.numbers]
        self.has_probabilities = probabilities is not None
        self._arrays: dict[str, Any] = {LABELS: labels, PROBABILITIES: probabilities}

    def read(
        self, array: str, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        return pick(self._arrays[array], networks, epochs, samples)

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        progress = tuple(map(float, self._progress))
        nothing: tuple[dict[str, Any], ...] = ({},) * self.epochs
        return tuple(
            NetworkInfo(number, progress, nothing, metadata=metadata)
            for number, metadata in zip(self.numbers, self._metadata, strict=True)
        )


def encode_votes(labels: NDArray[Any], missing: NDArray[np.bool_], *, classes: int) -> NDArray[Any]:
    """Mark missing votes: their label is `classes`, one past the last class."""
    kind = label_dtype(classes + 1)
    return np.where(missing, kind.type(classes), labels.astype(kind, copy=False))


class Subset(RecordReader):
    def __init__(
        self,
        reader: RecordReader,
        networks: tuple[int, ...],
        epochs: tuple[int, ...],
        samples: slice = slice(None),
    ) -> None:
        check_positions(reader.name, "network", networks, reader.networks)
        check_positions(reader.name, "epoch", epochs, reader.epochs)
        self.name = reader.name
        self.sample_info = _cut_sample_info(reader, samples)
        self.numbers = tuple(reader.numbers[network] for network in networks)
        self.epochs = len(epochs)
        self.has_missing = reader.has_missing
        self.has_probabilities = set(self.numbers) <= set(reader.with_probabilities)
        self._reader = reader
        self._networks = networks
        self._epochs = epochs
        self._samples = range(reader.samples)[samples]

    @property
    def with_probabilities(self) -> tuple[int, ...]:
        return tuple(number for number in self.numbers if number in self._reader.with_probabilities)

    def read(
        self, array: str, networks: Sequence[int], epochs: Sequence[int], samples: slice
    ) -> NDArray[Any]:
        within = self._samples[samples]
        return self._reader.read(
            array,
            [self._networks[network] for network in networks],
            [self._epochs[epoch] for epoch in epochs],
            slice(within.start, within.stop, within.step),
        )

    def networks_info(self) -> tuple[NetworkInfo, ...]:
        infos = self._reader.networks_info()
        return tuple(self._cut(infos[network]) for network in self._networks)

    def _cut(self, info: NetworkInfo) -> NetworkInfo:
        return replace(
            info,
            progress=tuple(info.progress[epoch] for epoch in self._epochs),
            metrics=tuple(info.metrics[epoch] for epoch in self._epochs),
            times=tuple(info.times[epoch] for epoch in self._epochs) if info.times else (),
        )


def _cut_sample_info(reader: RecordReader, samples: slice) -> SampleInfo:
    chosen, info = range(reader.samples)[samples], reader.sample_info
    if chosen.step != 1:
        raise ChoiceError(f"{reader.name}: samples must be a range without steps; got {chosen}")
    if not chosen:
        raise ChoiceError(f"{reader.name}: no sample is selected; there are {reader.samples}")
    if len(chosen) == reader.samples:
        return info

    def cut(values: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if values is None else values[samples]

    return replace(
        info, samples=len(chosen), truth=cut(info.truth), given=cut(info.given), ids=cut(info.ids)
    )
