"""A record asked again: how many of its votes an early exit would have needed."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError
from accord.rules import Prediction
from accord.rules.max_agreement import MaxAgreement
from accord.store import RecordReader

Votes = NDArray[np.int64]  # (sample, class): votes, or the sum of their weights in whole units
Settled = NDArray[np.bool_]  # (sample,)

NONE: Final = "none"
EXACT: Final = "exact"
BET: Final = 4  # the bet on a leader with share p of two classes' votes: density 4 p**3


class Exit(ABC):
    """Tells of which samples enough is known.

    The votes of a sample are a fixed pile of which some lie open; `left` lie hidden.
    """

    early: ClassVar[bool] = True  # whether it may settle before all votes are in
    shuffled: ClassVar[bool] = False  # whether votes must be asked in an order drawn by chance
    weighted: ClassVar[bool] = True  # whether votes may weigh differently

    @abstractmethod
    def settled(self, votes: Votes, *, left: int) -> Settled:
        """Return the samples that need no more votes, given how much is still to come."""


class AskAll(Exit):
    """Ask for every vote."""

    early = False

    def settled(self, votes: Votes, *, left: int) -> Settled:
        """Return none of them, until nothing is left."""
        return np.full(len(votes), left == 0)


class Certain(Exit):
    """Stop once no votes that are left can change the winner, whatever they say.

    >>> Certain().settled(np.array([[3, 0], [0, 3], [2, 1]]), left=3)
    array([ True, False, False])
    """

    def settled(self, votes: Votes, *, left: int) -> Settled:
        """Return where the runner-up cannot win; equal votes go to the smaller class."""
        classes = votes.shape[1]
        if classes == 1:
            return np.ones(len(votes), bool)
        # One number says both: more votes come first, of equal ones the smaller class.
        first, second = two_largest(votes * classes + np.arange(classes)[::-1])
        return np.asarray(first - second > left * classes)


class Likely(Exit):
    """Stop once the winner of all votes is another class than the leader with at most a small risk.

    The votes must be asked in an order drawn by chance. Then, for each sample, the chance that
    its label is not the one that all votes would give is at most `risk`, whenever it stops.
    docs/explanation/early-exit.md has the proof.

    Args:
        risk: above 0 and below 1.
    """

    shuffled = True
    weighted = False

    def __init__(self, risk: float) -> None:
        if not 0 < risk < 1:
            raise ChoiceError(f"a risk must lie between 0 and 1, such as 0.01; got {risk:g}")
        self.risk = risk

    def settled(self, votes: Votes, *, left: int) -> Settled:
        """Return where the leader is certain, or the evidence against every other class strong."""
        certain = Certain().settled(votes, left=left)
        classes = votes.shape[1]
        if classes == 1:
            return certain
        # Evidence against a class with fewer votes is never less: the runner-up is enough.
        enough = np.log((classes - 1) / self.risk)
        likely = evidence(*two_largest(votes), left=left) >= enough
        return np.asarray(certain | likely)


def two_largest(votes: Votes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the largest and the second-largest number of each sample; none is below 0.

    >>> two_largest(np.array([[3, 0, 5], [2, 2, 1]]))
    (array([5, 2]), array([3, 2]))
    """
    best = votes.argmax(axis=1)[:, np.newaxis]
    others = votes.copy()
    np.put_along_axis(others, best, -1, axis=1)
    return np.take_along_axis(votes, best, axis=1)[:, 0], others.max(axis=1)


def evidence(leader: NDArray[Any], other: NDArray[Any], *, left: int) -> NDArray[np.float64]:
    """Return the logarithm of the evidence that a class will not be caught up with.

    A bet that the leader has more of the two classes' votes, divided by how probable these votes
    are, in this order, if the other had as many: a supermartingale, whatever else is voted for.

    Args:
        leader: votes of a class so far, (sample,).
        other: votes of another class.
        left: how many votes are still to come.

    >>> evidence(np.array([8, 8, 5]), np.array([0, 2, 5]), left=90).round(1)
    array([ 4.8,  1.5, -inf])
    """
    seen, lead = leader + other, leader - other
    half = (seen + left + 1) // 2  # votes that each has in all, if the other catches up
    sure, clear = leader > half, (lead > 0) & (lead**2 >= seen)
    half = np.maximum(half, leader)  # where it is sure, nothing is looked up below 0
    table = log_factorials(int(2 * half.max(initial=0)) + BET)
    bet = np.log(BET) + table[leader + BET - 1] + table[other] - table[seen + BET]
    caught_up = 2 * table[half] - table[half - leader] - table[half - other]
    caught_up += table[2 * half - seen] - table[2 * half]
    return np.where(sure, np.inf, np.where(clear, bet - caught_up, -np.inf))


def log_factorials(largest: int) -> NDArray[np.float64]:
    """Return the logarithms of 0!, 1!, … at least up to `largest`."""
    return _log_factorials(max(largest, 1).bit_length())


@functools.lru_cache(maxsize=4)
def _log_factorials(bits: int) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 2**bits)))])


def find_exit(exit: str | float | Exit) -> Exit:  # noqa: A002
    """Return what "none", "exact" or a risk between 0 and 1 stands for.

    >>> type(find_exit("exact")).__name__, find_exit("0.05").risk
    ('Certain', 0.05)
    >>> find_exit("never")
    Traceback (most recent call last):
    accord.errors.ChoiceError: exit is none, exact or a risk such as 0.01; got 'never'
    """
    if isinstance(exit, Exit):
        return exit
    named = {NONE: AskAll, EXACT: Certain}
    if exit in named:
        return named[str(exit)]()
    try:
        risk = float(exit)
    except ValueError:
        raise ChoiceError(f"exit is {NONE}, {EXACT} or a risk such as 0.01; got {exit!r}") from None
    return Likely(risk)


class Ballot:
    """Counts votes on some samples, and knows which of them are still open.

    Args:
        samples: how many there are.
        classes: how many classes there are.
        left: how many votes will be asked for in all, or the sum of their weights.

    >>> from accord.inference._early_exit import Certain
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


MOST_SAMPLES = 10_000  # of a record, to see which voters go with the others


def order_voters(
    rows: RecordReader | None,
    size: tuple[int, int],  # networks, epochs
    exit: Exit,  # noqa: A002
    *,
    seed: int,
) -> NDArray[np.intp]:
    """Return the voters, network · epochs + epoch, in the order to ask them.

    By chance where the exit needs that. Else those first that a record shows to vote most often
    with the winner, since the leader's votes should come first; without one, the last epochs.
    """
    networks, epochs = size
    if exit.shuffled:
        return np.random.default_rng(seed).permutation(networks * epochs)
    if rows is None:
        return np.arange(networks * epochs).reshape(size).T[::-1].ravel()
    return np.argsort(-_going_along(rows), kind="stable")


def _going_along(rows: RecordReader) -> NDArray[np.intp]:  # (network · epoch,)
    some = rows.select(samples=slice(0, min(rows.samples, MOST_SAMPLES)))
    winners = MaxAgreement()(some).labels
    found = np.zeros((some.networks, some.epochs), np.intp)
    for block in some.blocks():
        found += (block.values == winners[block.where]).sum(axis=2)
    return found.ravel()


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


def replay(rows: RecordReader, *, exit: str | float | Exit, seed: int = 0) -> Replayed:  # noqa: A002
    """Predict by max agreement with an early exit, as if the record's networks were asked anew.

    Args:
        rows: a record's, `accord.open(path).reader`.
        exit: "none", "exact", or a risk between 0 and 1.
        seed: of the order in which votes are asked for, where chance decides it.

    >>> from accord.store import ArrayReader, SampleInfo
    >>> labels = np.zeros((2, 5, 3), np.uint8)  # ten votes, all for class 0
    >>> replay(ArrayReader(labels, SampleInfo(3, 4)), exit="exact").asked
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
