"""Accuracy from a few samples whose labels people have verified."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis.trust.noisy_scores import Estimate, estimate
from accord.errors import ChoiceError, PredictionError

STRATA: Final = 5
LEAST: Final = 2  # samples in each stratum, to tell how far they differ


@dataclass(frozen=True)
class Sampling:
    """Samples to verify, drawn by chance within strata of alike scores."""

    samples: NDArray[np.intp]  # (verified,), which to verify, in order
    strata: NDArray[np.intp]  # (verified,), the stratum of each
    sizes: NDArray[np.intp]  # (stratum,), all samples


def choose_to_verify(
    scores: NDArray[Any], budget: int, *, strata: int = STRATA, seed: int = 0
) -> Sampling:
    """Choose which samples to verify so that few labels tell much of the accuracy.

    Samples are split by score into strata of equal size. Where scores are in the middle, right
    and wrong labels mix, and more are drawn there: as many as share × √(s · (1 - s)) says, s the
    mean score of the stratum, at least two of each.

    Args:
        scores: (sample,), in 0..1: the share of votes, or calibrated confidence.
        budget: how many samples to verify.
        strata: how many.
        seed: of the draw.

    Raises:
        ChoiceError: the budget is too small or larger than there are samples.
    """
    values = np.asarray(scores, np.float64)
    if not LEAST * strata <= budget <= len(values) or strata < 1:
        raise ChoiceError(
            f"to verify {budget} samples of {len(values)} in {strata} strata, the budget must lie "
            f"in {LEAST * strata}..{len(values)}"
        )
    parts = np.array_split(np.argsort(values, kind="stable"), strata)
    shares = _allot([_spread(values[part]) * len(part) for part in parts], parts, budget)
    generator = np.random.default_rng(seed)
    drawn = [
        generator.choice(part, size, replace=False)
        for part, size in zip(parts, shares, strict=True)
    ]
    samples = np.concatenate(drawn)
    stratum = np.repeat(np.arange(strata), shares)
    order = np.argsort(samples)
    return Sampling(samples[order], stratum[order], np.array([len(part) for part in parts]))


def verified_accuracy(
    right: NDArray[Any], sampling: Sampling, *, confidence: float = 0.95
) -> Estimate:
    """Estimate the accuracy on all samples from those verified.

    Unbiased whatever the scores are worth; good scores only make the interval narrower.
    For the difference between two rules, give `(second == truth) - (first == truth)`, of -1, 0
    and 1, instead. The interval is a normal one: with under about 30 samples, or all of them
    right, it is too narrow.

    Args:
        right: (verified,), whether each of `sampling.samples` was predicted right.
        sampling: what `choose_to_verify` returned.
        confidence: of the interval.
    """
    values = np.asarray(right, np.float64)
    if values.shape != sampling.samples.shape:
        raise PredictionError(
            f"{len(sampling.samples)} samples were to be verified; got shape {values.shape}"
        )
    shares = sampling.sizes / sampling.sizes.sum()
    mean = variance = 0.0
    for stratum, share in enumerate(shares.tolist()):
        found = values[sampling.strata == stratum]
        left = 1 - len(found) / int(sampling.sizes[stratum])  # what is verified is certain
        mean += share * float(found.mean())
        variance += share**2 * left * float(found.var(ddof=1)) / len(found)
    return estimate(mean, math.sqrt(variance), confidence)


def _spread(scores: NDArray[np.float64]) -> float:
    mean = float(np.clip(scores.mean(), 0.02, 0.98))  # no stratum is above suspicion
    return math.sqrt(mean * (1 - mean))


def _allot(
    wishes: list[float], parts: list[NDArray[np.intp]], budget: int
) -> NDArray[np.intp]:  # (stratum,)
    sizes = np.array([len(part) for part in parts])
    given = np.full(len(parts), LEAST)
    for _ in range(budget - int(given.sum())):
        # One at a time to the stratum that is furthest behind its wish.
        need = np.where(given < sizes, np.array(wishes) / given, -1.0)
        given[int(need.argmax())] += 1
    return given
