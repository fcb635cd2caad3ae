"""Measure the lemmas and the theorem on gradient descent of linear regressions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.experiments.theory._linear_regression import (
    Array,
    Descent,
    Regression,
    descend,
    draw_regression,
    rises,
)

ROUNDING: Final = 1e-12  # a rise by a smaller share of the loss may come from rounding
FAINT: Final = 1e-18  # disagreement below this share of the test loss is mostly rounding
STEPS: Final = 1000


@dataclass(frozen=True)
class SignEvidence:
    """Evidence for lemma 1 at one rate."""

    rate: float  # step size × largest eigenvalue
    steps: int  # (network, step) pairs whose test loss changes by more than rounding
    overfit: int  # of these, the test loss rises
    missed: int  # of these, the sign of the product predicts the opposite
    missed_exactly: int  # of these, the sign with the second-order term predicts the opposite


@dataclass(frozen=True)
class ContractionEvidence:
    """Evidence for lemma 2 at one rate."""

    rate: float
    draws: int
    contracting: int  # draws whose norm is below 1
    as_in_proof: int  # draws whose norm is 1 - step × smallest eigenvalue
    largest: float  # norm of any draw


@dataclass(frozen=True)
class LimitEvidence:
    """Evidence for lemma 3 after a number of steps.

    Distances are relative to the mean network's initial distance, as medians over the draws.
    """

    steps: int
    mean_network: float
    each_network: float  # mean over the networks
    bound: float  # the norm to the power of the steps
    within_bound: int  # draws whose mean network is within the bound
    draws: int


def check_signs(
    regressions: Sequence[Regression], *, rate: float, steps: int = 300
) -> SignEvidence:
    """Compare overfitting at each step with the sign of the gradient product.

    The lemma drops the term of second order in the step size. With it, a test loss rises exactly
    where 2 × product < step × squared length of the change that the gradient makes to the
    predictions.
    """
    counts = np.zeros(4, int)
    for regression in regressions:
        descent = descend(regression, step=regression.step_size(rate), steps=steps)
        change = np.diff(descent.test_loss)
        clear = np.abs(change) > ROUNDING * descent.test_loss[:, :-1]
        overfit = (change > 0)[clear]
        signs = (descent.products < 0)[clear]
        exact = (2 * descent.products < descent.step * descent.moves)[clear]
        counts += [clear.sum(), overfit.sum(), (signs != overfit).sum(), (exact != overfit).sum()]
    return SignEvidence(rate, *(int(count) for count in counts))


def check_contraction(regressions: Sequence[Regression], *, rate: float) -> ContractionEvidence:
    """Compare the norm of I - step × covariance with the formula in the proof."""
    norms, formulas = np.array([_norm(regression, rate) for regression in regressions]).T
    return ContractionEvidence(
        rate=rate,
        draws=len(norms),
        contracting=int((norms < 1).sum()),
        as_in_proof=int(np.isclose(norms, formulas, rtol=0, atol=1e-9).sum()),
        largest=float(norms.max()),
    )


def _norm(regression: Regression, rate: float) -> tuple[float, float]:
    covariance, step = regression.covariances[0], regression.step_size(rate)
    norm = np.linalg.norm(np.eye(len(covariance)) - step * covariance, ord=2)
    return float(norm), float(1 - step * np.linalg.eigvalsh(covariance)[0])


def check_limit(
    regressions: Sequence[Regression], *, steps: int, rate: float = 1.0
) -> LimitEvidence:
    """Measure the distance of the networks and of their mean from the closed form."""
    distances = np.array([_distances(regression, steps, rate) for regression in regressions])
    mean_network, each_network, bound = np.median(distances, axis=0)
    return LimitEvidence(
        steps=steps,
        mean_network=float(mean_network),
        each_network=float(each_network),
        bound=float(bound),
        within_bound=int((distances[:, 0] <= distances[:, 2] * (1 + 1e-9) + ROUNDING).sum()),
        draws=len(distances),
    )


def _distances(regression: Regression, steps: int, rate: float) -> tuple[float, float, float]:
    descent = descend(regression, step=regression.step_size(rate), steps=steps)
    apart = descent.weights[:, [0, -1]] - regression.closed_forms[:, None]
    unit, mean_network = np.linalg.norm(apart.mean(axis=0), axis=-1)
    each_network = np.linalg.norm(apart[:, 1], axis=-1).mean()
    norm, _ = _norm(regression, rate)
    return float(mean_network / unit), float(each_network / unit), norm**steps


@dataclass(frozen=True)
class RegressionSetting:
    own_inputs: bool = False
    own_noise: bool = False
    rate: float = 0.1  # step size × largest eigenvalue; below 2, training contracts
    batch: float = 1.0  # share of the training set in each step
    balanced: bool = False  # initial weights lie symmetrically around the closed form


SETTINGS: Final = {
    "shared": RegressionSetting(),  # one training set, as in the theorem
    "large-step": RegressionSetting(rate=1.9),
    "diverging": RegressionSetting(rate=2.05),
    "own-batches": RegressionSetting(batch=0.5),
    "own-noise": RegressionSetting(own_noise=True),  # shared inputs, independent label noise
    "own-sets": RegressionSetting(own_inputs=True),
    "balanced": RegressionSetting(balanced=True),
}


@dataclass(frozen=True)
class SettingOutcome:
    """Counts for a setting over all draws."""

    setting: str
    draws: int
    steps: int
    overfit: int  # steps in which every network's test loss rises
    draws_with_overfit: int
    training_fell: int  # of the overfit steps, those in which no training loss rises
    rose: int  # of the overfit steps, those in which disagreement rises
    # Medians over the overfit steps; None if there are none.
    neglected: float | None  # the term that the proof neglects, relative to the term it keeps
    disagreement_share: float | None  # of the rise of the mean test loss

    @property
    def share(self) -> float | None:
        """Fraction of overfit steps in which disagreement rises."""
        return self.rose / self.overfit if self.overfit else None


def draw_setting(setting: RegressionSetting, *, seed: int) -> Regression:
    regression = draw_regression(
        seed=seed, own_inputs=setting.own_inputs, own_noise=setting.own_noise
    )
    return balance(regression) if setting.balanced else regression


def balance(regression: Regression) -> Regression:
    """Place the initial weights symmetrically around the closed form.

    The mean network then starts and stays at the closed form, and the term that the proof neglects
    is zero. The networks lie along the direction in which a step along the training gradient
    separates their predictions most, far enough out for all to overfit. If training and test
    inputs are so similar that no direction separates them, none overfits.
    """
    training = regression.covariances[0]
    testing = regression.test_inputs.T @ regression.test_inputs
    values, vectors = np.linalg.eigh(training @ testing + testing @ training)
    direction, centre = vectors[:, 0], regression.closed_forms[0]
    pull = abs(
        direction @ training @ (testing @ centre - regression.test_values @ regression.test_inputs)
    )
    sides = np.resize([1.0, -1.0], len(regression.starts))
    distance = 4 * pull / abs(values[0])
    offsets = sides * distance * np.repeat(1 + np.arange(len(sides) // 2 + 1), 2)[: len(sides)]
    return replace(regression, starts=centre + offsets[:, None] * direction)


def all_overfit(descent: Descent) -> NDArray[np.bool_]:
    """Find the steps in which the test loss of every network rises.

    A rise within rounding does not count, nor does a step before which the networks agree up to
    rounding.
    """
    rising = rises(descent.test_loss, least=ROUNDING).all(axis=0)
    apart = descent.disagreement[:-1] > FAINT * descent.test_loss[:, :-1].mean(axis=0)
    return np.asarray(rising & apart)


def first_order(descent: Descent) -> tuple[Array, Array]:
    """Compute the first-order terms `joint` and `separate` of the change of disagreement.

    For small steps, disagreement changes by step size × (joint - separate). `separate` is twice
    the mean product of a network's training and test gradients, negative where all overfit.
    `joint` is twice the product of the mean gradients, which the theorem's proof takes for zero.
    """
    means = descent.gradients.mean(axis=0) * descent.test_gradients.mean(axis=0)
    return np.asarray(2 * means.sum(axis=-1)), np.asarray(2 * descent.products.mean(axis=0))


def count_overfitting(
    name: str, *, draws: int, seed: int = 0, steps: int = STEPS
) -> SettingOutcome:
    found = [_measure(SETTINGS[name], draw, steps) for draw in range(seed, seed + draws)]
    fell, rose, neglected, shares = np.concatenate(found, axis=1)
    return SettingOutcome(
        setting=name,
        draws=draws,
        steps=draws * steps,
        overfit=len(rose),
        draws_with_overfit=sum(one.shape[1] > 0 for one in found),
        training_fell=int(fell.sum()),
        rose=int(rose.sum()),
        neglected=float(np.median(neglected)) if len(rose) else None,
        disagreement_share=float(np.median(shares)) if len(rose) else None,
    )


def descend_setting(setting: RegressionSetting, *, seed: int, steps: int = STEPS) -> Descent:
    regression = draw_setting(setting, seed=seed)
    step = regression.step_size(setting.rate)
    return descend(regression, step=step, steps=steps, batch=setting.batch, seed=seed)


def _measure(setting: RegressionSetting, seed: int, steps: int) -> Array:  # (4, overfit step)
    descent = descend_setting(setting, seed=seed, steps=steps)
    overfit = all_overfit(descent)
    change = np.diff(descent.disagreement)[overfit]
    joint, separate = (term[overfit] for term in first_order(descent))
    training_rises = rises(descent.train_loss, least=ROUNDING)[:, overfit].any(axis=0)
    return np.array(
        [
            np.logical_not(training_rises),
            change > 0,
            np.abs(joint / separate),
            change / np.diff(descent.test_loss.mean(axis=0))[overfit],
        ],
        np.float64,
    )
