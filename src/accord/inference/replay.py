"""A record asked again: how many of its votes an early exit would have needed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accord.inference.ballots import Ballot, join
from accord.inference.exits import Exit, find_exit
from accord.inference.order import order_voters
from accord.rules import Prediction
from accord.store import Rows


@dataclass(frozen=True, eq=False)
class Replayed:
    """What an early exit would have predicted, and how many votes it would have asked for."""

    prediction: Prediction
    asked: NDArray[np.int64]  # (sample,)
    voters: int

    @property
    def labels(self) -> NDArray[np.intp]:
        """One class per sample."""
        return self.prediction.labels

    @property
    def saved(self) -> float:
        """The share of all votes that need not be asked for."""
        return float(1 - self.asked.mean() / self.voters)


def replay(rows: Rows, *, exit: str | float | Exit, seed: int = 0) -> Replayed:  # noqa: A002
    """Predict by max agreement with an early exit, as if the record's networks were asked anew.

    Args:
        rows: a record's, `accord.open(path).rows`.
        exit: "none", "exact", or a risk between 0 and 1.
        seed: of the order in which votes are asked for, where chance decides it.

    >>> from accord.store import ArrayRows, Facts
    >>> labels = np.zeros((2, 5, 3), np.uint8)  # ten votes, all for class 0
    >>> replay(ArrayRows(labels, Facts(3, 4)), exit="exact").asked
    array([5, 5, 5])
    """
    leaving = find_exit(exit)
    order = order_voters(rows, (rows.networks, rows.epochs), leaving, seed=seed)
    ballots = []
    for block in rows.blocks():
        labels = block.values.reshape(len(order), -1)
        ballot = Ballot(labels.shape[1], classes=rows.classes, left=len(order))
        for voter in order:
            if not ballot.open.size:
                break
            ballot.count(labels[voter, ballot.open])
            ballot.close(leaving)
        ballots.append(ballot)
    return Replayed(*join(ballots), len(order))
