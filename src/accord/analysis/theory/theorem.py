"""Whether networks disagree more in the steps where all of them overfit."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis.theory.descent import Descent, descend, rises
from accord.analysis.theory.lemmas import ROUNDING
from accord.analysis.theory.regression import Array, Regression, draw_regression
from accord.errors import ChoiceError, suggest

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
