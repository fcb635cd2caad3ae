"""What the paper's three lemmas say, measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from accord.analysis.theory.descent import Descent, descend
from accord.analysis.theory.regression import Array, Regression

# A rise by a smaller share of the loss may come from rounding.
ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class SignEvidence:
    """Lemma 1 at one rate: does the sign of a product of gradients tell overfit?"""

    rate: float  # step size × largest eigenvalue
    steps: int  # (network, step) pairs whose test loss changes by more than rounding
    overfit: int  # of these, the test loss rises
    missed: int  # of these, the sign of the product says otherwise
    missed_exactly: int  # of these, the sign with the second-order term says otherwise


@dataclass(frozen=True)
class ContractionEvidence:
    """Lemma 2 at one rate: is the norm of I - step × covariance below 1?"""

    rate: float
    draws: int
    contracting: int  # draws whose norm is below 1
    as_in_proof: int  # draws whose norm is 1 - step × smallest eigenvalue
    largest: float  # norm of any draw


@dataclass(frozen=True)
class LimitEvidence:
    """Lemma 3 after some steps: how far networks are from the closed form.

    Distances are shares of the mean network's distance at its start; medians over the draws.
    """

    steps: int
    mean_network: float
    each_network: float  # the mean of the networks' own distances
    bound: float  # the norm to the power of the steps
    within_bound: int  # draws whose mean network is no farther than the bound
    draws: int


def check_signs(
    regressions: Sequence[Regression], *, rate: float, steps: int = 300
) -> SignEvidence:
    """Compare overfit at each step with the sign of training gradient × test gradient.

    The lemma drops what is of second order in the step size. Exactly, a test loss rises where
    2 × product < step × squared length of what the gradient changes in the predictions.
    """
    counts = np.zeros(4, int)
    for regression in regressions:
        descent = descend(regression, step=regression.step_of(rate), steps=steps)
        counts += _count_signs(descent)
    return SignEvidence(rate, *(int(count) for count in counts))


def _count_signs(descent: Descent) -> Array:
    change = np.diff(descent.test_loss)
    clear = np.abs(change) > ROUNDING * descent.test_loss[:, :-1]
    overfit = (change > 0)[clear]
    signs = (descent.products < 0)[clear]
    exact = (2 * descent.products < descent.step * descent.moves)[clear]
    return np.array(
        [clear.sum(), overfit.sum(), (signs != overfit).sum(), (exact != overfit).sum()]
    )


def check_contraction(regressions: Sequence[Regression], *, rate: float) -> ContractionEvidence:
    """Measure the norm of I - step × covariance, and compare it with the proof's formula."""
    pairs = [_norm(regression, rate) for regression in regressions]
    norms, formulas = np.array(pairs).T
    return ContractionEvidence(
        rate=rate,
        draws=len(pairs),
        contracting=int((norms < 1).sum()),
        as_in_proof=int(np.isclose(norms, formulas, rtol=0, atol=1e-9).sum()),
        largest=float(norms.max()),
    )


def _norm(regression: Regression, rate: float) -> tuple[float, float]:
    covariance, step = regression.covariances[0], regression.step_of(rate)
    norm = np.linalg.norm(np.eye(len(covariance)) - step * covariance, ord=2)
    return float(norm), float(1 - step * np.linalg.eigvalsh(covariance)[0])


def check_limit(
    regressions: Sequence[Regression], *, steps: int, rate: float = 1.0
) -> LimitEvidence:
    """Measure how near the closed form the mean network comes, and each network by itself."""
    found = np.array([_distances(regression, steps, rate) for regression in regressions])
    mean_network, each_network, bound = np.median(found, axis=0)
    return LimitEvidence(
        steps=steps,
        mean_network=float(mean_network),
        each_network=float(each_network),
        bound=float(bound),
        within_bound=int((found[:, 0] <= found[:, 2] * (1 + 1e-9) + ROUNDING).sum()),
        draws=len(found),
    )


def _distances(regression: Regression, steps: int, rate: float) -> tuple[float, float, float]:
    descent = descend(regression, step=regression.step_of(rate), steps=steps)
    apart = descent.weights[:, [0, -1]] - regression.closed_forms[:, None]
    unit, mean_network = np.linalg.norm(apart.mean(axis=0), axis=-1)
    each_network = np.linalg.norm(apart[:, 1], axis=-1).mean()
    norm, _ = _norm(regression, rate)
    return float(mean_network / unit), float(each_network / unit), norm**steps
