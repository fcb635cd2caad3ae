"""Base classes for all rules."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from accord.store import Block, RecordReader

ABSTAINED = -1
Need = Literal["truth", "probabilities"]


@dataclass(frozen=True)
class Prediction:
    """Predicted labels and their scores."""

    labels: NDArray[np.intp]  # (sample,), -1 where the rule abstains
    scores: NDArray[np.float64]  # (sample,), the support of that class, 0..1
    note: str = ""  # what a reader should know before using the labels
    epoch: int | None = None  # the one whose votes they are, of a rule that chooses an epoch

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def empty(cls, samples: int) -> Self:
        """Create an empty prediction."""
        return cls(np.empty(samples, np.intp), np.empty(samples, np.float64))

    def with_note(self, note: str) -> Self:
        """Create a copy with a note prepended."""
        return replace(self, note="; ".join(filter(None, [note, self.note])))


def count_cast(
    reader: RecordReader,
    votes: NDArray[Any],  # (network, epoch, sample), or with class
) -> NDArray[np.intp] | int:
    """Count the votes of each sample that are not missing, or 1 where all are."""
    if not reader.has_missing:
        return len(votes) * int(votes.shape[1])
    cast = votes.any(axis=-1) if votes.ndim > 3 else votes != reader.classes
    return np.asarray(np.maximum(cast.sum(axis=(0, 1)), 1), np.intp)


class Rule(ABC):
    """Base class for rules.

    A new rule is one file in this package that defines one subclass, and one line in the registry
    of `accord.rules`. Ties go to the smallest class.
    """

    name: ClassVar[str]
    reads: ClassVar[Literal["last", "all"]]  # the last epoch only, or all epochs
    needs: frozenset[Need] = frozenset()  # an option may add to it
    symmetric: ClassVar[bool] = True  # whether the order of the networks has no effect
    ordered: ClassVar[bool] = False  # whether the order of the epochs has an effect
    by_sample: ClassVar[bool] = False  # whether a label depends on that sample's votes alone
    by_network: ClassVar[bool] = False  # whether it is scored as the mean over single networks
    plurality: ClassVar[bool] = False  # whether the class with the most votes read wins
    # The weight of a vote at each epoch, if the rule only counts votes and it is known.
    vote_weights: NDArray[np.float64] | float | None = None
    skips_missing: ClassVar[bool] = False  # whether it leaves missing votes out
    caution: str = ""  # a note for every prediction

    @abstractmethod
    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict labels for all samples."""

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Iterate over blocks of labels (epoch, sample) predicted after each epoch."""
        prefixes = (reader.select(epochs=range(epoch + 1)) for epoch in range(reader.epochs))
        yield Block(0, reader.samples, np.stack([self(prefix).labels for prefix in prefixes]))

    @property
    def oracle(self) -> bool:
        """Whether the rule uses the true labels."""
        return "truth" in self.needs

    def allowed(self, reader: RecordReader) -> bool:
        """Check whether the rule can be used with a record."""
        has_truth = reader.sample_info.truth is not None
        return (
            ("truth" not in self.needs or has_truth)
            and ("probabilities" not in self.needs or reader.has_probabilities)
            and (self.skips_missing or not reader.has_missing)
        )

    def check_votes(self, reader: RecordReader) -> None:
        """Check that no vote is missing, unless the rule leaves missing votes out.

        Raises:
            VotesMissing: some votes are missing, and the rule requires all of them.
        """
        if not self.skips_missing:
            reader.check_complete(self.name)

    def left_out(self, reader: RecordReader) -> str:  # noqa: ARG002
        """Get the reason for leaving out the rule or an empty string."""
        return ""


def most_supported(
    support: NDArray[Any],  # (sample, class)
    voters: NDArray[Any] | float,
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Find the class with the largest support and its share; -1 without any.

    Half-precision probabilities are multiples of 2**-24, so their sums in double precision
    are exact: the order of the networks and epochs cannot change a tie.
    """
    labels = np.where(support.any(axis=-1), support.argmax(axis=-1), ABSTAINED)
    return labels, np.take_along_axis(support, labels[..., None], axis=-1)[..., 0] / voters
