"""Early exit criteria for counting votes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError
from accord.kernels import winners
from accord.rules import Prediction
from accord.store import RecordReader

Votes = NDArray[np.int64]  # (sample, class): votes, or sums of integer weights
Settled = NDArray[np.bool_]  # (sample,)

NONE: Final = "none"
EXACT: Final = "exact"
BET: Final = 4  # the bet on a leader with share p of two classes' votes: density 4 p**3


class Exit(ABC):
    """Base class for early exit criteria.

    The number of votes of a sample is fixed. `left` of them are not counted yet.
    """

    early: ClassVar[bool] = True  # may settle a sample before all votes are counted
    random_order: ClassVar[bool] = False  # requires the votes in random order
    takes_weights: ClassVar[bool] = True  # votes may have different weights

    @abstractmethod
    def settled(self, votes: Votes, *, left: int) -> Settled:
        """Find the samples that need no more votes."""


class NoExit(Exit):
    early = False

    def settled(self, votes: Votes, *, left: int) -> Settled:
        return np.full(len(votes), left == 0)


class ExactExit(Exit):
    """Exit criterion that stops once the remaining votes cannot change the winner.

    >>> ExactExit().settled(np.array([[3, 0], [0, 3], [2, 1]]), left=3)
    array([ True, False, False])
    """

    def settled(self, votes: Votes, *, left: int) -> Settled:
        """Find the samples whose runner-up cannot win. Ties go to the lowest class."""
        classes = votes.shape[1]
        if classes == 1:
            return np.ones(len(votes), bool)
        # One number orders by votes, then by class: more votes first, then the lower class.
        first, second = two_largest(votes * classes + np.arange(classes)[::-1])
        return np.asarray(first - second > left * classes)


class RiskExit(Exit):
    """Exit criterion that stops early with a bounded risk of error.

    The votes must come in random order. Then, for each sample, the probability that its label
    differs from that of all votes is at most `risk`, whenever the count stops.
    docs/explanation/early-exit.md has the proof.

    Args:
        risk: above 0 and below 1.
    """

    random_order = True
    takes_weights = False

    def __init__(self, risk: float) -> None:
        if not 0 < risk < 1:
            raise ChoiceError(f"a risk must lie between 0 and 1, such as 0.01; got {risk:g}")
        self.risk = risk

    def settled(self, votes: Votes, *, left: int) -> Settled:
        """Find the samples with a certain leader or strong evidence against all other classes."""
        certain = ExactExit().settled(votes, left=left)
        classes = votes.shape[1]
        if classes == 1:
            return certain
        # Evidence against a class with fewer votes is never smaller: the runner-up is enough.
        threshold = np.log((classes - 1) / self.risk)
        return np.asarray(certain | (evidence(*two_largest(votes), left=left) >= threshold))


def two_largest(votes: Votes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the two largest non-negative numbers of each sample."""
    best = votes.argmax(axis=1)[:, np.newaxis]
    others = votes.copy()
    np.put_along_axis(others, best, -1, axis=1)
    return np.take_along_axis(votes, best, axis=1)[:, 0], others.max(axis=1)


def evidence(leader: NDArray[Any], other: NDArray[Any], *, left: int) -> NDArray[np.float64]:
    """Compute the log evidence that another class will not overtake the leader.

    A likelihood ratio: the probability of the votes under a bet that the leader has more of the
    two classes' votes, divided by their probability if the other had as many. It is a
    supermartingale, whatever the votes for other classes. `leader` and `other` are votes so far,
    (sample,). `left` is the number of votes to come.

    >>> evidence(np.array([8, 8, 5]), np.array([0, 2, 5]), left=90).round(1)
    array([ 4.8,  1.5, -inf])
    """
    seen, lead = leader + other, leader - other
    half = (seen + left + 1) // 2  # votes of each class in all, if the other class catches up
    certain, clear = leader > half, (lead > 0) & (lead**2 >= seen)
    half = np.maximum(half, leader)  # where certain, keeps the indices below from being negative
    table = log_factorials(int(2 * half.max(initial=0)) + BET)
    bet = np.log(BET) + table[leader + BET - 1] + table[other] - table[seen + BET]
    caught_up = 2 * table[half] - table[half - leader] - table[half - other]
    caught_up += table[2 * half - seen] - table[2 * half]
    return np.where(certain, np.inf, np.where(clear, bet - caught_up, -np.inf))


def log_factorials(largest: int) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])


def find_exit(exit: str | float | Exit) -> Exit:
    """Build the exit criterion for "none", "exact" or a risk between 0 and 1."""
    if isinstance(exit, Exit):
        return exit
    named = {NONE: NoExit, EXACT: ExactExit}
    if exit in named:
        return named[str(exit)]()
    try:
        return RiskExit(float(exit))
    except ValueError as error:
        if isinstance(error, ChoiceError):
            raise
        raise ChoiceError(
            f"exit must be {NONE}, {EXACT} or a risk such as 0.01; got {exit!r}"
        ) from None


class VoteCounts:
    """Vote counts for a block of samples with early exit.

    `total` is the number of votes on a sample, or the sum of their weights.

    >>> votes = VoteCounts(2, classes=3, total=3, exit=ExactExit())
    >>> votes.count(np.array([2, 1]))
    >>> votes.count(np.array([2, 0]))
    >>> votes.settle()
    >>> votes.open, votes.evaluated
    (array([1]), array([2, 2]))
    """

    def __init__(self, samples: int, *, classes: int, total: int, exit: Exit) -> None:
        self.open: NDArray[np.intp] = np.arange(samples)  # samples that need more votes
        self.evaluated: NDArray[np.int64] = np.zeros(samples, np.int64)  # votes, (sample,)
        self._votes = np.zeros((samples, classes), np.int64)
        self._left = total
        self._exit = exit

    def count(self, labels: NDArray[Any], *, weight: int = 1) -> None:
        self._votes[self.open, labels] += weight
        self.evaluated[self.open] += 1
        self._left -= weight

    def settle(self) -> None:
        if self._exit.early:
            settled = self._exit.settled(self._votes[self.open], left=self._left)
            self.open = self.open[~settled]

    def predict(self) -> Prediction:
        """Predict the leading classes, with their share of the counted votes as score."""
        labels = self._votes.argmax(axis=1)
        most, total = self._votes.max(axis=1), self._votes.sum(axis=1)
        return Prediction(labels, most / np.maximum(total, 1))


def join_counts(blocks: Sequence[VoteCounts]) -> tuple[Prediction, NDArray[np.int64]]:
    parts = [block.predict() for block in blocks]
    labels = np.concatenate([part.labels for part in parts])
    scores = np.concatenate([part.scores for part in parts])
    return Prediction(labels, scores), np.concatenate([block.evaluated for block in blocks])


def order_checkpoints(
    reader: RecordReader | None,
    size: tuple[int, int],  # networks, epochs
    exit: Exit,
    *,
    seed: int,
) -> NDArray[np.intp]:
    """Order the checkpoints, numbered as network · epochs + epoch, for evaluation.

    A random order where the exit requires it. Otherwise, checkpoints that agree with the winner
    most often come first, as measured on a record. Without a record, the last epochs.
    """
    networks, epochs = size
    if exit.random_order:
        return np.random.default_rng(seed).permutation(networks * epochs)
    if reader is None:
        return np.arange(networks * epochs).reshape(size).T[::-1].ravel()
    samples = slice(0, min(reader.samples, 10_000))  # are enough to find an order
    labels = reader.read_labels(range(networks), range(epochs), samples)
    winning = winners(labels, classes=reader.classes).labels
    return np.argsort(-(labels == winning).sum(axis=2).ravel(), kind="stable")


@dataclass(frozen=True, eq=False)
class Replayed:
    """Result of an early exit on a record."""

    prediction: Prediction
    evaluated: NDArray[np.int64]  # votes counted, (sample,)
    voters: int

    @property
    def labels(self) -> NDArray[np.intp]:
        """Predicted class of each sample."""
        return self.prediction.labels

    @property
    def saved(self) -> float:
        """Fraction of votes that were not counted."""
        return float(1 - self.evaluated.mean() / self.voters)


def replay(reader: RecordReader, *, exit: str | float | Exit, seed: int = 0) -> Replayed:
    """Predict the labels of a record by max agreement with early exit.

    Args:
        reader: the rows of a record, `accord.open(path).reader`.
        exit: "none", "exact", or a risk between 0 and 1.
        seed: of the order of the votes, where the exit requires a random one.

    >>> from accord.store import ArrayReader, SampleInfo
    >>> labels = np.zeros((2, 5, 3), np.uint8)  # ten votes, all for class 0
    >>> replay(ArrayReader(labels, SampleInfo(3, 4)), exit="exact").evaluated
    array([5, 5, 5])
    """
    criterion = find_exit(exit)
    order = order_checkpoints(reader, (reader.networks, reader.epochs), criterion, seed=seed)
    blocks = []
    for block in reader.blocks():
        labels = block.values.reshape(len(order), -1)
        votes = VoteCounts(
            labels.shape[1], classes=reader.classes, total=len(order), exit=criterion
        )
        for checkpoint in order:
            if not votes.open.size:
                break
            votes.count(labels[checkpoint, votes.open])
            votes.settle()
        blocks.append(votes)
    return Replayed(*join_counts(blocks), len(order))
