"""Accuracy estimates from given labels of which an unknown part is wrong.

Wrong predictions and wrong labels both lower the agreement of a rule with the given labels. The
votes distinguish them. Where networks err they mostly disagree, so that contradictions of labels
that nearly all votes share are due to wrong labels. Where networks err, the given label is one of
the classes that some voted for; a wrong label is any class, or the one that its class is
usually mistaken for.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._trust._confidence_intervals import check_confidence
from accord.analysis._trust._noisy_accuracy import Estimate
from accord.errors import PredictionError, counted
from accord.kernels import count_votes
from accord.rules import Context

MOST_SAMPLES: Final = 2_000  # that the model is fitted to, evenly spaced
LEAST_SAMPLES: Final = 30
LEAST_PER_CLASS: Final = 5
LEAST_VOTES: Final = 20
WIDEST: Final = 0.2  # half of the interval: beyond, the votes leave open who is wrong

# A label with the share s of the votes is right with odds of exp(a + b log(s / (1 - s))).
# On 59 records with true labels (five networks; tables, digits, CIFAR; wrong labels at random,
# toward one class, and none), but for tables of few rows, a lay between -0.9 and 1.1, and b between
# 0.2 and 1 for two to four classes, 0.7 and 1.4 for digits, 1.2 and 2.1 for CIFAR.
LEVEL, LEVEL_SPREAD = 0.1, 0.5  # of a
SLOPE, GROWTH, MOST_SLOPE, SLOPE_SPREAD = 0.55, 0.42, 1.6, 0.4  # of b, which is log-normal
STEPS: Final = np.linspace(-2.2, 2.2, 9)  # of either, in standard deviations
RATES: Final = np.linspace(0, 0.8, 41)  # of wrong labels
PSEUDO_VOTES: Final = (0.002, 0.02, 0.1)  # of all votes, for a class without one
TINY: Final = 1e-9
AT_ONCE: Final = 16  # samples, whose tables stay in cache
# The same records: the standard deviation of what is wrong with the model itself, as a share of the
# difference between accuracy and agreement.
MODEL_ERROR: Final = 0.15

Values = NDArray[np.float64]


@dataclass(frozen=True)
class AgreementModel:
    """Model of how agreement with the given labels depends on the accuracy.

    A setting is a way in which predictions and labels may be wrong.
    """

    agreement: float  # of max agreement with the given labels
    weights: Values  # (setting,), how well each explains the labels; sum to 1
    accuracy: Values  # (setting,), of max agreement
    right: Values  # (setting,), share of right predictions that agree with the given label
    wrong: Values  # (setting,), share of wrong predictions that agree with it
    variance: float  # of the accuracy within a setting

    def correct(
        self, agreement: float, *, coverage: float = 1.0, confidence: float = 0.95
    ) -> Estimate:
        """Estimate the accuracy of a rule from its agreement with the given labels."""
        gain = 1 / np.maximum(self.right - self.wrong, 0.05)
        values = self.accuracy + gain * (agreement - self.agreement + self.wrong * (1 - coverage))
        value = float(self.weights @ values)
        own = self.variance + (MODEL_ERROR * (value - agreement)) ** 2
        order = np.argsort(values)
        tail = (1 - check_confidence(confidence)) / 2
        shares = np.cumsum(self.weights[order])
        at = np.minimum(np.searchsorted(shares, (tail, 1 - tail)), len(order) - 1)
        low, high = (float(one) for one in values[order[at]])
        scatter = NormalDist().inv_cdf(1 - tail) * math.sqrt(own)
        return Estimate(
            value=min(1.0, max(0.0, value)),
            low=max(0.0, value - math.hypot(max(0.0, value - low), scatter)),
            high=min(1.0, value + math.hypot(max(0.0, high - value), scatter)),
            confidence=confidence,
            error=math.sqrt(float(self.weights @ (values - value) ** 2) + own),
        )


@dataclass(frozen=True)
class _Votes:
    """Labels of max agreement, with the votes for other classes."""

    odds: Values  # (sample,), logarithm of the odds of a vote for the label
    label: NDArray[np.intp]  # (sample,)
    given: NDArray[np.intp]  # (sample,)
    others: Values  # (sample, class), votes for the classes that are not the label
    voters: int

    @property
    def agrees(self) -> NDArray[np.bool_]:
        return np.asarray(self.label == self.given)


@dataclass(frozen=True)
class _Pattern:
    """Probabilities of the given labels for one idea of how labels and predictions are wrong."""

    turned: Values  # (sample,), that a wrong label is the given one
    missed: Values  # (sample,), that the given label is true where the prediction is wrong
    hidden: Values  # (sample,), that it is wrong too, for labels that are all wrong


def fit_agreement_model(context: Context) -> AgreementModel:
    """Estimate from the votes how many given labels and predictions are wrong.

    Assumes that a given label depends on the true class alone, and that networks hardly ever err
    together where nearly all votes agree. Where classes overlap, so that no network can be right,
    labels there are taken for wrong, and the estimate is too high. At most 2,000 samples are used.

    Raises:
        PredictionError: the votes do not determine the accuracy.
    """
    _check(context)
    votes = _read(context)
    slope = min(MOST_SLOPE, SLOPE * (context.classes - 1) ** GROWTH)
    level, step, rate = (one.ravel() for one in np.meshgrid(STEPS, STEPS, RATES, indexing="ij"))
    prior = -(level**2 + step**2) / 2
    found = [_fit(votes, pattern, slope) for pattern in _patterns(votes, slope)]
    logs = np.concatenate([prior + one.log_likelihood for one in found])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    right, scatter, wrong = (
        np.concatenate(each)
        for each in zip(*((one.right, one.scatter, one.wrong) for one in found), strict=True)
    )
    model = AgreementModel(
        agreement=float(votes.agrees.mean()),
        weights=weights,
        accuracy=right,
        right=1 - np.tile(rate, len(found)),
        wrong=wrong,
        variance=float(weights @ scatter) / len(votes.label),
    )
    estimate = model.correct(model.agreement)
    if estimate.high - estimate.low > 2 * WIDEST:
        raise PredictionError(
            f"the votes leave open whether networks or labels are wrong: between "
            f"{100 * estimate.low:.0f} and {100 * estimate.high:.0f} % of the labels of "
            "max-agreement are right. Verify some samples: accord trust RECORD --verify 100"
        )
    return model


def _check(context: Context) -> None:
    if context.trained_on:
        raise PredictionError(
            "the networks were trained on these samples and repeat wrong labels; use a record of "
            "samples that they were not trained on"
        )
    if context.has_missing:
        raise PredictionError("some votes are missing")
    if context.networks < 2:
        raise PredictionError("it compares networks, and there is one")
    least = max(LEAST_SAMPLES, LEAST_PER_CLASS * context.classes)
    if context.samples < least:
        raise PredictionError(
            f"{counted(context.samples, 'sample')} of {counted(context.classes, 'class')} are too "
            f"few: at least {least} are required"
        )
    if context.networks * context.epochs < LEAST_VOTES:
        raise PredictionError(f"each sample has fewer than {LEAST_VOTES} votes. Record more epochs")


def _read(context: Context) -> _Votes:
    voters, classes = context.networks * context.epochs, context.classes
    step = -(-context.samples // max(MOST_SAMPLES, LEAST_PER_CLASS * classes))
    labels = context.read_labels(
        range(context.networks), range(context.epochs), slice(None, None, step)
    )
    others = count_votes(labels.reshape(voters, -1), classes=classes).astype(np.float64)
    label, each = others.argmax(axis=1), np.arange(len(others))
    most = others[each, label]
    others[each, label] = 0
    odds = np.log((most + 0.5) / (voters - most + 0.5))
    given = np.asarray(context.sample_info.given)[::step].astype(np.intp)
    return _Votes(odds, label, given, others, voters)


def _patterns(votes: _Votes, slope: float) -> Iterator[_Pattern]:
    """Iterate over ideas of how labels and predictions are wrong.

    Wrong labels are of any class, or of those that contradict sure predictions of the same class;
    wrong predictions are of any class, more or less often of those with votes.
    """
    samples, classes = votes.others.shape
    each, alike = np.arange(samples), 1 / (classes - 1)
    sure = np.where(votes.agrees, 0, 1 / (1 + np.exp(-LEVEL - slope * votes.odds)))
    table = np.zeros((classes, classes))  # (label, given)
    np.add.at(table, (votes.label, votes.given), sure)
    sizes = table.sum(axis=1)
    # Each sample is left out of its own cell: no label explains itself.
    turned = (table[votes.label, votes.given] - sure + alike) / (sizes[votes.label] - sure + 1)
    table = (table + alike) / (sizes[:, np.newaxis] + 1)
    np.fill_diagonal(table, 0)
    for pseudo in PSEUDO_VOTES if classes > 2 else PSEUDO_VOTES[:1]:
        true = votes.others + pseudo * votes.voters
        true[each, votes.label] = 0
        true /= true.sum(axis=1, keepdims=True)
        missed = true[each, votes.given]
        yield _Pattern(np.full(samples, alike), missed, (1 - missed) * alike)
        if classes > 2:
            yield _Pattern(turned, missed, (true * table[:, votes.given].T).sum(axis=1))


@dataclass(frozen=True)
class _Fit:
    """What each setting makes of the labels; all of shape (setting,)."""

    log_likelihood: Values
    right: Values  # share of right predictions
    scatter: Values  # mean variance of a prediction's being right
    wrong: Values  # share of the wrong predictions that agree with the given label


def _fit(votes: _Votes, pattern: _Pattern, slope: float) -> _Fit:
    level, slopes = (
        LEVEL + LEVEL_SPREAD * STEPS[:, np.newaxis],
        slope * np.exp(SLOPE_SPREAD * STEPS),
    )
    size = len(STEPS) ** 2 * len(RATES)
    log_likelihood, right, scatter, agreed = np.zeros((4, size))
    for start in range(0, len(votes.label), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        odds, agrees, turned, missed, hidden = (
            one[some, np.newaxis, np.newaxis]
            for one in (votes.odds, votes.agrees, pattern.turned, pattern.missed, pattern.hidden)
        )
        known = 1 / (1 + np.exp(-level - slopes * odds))
        known = known.reshape(len(known), -1, 1)  # (sample, level and slope, rate)
        good = known * np.where(agrees, 1 - RATES, RATES * turned)
        bad = (1 - known) * (np.where(agrees, 0, missed) * (1 - RATES) + RATES * hidden)
        total = good + bad + TINY
        share = good / total
        log_likelihood += np.log(total).sum(axis=0).ravel()
        right += share.sum(axis=0).ravel()
        scatter += (share * (1 - share)).sum(axis=0).ravel()
        agreed += ((1 - share) * (RATES * hidden)).sum(axis=0).ravel()
    samples = len(votes.label)
    wrong = np.divide(agreed, samples - right, out=np.zeros(size), where=samples - right > TINY)
    return _Fit(log_likelihood, right / samples, scatter / samples, wrong)
