"""Whether networks disagree more in the steps where all of them overfit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, suggest
from accord.experiments.theory._regression import (
    Array,
    Descent,
    Regression,
    descend,
    draw_regression,
    rises,
)

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


STEPS: Final = 1000
# Below this share of the test loss, disagreement is made of rounding more than of networks.
FAINT: Final = 1e-18


@dataclass(frozen=True)
class Setting:
    """What the networks share, how they step, and where they start."""

    says: str
    own_inputs: bool = False
    own_noise: bool = False
    rate: float = 0.1  # step size × largest eigenvalue; below 2, training contracts
    batch: float = 1.0  # share of the training set in each step
    balanced: bool = False  # starts as many on each side of the closed form


SETTINGS: Final = {
    "shared": Setting("one training set, as the theorem has it"),
    "large-step": Setting("one training set; a step 19 times as large", rate=1.9),
    "diverging": Setting("one training set; a step so large that training fails", rate=2.05),
    "own-batches": Setting("one training set; each step on half of it, of one's own", batch=0.5),
    "own-noise": Setting("the same inputs; noise of one's own on the values", own_noise=True),
    "own-sets": Setting("a training set of one's own", own_inputs=True),
    "balanced": Setting("one training set; starts chosen to balance", balanced=True),
}


@dataclass(frozen=True)
class Outcome:
    """What came of one setting, over all draws."""

    setting: str
    draws: int
    steps: int
    overfit: int  # steps in which every network's test loss rises
    draws_with_overfit: int
    training_fell: int  # of the overfit steps, those in which no training loss rises
    rose: int  # of the overfit steps, those in which the networks come to disagree more
    # Medians over the overfit steps; None without any.
    neglected: float | None  # what the proof neglects, as a share of what it keeps
    disagreement_share: float | None  # of the rise of the mean test loss

    @property
    def share(self) -> float | None:
        """The share of the overfit steps in which disagreement rises."""
        return self.rose / self.overfit if self.overfit else None


def draw_setting(setting: Setting, *, seed: int) -> Regression:
    """Draw the regression problem of a setting, with its starts."""
    regression = draw_regression(
        seed=seed, own_inputs=setting.own_inputs, own_noise=setting.own_noise
    )
    return balance(regression) if setting.balanced else regression


def balance(regression: Regression) -> Regression:
    """Move the starts to both sides of the closed form, as the theorem's proof would have them.

    The mean network then starts, and stays, at the closed form, and what the proof neglects is
    zero. The networks lie along the one direction in which a step along the training gradient
    parts their predictions most, far enough out for all to overfit. Where training and test
    inputs are so alike that no direction parts them, none overfits.
    """
    training = regression.covariances[0]
    testing = regression.test_inputs.T @ regression.test_inputs
    values, vectors = np.linalg.eigh(training @ testing + testing @ training)
    direction, middle = vectors[:, 0], regression.closed_forms[0]
    pull = abs(
        direction @ training @ (testing @ middle - regression.test_values @ regression.test_inputs)
    )
    sides = np.resize([1.0, -1.0], len(regression.starts))
    far = 4 * pull / abs(values[0])
    outwards = sides * far * np.repeat(1 + np.arange(len(sides) // 2 + 1), 2)[: len(sides)]
    return replace(regression, starts=middle + outwards[:, None] * direction)


def everyone_overfits(descent: Descent) -> NDArray[np.bool_]:
    """Tell in which steps every network's test loss rises (step,).

    A rise that may be rounding does not count, nor does a step before which the networks agree
    up to rounding.
    """
    rising = rises(descent.test_loss, least=ROUNDING).all(axis=0)
    apart = descent.disagreement[:-1] > FAINT * descent.test_loss[:, :-1].mean(axis=0)
    return np.asarray(rising & apart)


def first_order(descent: Descent) -> tuple[Array, Array]:
    """Return the two terms that disagreement's change is made of, `together` and `alone` (step,).

    For small steps it changes by step size × (together - alone). `alone` is twice the mean
    product of a network's training and test gradients, negative where all overfit; `together` is
    twice the product of the mean gradients, which the theorem's proof takes for zero.
    """
    means = descent.gradients.mean(axis=0) * descent.test_gradients.mean(axis=0)
    return np.asarray(2 * means.sum(axis=-1)), np.asarray(2 * descent.products.mean(axis=0))


def count_overfit(name: str, *, draws: int, seed: int = 0, steps: int = STEPS) -> Outcome:
    """Count, over seeded draws, the steps in which every network overfits, and what they bring.

    Raises:
        ChoiceError: no setting has that name; `SETTINGS` lists them.
    """
    if name not in SETTINGS:
        raise ChoiceError(f"no setting is called {name!r}. {suggest(name, SETTINGS)}")
    if draws < 1:
        raise ChoiceError(f"draws must be at least 1; got {draws}")
    found = [_measure(SETTINGS[name], draw, steps) for draw in range(seed, seed + draws)]
    fell, rose, neglected, shares = np.concatenate(found, axis=1)
    return Outcome(
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


def descend_setting(setting: Setting, *, seed: int, steps: int = STEPS) -> Descent:
    """Draw a setting's problem and let its networks descend."""
    regression = draw_setting(setting, seed=seed)
    step = regression.step_of(setting.rate)
    return descend(regression, step=step, steps=steps, batch=setting.batch, seed=seed)


def _measure(setting: Setting, seed: int, steps: int) -> Array:  # (4, overfit step)
    descent = descend_setting(setting, seed=seed, steps=steps)
    where = everyone_overfits(descent)
    risen = np.diff(descent.disagreement)[where]
    together, alone = (term[where] for term in first_order(descent))
    spoilt = rises(descent.train_loss, least=ROUNDING)[:, where].any(axis=0)
    return np.array(
        [
            np.logical_not(spoilt),
            risen > 0,
            np.abs(together / alone),
            risen / np.diff(descent.test_loss.mean(axis=0))[where],
        ],
        np.float64,
    )
