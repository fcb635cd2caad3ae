"""What asking a run about new samples gave."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accord.rules import Prediction
from accord.store import Facts


@dataclass(frozen=True, eq=False)
class Inferred:
    """One label per sample, and what it took to find them."""

    prediction: Prediction
    asked: NDArray[np.int64]  # (sample,), how many votes were asked for
    facts: Facts  # the samples' ids and true labels, the classes' names, as far as known
    rule: str
    networks: tuple[int, ...]  # that were asked
    epochs: tuple[int, ...]  # at which
    notes: tuple[str, ...] = ()  # what could not be read or asked, for people to read

    def __len__(self) -> int:
        return len(self.prediction)

    @property
    def labels(self) -> NDArray[np.intp]:
        """One class per sample; -1 where the rule abstains."""
        return self.prediction.labels

    @property
    def support(self) -> NDArray[np.float64]:
        """How much of what was asked for supports each label, 0..1."""
        return self.prediction.scores

    @property
    def voters(self) -> int:
        """How many votes there are on a sample: networks times epochs."""
        return len(self.networks) * len(self.epochs)

    @property
    def saved(self) -> float:
        """The share of all votes that need not be asked for."""
        return float(1 - self.asked.mean() / self.voters)

    @property
    def accuracy(self) -> float | None:
        """The share of labels that are right, where true labels came with the samples."""
        if self.facts.truth is None:
            return None
        return float((self.labels == self.facts.truth).mean())
