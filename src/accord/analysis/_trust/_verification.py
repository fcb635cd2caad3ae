"""Accuracy from a few samples whose labels people have verified."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._trust._intervals import mean_interval
from accord.analysis._trust._noisy_accuracy import Estimate, smooth_moments
from accord.errors import ChoiceError, PredictionError

STRATA: Final = 5
LEAST_PER_STRATUM: Final = 2  # samples in each stratum, to tell how far they differ


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
        PredictionError: the scores are not one for each sample, or outside 0..1.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():  # nan is neither
        raise PredictionError(
            "one score in 0..1 per sample is wanted, such as the share of votes; got shape "
            f"{values.shape}{_told_range(values)}"
        )
    if len(values) < LEAST_PER_STRATUM * strata:
        raise ChoiceError(
            f"{len(values)} samples are too few for {strata} strata of at least "
            f"{LEAST_PER_STRATUM}: verify all of them, and count how many are right"
        )
    if not LEAST_PER_STRATUM * strata <= budget <= len(values) or strata < 1:
        raise ChoiceError(
            f"to verify {budget} samples of {len(values)} in {strata} strata, the budget must lie "
            f"in {LEAST_PER_STRATUM * strata}..{len(values)}"
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
    right: NDArray[Any],
    sampling: Sampling,
    *,
    confidence: float = 0.95,
    difference: bool | None = None,
) -> Estimate:
    """Estimate the accuracy on all samples from those verified.

    Unbiased whatever the scores are worth; good scores only make the interval narrower.
    For the difference between two rules, give `(second == truth) - (first == truth)` instead, of
    -1, 0 and 1, with `difference=True`. The interval holds for few samples, and where all are
    right, too: each stratum counts as if half a right and half a wrong one had been seen besides.

    Args:
        right: (verified,), whether each of `sampling.samples` was predicted right.
        sampling: what `choose_to_verify` returned.
        confidence: of the interval.
        difference: whether the values are differences; by default, if one is below 0.

    Raises:
        PredictionError: as many values as samples are wanted, in 0..1, or -1..1 of differences.
    """
    values = np.asarray(right, np.float64)
    if values.shape != sampling.samples.shape:
        raise PredictionError(
            f"{len(sampling.samples)} samples were to be verified; got shape {values.shape}"
        )
    least = -1.0 if (bool((values < 0).any()) if difference is None else difference) else 0.0
    if not (values.min() >= least and values.max() <= 1):  # written so that nan is refused too
        raise PredictionError(
            f"right or wrong must be 1 or 0, and a difference of two -1, 0 or 1; got "
            f"{values.min():g}..{values.max():g}"
        )
    mean, smoothed, variance = _stratified((values - least) / (1 - least), sampling)
    low, high = mean_interval(mean, smoothed, variance, confidence=confidence)
    value, low, high = (least + (1 - least) * share for share in (mean, low, high))
    return Estimate(value, low, high, confidence, (1 - least) * math.sqrt(variance))


def _stratified(values: NDArray[np.float64], sampling: Sampling) -> tuple[float, float, float]:
    """Return the mean, the mean with some doubt, and the variance of the former with that doubt."""
    shares = sampling.sizes / sampling.sizes.sum()
    mean = smoothed = variance = 0.0
    for stratum, share in enumerate(shares.tolist()):
        found = values[sampling.strata == stratum]
        left = 1 - len(found) / int(sampling.sizes[stratum])  # what is verified is certain
        middle, spread = smooth_moments(found)
        mean += share * float(found.mean())
        smoothed += share * middle
        variance += share**2 * left * spread / len(found)
    return mean, smoothed, variance


def _told_range(values: NDArray[np.float64]) -> str:
    return f" and {values.min():g}..{values.max():g}" if values.size else ""


def _spread(scores: NDArray[np.float64]) -> float:
    mean = float(np.clip(scores.mean(), 0.02, 0.98))  # no stratum is above suspicion
    return math.sqrt(mean * (1 - mean))


def _allot(
    wishes: list[float], parts: list[NDArray[np.intp]], budget: int
) -> NDArray[np.intp]:  # (stratum,)
    sizes = np.array([len(part) for part in parts])
    given = np.full(len(parts), LEAST_PER_STRATUM)
    for _ in range(budget - int(given.sum())):
        # One at a time to the stratum that is furthest behind its wish.
        need = np.where(given < sizes, np.array(wishes) / given, -1.0)
        given[int(need.argmax())] += 1
    return given
