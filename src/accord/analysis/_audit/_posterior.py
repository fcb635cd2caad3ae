"""Expectation maximisation for the true classes.

A sample's votes and its given label both depend on its true class: if some cats are labelled as
dogs, networks also predict dog for some cats, but hardly ever cat for a dog. A vote for cat is
then stronger evidence than a vote for dog. These error rates are fitted together with the
posteriors, from votes and given labels alone. Votes that repeat a memorised label are no evidence.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._audit._evidence import Evidence
from accord.errors import PredictionError
from accord.kernels._blocks import spans

LEAST_FITTED: Final = 2_000  # samples that rates are fitted on, evenly spaced,
# or this many for each class, if that is more. On CIFAR-100 with 40 % symmetric noise, 200 instead
# of 500 lowered the AUROC from 0.979 to 0.975.
FITTED_PER_CLASS: Final = 500
SAMPLES_AT_ONCE: Final = 4_096  # or more if a part's own tables (class, class) are large

# A quarter of the votes count as memorised at first: from none, the share would stay at none. The
# rounds end when a sample's posteriors change by 0.02 on average. What still drifts then is hardly
# determined by the votes: whether the labels or the networks are wrong together. With 0.001, the
# estimate for a table with 40 % asymmetric noise rose from 35 to 39 %, but that for clean images
# from 10 to 12 %.
INITIAL_MEMORISED: Final = 0.25
CLOSE: Final = 0.02
MOST_ROUNDS: Final = 30
# Votes with too little weight are overruled by the labels, and then weigh less still: from every
# fourth epoch of a record of human labels, 42 % of them wrong, an audit found 2 %. With at least
# three effective votes it found 41 %.
LEAST_EFFECTIVE_VOTES: Final = 3.0
TINY: Final = 1e-9
TABLES: Final = 12  # (class, class) held at once while rates are fitted
LARGEST: Final = 4 * 2**30  # bytes of all of them

Posteriors = NDArray[np.float64]  # (sample, candidate), rows sum to 1
Table = NDArray[np.float64]  # (true class, class)


@dataclass(frozen=True)
class ErrorRates:
    given: Table  # joint probability of the true class and the given label
    predicted: Table  # (true class, class), shares of the votes that are not memorised
    memorised: float  # the share of votes that repeat the given label, whatever the true class
    effective_votes: float  # the number of independent votes that a sample's votes amount to


def class_posteriors(evidence: Evidence) -> Posteriors:
    """Compute the posterior probability of each candidate class.

    Networks err on the same samples more often than the error rates imply. The odds against a
    given label are therefore raised to the power of one over the square root of the effective
    votes.
    """
    evidence = evidence.renumbered()
    classes = len(evidence.predicted)
    size = TABLES * 8 * classes**2
    if size > LARGEST:
        raise PredictionError(
            f"an audit of {classes} classes would take {size / 2**30:.1f} GiB; the "
            f"limit is {LARGEST // 2**30} GiB. Audit fewer samples at a time, with fewer than "
            f"{math.isqrt(LARGEST // (8 * TABLES))} classes among them."
        )
    if not evidence.vote_weight:
        return initial_posteriors(evidence)
    step = -(-len(evidence) // max(LEAST_FITTED, FITTED_PER_CLASS * classes))
    rates = fit_rates(evidence.part(slice(None, None, step)), classes=classes)
    at_once = max(SAMPLES_AT_ONCE, classes**2 // 16)
    parts = [evidence.part(part) for part in spans(len(evidence), at_once)]
    power = 1 / math.sqrt(max(1.0, evidence.vote_weight * rates.effective_votes))
    posteriors = np.concatenate([candidate_posteriors(part, rates) for part in parts])
    return soften(posteriors, power)


def fit_rates(evidence: Evidence, *, classes: int) -> ErrorRates:
    """Fit the error rates by expectation maximisation."""
    even = np.ones((classes, classes))
    rates = ErrorRates(even, even, INITIAL_MEMORISED, LEAST_EFFECTIVE_VOTES)
    posteriors = initial_posteriors(evidence)
    for _ in range(MOST_ROUNDS):
        rates = update_rates(rates, evidence, posteriors)
        before, posteriors = posteriors, candidate_posteriors(evidence, rates)
        if np.abs(posteriors - before).sum() < CLOSE * len(evidence):
            break
    return rates


def initial_posteriors(evidence: Evidence) -> Posteriors:
    posteriors = evidence.vote_weight * evidence.shares
    posteriors[:, 0] += 1 - evidence.vote_weight
    return np.asarray(posteriors / posteriors.sum(axis=1, keepdims=True))


def update_rates(rates: ErrorRates, evidence: Evidence, posteriors: Posteriors) -> ErrorRates:
    """Update the error rates from the posteriors (M step)."""
    shares, shape = evidence.shares, rates.predicted.shape
    of_label, of_alternatives = evidence.cells
    given = _add_up(of_label, posteriors, shape)
    own = _add_up(of_label, posteriors * shares[:, :1], shape)
    others = _add_up(
        of_alternatives, posteriors[:, :, np.newaxis] * shares[:, np.newaxis, 1:], shape
    )
    # The previous rates determine how many of the votes for given labels are memorised.
    insight = (1 - rates.memorised) * rates.predicted
    seen = others + own * insight / (insight + rates.memorised)
    predicted, memorised = _in_each_row(seen), float(1 - seen.sum() / shares.sum())
    true = given.sum(axis=1, keepdims=True) + 1 / len(given)
    effective_votes = count_effective_votes(
        predicted, memorised, given=given, votes=own + others, shares=shares
    )
    return ErrorRates(
        given=_in_each_row(given) * (true / true.sum()),
        predicted=predicted,
        memorised=memorised,
        effective_votes=max(LEAST_EFFECTIVE_VOTES, min(effective_votes, evidence.votes)),
    )


def count_effective_votes(
    predicted: Table, memorised: float, *, given: Table, votes: Table, shares: NDArray[np.float64]
) -> float:
    """Estimate the effective number of independent votes.

    A sample's mean shares follow from its true class and its given label.
    """
    insight = 1 - memorised
    squares = (given.sum(axis=1) * (predicted**2).sum(axis=1)).sum() * insight**2
    squares += (given * predicted).sum() * 2 * insight * memorised + len(shares) * memorised**2
    along = (votes * predicted).sum() * insight + shares[:, 0].sum() * memorised
    scatter = (shares**2).sum() - 2 * along + squares
    return float((len(shares) - squares) / max(scatter, TINY))


def candidate_posteriors(evidence: Evidence, rates: ErrorRates) -> Posteriors:
    """Compute the posteriors from the error rates (E step)."""
    # Contiguous for each candidate: fast.
    candidates, shares = evidence.candidates.T.copy(), evidence.shares.T.copy()
    rows = candidates * len(rates.predicted)
    worth = evidence.vote_weight * rates.effective_votes
    insight = (1 - rates.memorised) * rates.predicted
    against, beside = worth * np.log(insight), worth * np.log(insight + rates.memorised)
    of_label = rows + candidates[0]
    logs = np.log(rates.given).take(of_label) + beside.take(of_label) * shares[0]
    for alternative, share in zip(candidates[1:], shares[1:], strict=True):
        logs += against.take(rows + alternative) * share
    posteriors = np.exp(logs - logs.max(axis=0))
    return np.asarray((posteriors / posteriors.sum(axis=0)).T)


def soften(posteriors: Posteriors, power: float) -> Posteriors:
    """Raise the odds against the first candidate to a power."""
    first, others = posteriors[:, 0], posteriors[:, 1:]
    rest = others.sum(axis=1)
    one, other = first**power, rest**power
    softened = np.empty_like(posteriors)
    softened[:, 0] = one
    softened[:, 1:] = others / np.where(rest > 0, rest, 1.0)[:, np.newaxis]
    softened[:, 1:] *= other[:, np.newaxis]
    softened /= (one + other)[:, np.newaxis]
    return softened


def _add_up(cells: NDArray[np.intp], weights: NDArray[Any], shape: tuple[int, ...]) -> Table:
    summed = np.bincount(cells.ravel(), weights.ravel(), minlength=math.prod(shape))
    return np.asarray(summed.reshape(shape))


def _in_each_row(table: Table) -> Table:
    """Normalise the rows of a table with additive smoothing."""
    right = np.trace(table) / table.sum()
    usual = np.full(table.shape, (1 - right) / (len(table) - 1))
    np.fill_diagonal(usual, right)
    filled = table + usual + TINY
    return np.asarray(filled / filled.sum(axis=1, keepdims=True))
