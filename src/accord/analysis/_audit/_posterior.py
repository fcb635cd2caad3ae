"""Which class each sample truly is of, by its votes, its given label and the habits of both."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._audit._evidence import Evidence
from accord.errors import PredictionError
from accord.kernels._blocks import spans

LEAST_FITTED: Final = 2_000  # samples that habits are learnt from, evenly spaced,
FITTED_PER_CLASS: Final = 200  # or so many for each class, if that is more
SAMPLES_AT_ONCE: Final = 4_096  # or more if tables (class, class) are large: each part needs some

# The rounds begin with a quarter of the votes by heart: at none they would stay. They end when a
# sample's chances change by 0.02 on average. What still drifts then is what votes hardly tell,
# whether the labels or the networks are wrong together: with 0.001, the estimate for a table with
# 40 % asymmetric noise rose from 35 to 39 %, but that for clean images from 10 to 12 %.
BY_HEART_AT_FIRST: Final = 0.25
CLOSE: Final = 0.02
MOST_ROUNDS: Final = 30
# Votes that count for too little are overruled by the labels, and then count for less still: from
# every fourth epoch of a record of human labels, of which 42 % are wrong, 2 % were found. With
# three voices or more it is 41 %.
LEAST_VOICES: Final = 3.0
TINY: Final = 1e-9
TABLES: Final = 12  # (class, class) that are held at once while habits are learnt
LARGEST: Final = 4 * 2**30  # bytes of all of them

Chances = NDArray[np.float64]  # (sample, candidate): to be the true class; rows add up to 1
Table = NDArray[np.float64]  # (true class, class)


@dataclass(frozen=True)
class Habits:
    """How labels go wrong, and how networks do."""

    given: Table  # the chance that a sample is of the one class and given the other
    said: Table  # the share of votes on samples of the one class that say the other, by insight
    by_heart: float  # the share of votes that repeat the given label, whatever is true
    voices: float  # how many independent votes all votes on a sample are worth


def tell_classes(evidence: Evidence, *, classes: int) -> Chances:
    """Return each candidate's chance to be the true class.

    What the networks say of a sample depends on its true class, and so does the given label:
    if some cats are given as dogs, networks call some cats dogs, but hardly a dog a cat. A vote
    for cat then tells more than one for dog. Votes by heart repeat the given label and tell
    nothing. These habits are learnt along with the chances, from votes and given labels alone.

    Networks go wrong on the same samples more often than the habits say. So the odds against a
    given label are taken to the power of one over the square root of the voices.

    Raises:
        PredictionError: tables (class, class) would exceed 4 GiB together.
    """
    check_tables(classes)
    if not evidence.believed:
        return first_chances(evidence)
    step = -(-len(evidence) // max(LEAST_FITTED, FITTED_PER_CLASS * classes))
    habits = learn_habits(evidence.part(slice(None, None, step)), classes=classes)
    at_once = max(SAMPLES_AT_ONCE, classes**2 // 16)
    parts = [evidence.part(part) for part in spans(len(evidence), at_once)]
    power = 1 / math.sqrt(max(1.0, evidence.believed * habits.voices))
    chances = np.concatenate([weigh_candidates(part, habits) for part in parts])
    return soften(chances, power)


def check_tables(classes: int) -> None:
    """Refuse so many classes that all tables that habits are learnt with exceed 4 GiB."""
    size = TABLES * 8 * classes**2
    if size > LARGEST:
        raise PredictionError(
            f"an audit of {classes} classes that occur would take {size / 2**30:.1f} GiB; the "
            f"largest is {LARGEST // 2**30} GiB. Audit some of the samples at a time, so that "
            f"fewer than {math.isqrt(LARGEST // (8 * TABLES))} classes occur among them."
        )


def learn_habits(evidence: Evidence, *, classes: int) -> Habits:
    """Learn how labels and networks go wrong, by expectation maximisation."""
    even = np.ones((classes, classes))
    habits = Habits(given=even, said=even, by_heart=BY_HEART_AT_FIRST, voices=LEAST_VOICES)
    chances = first_chances(evidence)
    for _ in range(MOST_ROUNDS):
        habits = update_habits(habits, evidence, chances)
        before, chances = chances, weigh_candidates(evidence, habits)
        if np.abs(chances - before).sum() < CLOSE * len(evidence):
            break
    return habits


def first_chances(evidence: Evidence) -> Chances:
    """Take shares of votes for chances, the given label's own vote among them.

    Without votes that count, the given label is certain.
    """
    chances = evidence.believed * evidence.shares
    chances[:, 0] += 1 - evidence.believed
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def update_habits(habits: Habits, evidence: Evidence, chances: Chances) -> Habits:
    """Count given labels and votes by true class, each as often as the chances say.

    How many of the votes for given labels are by heart follows from the habits before.
    """
    shares, shape = evidence.shares, habits.said.shape
    of_label, of_rivals = evidence.cells
    given = _add_up(of_label, chances, shape)
    own = _add_up(of_label, chances * shares[:, :1], shape)
    others = _add_up(of_rivals, chances[:, :, np.newaxis] * shares[:, np.newaxis, 1:], shape)
    insight = (1 - habits.by_heart) * habits.said
    seen = others + own * insight / (insight + habits.by_heart)
    said, by_heart = _in_each_row(seen), float(1 - seen.sum() / shares.sum())
    true = given.sum(axis=1, keepdims=True) + 1 / len(given)
    voices = count_voices(said, by_heart, given=given, votes=own + others, shares=shares)
    return Habits(
        given=_in_each_row(given) * (true / true.sum()),
        said=said,
        by_heart=by_heart,
        voices=max(LEAST_VOICES, min(voices, evidence.votes)),
    )


def count_voices(
    said: Table, by_heart: float, *, given: Table, votes: Table, shares: NDArray[np.float64]
) -> float:
    """Return how many independent votes would scatter about their mean as much as these do.

    A sample's mean shares follow from its true class and its given label. Votes that all say
    the same of a sample, on half of the samples the one class and on half the other, are one:

    >>> shares, said = np.eye(2)[[0, 1] * 5], np.full((2, 2), 0.5)
    >>> count_voices(said, 0.0, given=5 * np.eye(2), votes=5 * said, shares=shares)
    1.0
    """
    insight = 1 - by_heart
    squares = (given.sum(axis=1) * (said**2).sum(axis=1)).sum() * insight**2
    squares += (given * said).sum() * 2 * insight * by_heart + len(shares) * by_heart**2
    along = (votes * said).sum() * insight + shares[:, 0].sum() * by_heart
    scatter = (shares**2).sum() - 2 * along + squares
    return float((len(shares) - squares) / max(scatter, TINY))


def weigh_candidates(evidence: Evidence, habits: Habits) -> Chances:
    """Return each candidate's chance to be the true class, if these are the habits."""
    candidates, shares = evidence.candidates.T.copy(), evidence.shares.T.copy()  # long rows: fast
    rows = candidates * len(habits.said)
    worth = evidence.believed * habits.voices
    insight = (1 - habits.by_heart) * habits.said
    against, beside = worth * np.log(insight), worth * np.log(insight + habits.by_heart)
    of_label = rows + candidates[0]
    logs = np.log(habits.given).take(of_label) + beside.take(of_label) * shares[0]
    for rival, share in zip(candidates[1:], shares[1:], strict=True):
        logs += against.take(rows + rival) * share
    chances = np.exp(logs - logs.max(axis=0))
    return np.asarray((chances / chances.sum(axis=0)).T)


def soften(chances: Chances, power: float) -> Chances:
    """Take the odds against the first candidate to a power; the others keep their proportions.

    >>> soften(np.array([[0.2, 0.6, 0.2]]), 0.5).round(4).tolist()
    [[0.3333, 0.5, 0.1667]]
    """
    first, others = chances[:, 0], chances[:, 1:]
    rest = others.sum(axis=1)
    one, other = first**power, rest**power
    softened = np.empty_like(chances)
    softened[:, 0] = one
    softened[:, 1:] = others / np.where(rest > 0, rest, 1.0)[:, np.newaxis]
    softened[:, 1:] *= other[:, np.newaxis]
    softened /= (one + other)[:, np.newaxis]
    return softened


def _add_up(cells: NDArray[np.intp], weights: NDArray[Any], shape: tuple[int, ...]) -> Table:
    summed = np.bincount(cells.ravel(), weights.ravel(), minlength=math.prod(shape))
    return np.asarray(summed.reshape(shape))


def _in_each_row(table: Table) -> Table:
    """Divide each row by its sum, after adding one sample that is like those of all classes.

    Of all classes, only the share on the diagonal is taken; the rest is spread evenly.
    """
    right = np.trace(table) / table.sum()
    usual = np.full(table.shape, (1 - right) / (len(table) - 1))
    np.fill_diagonal(usual, right)
    filled = table + usual + TINY
    return np.asarray(filled / filled.sum(axis=1, keepdims=True))
