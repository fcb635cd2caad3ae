"""The votes on some samples while they are asked for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.inference.exits import Exit
from accord.rules import Prediction


class Ballot:
    """Counts votes on some samples, and knows which of them are still open.

    Args:
        samples: how many there are.
        classes: how many classes there are.
        left: how many votes will be asked for in all, or the sum of their weights.

    >>> from accord.inference.exits import Certain
    >>> ballot = Ballot(2, classes=3, left=3)
    >>> ballot.count(np.array([2, 1])), ballot.count(np.array([2, 0]))
    (None, None)
    >>> ballot.close(Certain())
    >>> ballot.open, ballot.asked
    (array([1]), array([2, 2]))
    """

    def __init__(self, samples: int, *, classes: int, left: int) -> None:
        self.open: NDArray[np.intp] = np.arange(samples)
        self.asked: NDArray[np.int64] = np.zeros(samples, np.int64)  # votes, (sample,)
        self._votes = np.zeros((samples, classes), np.int64)
        self._left = left

    def count(self, labels: NDArray[Any], *, weight: int = 1) -> None:
        """Count one vote on each open sample."""
        self._votes[self.open, labels] += weight
        self.asked[self.open] += 1
        self._left -= weight

    def close(self, exit: Exit) -> None:  # noqa: A002
        """Leave out the samples that need no more votes."""
        if not exit.early:
            return
        self.open = self.open[~exit.settled(self._votes[self.open], left=self._left)]

    def predict(self) -> Prediction:
        """Return the leaders; the score is the share of the votes that were asked for."""
        labels = self._votes.argmax(axis=1)
        most, total = self._votes.max(axis=1), self._votes.sum(axis=1)
        return Prediction(labels, most / np.maximum(total, 1))


def join(ballots: Sequence[Ballot]) -> tuple[Prediction, NDArray[np.int64]]:
    """Put blocks of samples together: what they predict, and how many votes each sample took."""
    parts = [ballot.predict() for ballot in ballots]
    labels = np.concatenate([part.labels for part in parts])
    scores = np.concatenate([part.scores for part in parts])
    return Prediction(labels, scores), np.concatenate([ballot.asked for ballot in ballots])
