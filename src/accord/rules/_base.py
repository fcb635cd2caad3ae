"""What every rule is: rows in, one label per sample out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from accord.store import Block, RecordReader

ABSTAINED = -1
Need = Literal["truth", "probabilities"]


@dataclass(frozen=True)
class Prediction:
    """One label per sample, and how much support each has."""

    labels: NDArray[np.intp]  # (sample,), -1 where the rule abstains
    scores: NDArray[np.float64]  # (sample,), the support of that class, 0..1
    note: str = ""  # what the rule has to say of this prediction, if anything

    def __len__(self) -> int:
        return len(self.labels)

    def noting(self, what: str) -> "Prediction":
        """Return the same labels, with something said before the rule's own note."""
        return replace(self, note="; ".join(filter(None, [what, self.note])))


@dataclass(frozen=True)
class Definition:
    """A small record in memory, as plain arrays, for a rule's slow definition."""

    labels: NDArray[Any]  # (network, epoch, sample)
    probabilities: NDArray[Any]  # (network, epoch, sample, class)
    truth: NDArray[Any]  # (sample,)
    classes: int


class Rule(ABC):
    """Turns a whole record into one label per sample.

    A new rule is one file in this package that defines one subclass; it is found by itself.
    Equal support goes to the smaller class.
    """

    name: ClassVar[str]
    reads: ClassVar[Literal["last", "all"]]  # the last epoch alone, or all of them
    needs: frozenset[Need] = frozenset()  # an option may add to it
    symmetric: ClassVar[bool] = True  # whether the order of the networks is without effect
    ordered: ClassVar[bool] = False  # whether it matters which epochs are close to each other
    by_sample: ClassVar[bool] = False  # whether a sample's label depends on its own votes alone
    # The weight of a vote at each epoch, if the rule does no more than count votes and it is known.
    vote_weights: NDArray[np.float64] | float | None = None
    caution: str = ""  # what to say of every prediction

    @abstractmethod
    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict, reading the rows in blocks of samples."""

    @staticmethod
    @abstractmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined: slow, obvious, for tests and readers."""

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Predict after each epoch as if it were the last: blocks of labels (epoch, sample)."""
        prefixes = (reader.select(epochs=range(epoch + 1)) for epoch in range(reader.epochs))
        yield Block(0, reader.samples, np.stack([self(prefix).labels for prefix in prefixes]))

    @property
    def oracle(self) -> bool:
        """Whether the rule looks at the truth."""
        return "truth" in self.needs

    def allowed(self, reader: RecordReader) -> bool:
        """Tell whether the rows hold what the rule needs."""
        has_truth = reader.sample_info.truth is not None
        return ("truth" not in self.needs or has_truth) and (
            "probabilities" not in self.needs or reader.has_probabilities
        )

    def left_out(self, reader: RecordReader) -> str:  # noqa: ARG002
        """Say why the rule cannot predict rows that it is allowed to, or nothing if it can."""
        return ""


Support = tuple[NDArray[Any], NDArray[Any]]  # labels and scores of a block's samples


def predict_blocks(
    blocks: Iterable[Block], predict: Callable[[NDArray[Any]], Support], *, samples: int
) -> Prediction:
    """Predict block by block and put the blocks together."""
    labels = np.empty(samples, np.intp)
    scores = np.empty(samples, np.float64)
    for block in blocks:
        labels[block.where], scores[block.where] = predict(block.values)
    return Prediction(labels, scores)


def most_supported(support: NDArray[np.float64], voters: float) -> Support:
    """Pick the class with the largest summed support, the smaller one if equal.

    Half-precision probabilities are multiples of 2**-24, so their sums in double precision
    are exact: the order of the networks and epochs cannot change a tie.
    """
    labels = support.argmax(axis=-1)
    return labels, np.take_along_axis(support, labels[..., None], axis=-1)[..., 0] / voters
