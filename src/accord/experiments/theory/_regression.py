"""Gradient descent of several linear regressions, and what it measures at every step."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError

Array = NDArray[np.float64]

NETWORKS: Final = 10  # the paper's Q
TEST_SAMPLES: Final = 100
LEAST_SPREAD: Final = 0.3  # of the last feature; the first has 1: the steps differ in speed


@dataclass(frozen=True)
class Regression:
    """What each network trains on, where it starts, and what all are tested on."""

    inputs: Array  # (network, sample, feature)
    values: Array  # (network, sample)
    test_inputs: Array  # (sample, feature)
    test_values: Array  # (sample,)
    starts: Array  # (network, feature)

    @property
    def covariances(self) -> Array:
        """The paper's sigma of each network's training inputs (network, feature, feature)."""
        return np.asarray(self.inputs.swapaxes(1, 2) @ self.inputs)

    @property
    def closed_forms(self) -> Array:
        """The weights with the least training loss (network, feature)."""
        products = np.einsum("nsf,ns->nf", self.inputs, self.values)
        return np.asarray(np.linalg.solve(self.covariances, products[..., None])[..., 0])

    def step_of(self, rate: float) -> float:
        """Return the step size that is `rate` over the largest eigenvalue of any covariance."""
        return float(rate / np.linalg.eigvalsh(self.covariances).max())


def draw_regression(
    *, seed: int, networks: int = NETWORKS, own_inputs: bool = False, own_noise: bool = False
) -> Regression:
    """Draw a problem whose training values bear noise and whose test values do not.

    The seed also decides on 5 to 20 features, 1.2 to 3 training samples per feature, the size of
    the noise and that of the random starts. All networks share one training set, unless they have
    their own inputs (then their own noise too) or their own noise on shared inputs.

    >>> shared = draw_regression(seed=0, networks=3)
    >>> bool((shared.values == shared.values[0]).all())
    True

    Raises:
        ChoiceError: there are fewer than two networks, which cannot disagree.
    """
    if networks < 2:
        raise ChoiceError(f"networks must be at least 2, for them to disagree; got {networks}")
    random = np.random.default_rng(seed)
    features = int(random.integers(5, 21))
    samples = int(features * random.uniform(1.2, 3))
    start, noise = np.exp(random.uniform([-1, -1.5], [1, 1]))
    spreads = np.linspace(1, LEAST_SPREAD, features)
    weights = random.normal(size=features) / np.sqrt(features)
    sets = networks if own_inputs else 1
    noises = networks if own_inputs or own_noise else 1
    inputs = spreads * random.normal(size=(sets, samples, features))
    values = inputs @ weights + noise * random.normal(size=(noises, samples))
    test_inputs = spreads * random.normal(size=(TEST_SAMPLES, features))
    return Regression(
        inputs=np.broadcast_to(inputs, (networks, samples, features)),
        values=np.broadcast_to(values, (networks, samples)),
        test_inputs=test_inputs,
        test_values=test_inputs @ weights,
        starts=start * random.normal(size=(networks, features)) / np.sqrt(features),
    )


@dataclass(frozen=True)
class Descent:
    """Where every step of every network began, which gradient it took, and where it led."""

    regression: Regression
    step: float  # the paper's mu
    weights: Array  # (network, moment, feature), one moment more than steps
    gradients: Array  # (network, step, feature)

    @cached_property
    def test_errors(self) -> Array:
        """The paper's e(i, t): predicted minus true values (network, moment, sample)."""
        return np.asarray(
            self.weights @ self.regression.test_inputs.T - self.regression.test_values
        )

    @cached_property
    def test_loss(self) -> Array:
        """The squared length of the test errors (network, moment)."""
        return np.asarray(np.square(self.test_errors).sum(axis=-1))

    @cached_property
    def train_loss(self) -> Array:
        """The squared length of the training errors (network, moment)."""
        given = self.regression
        errors = self.weights @ given.inputs.swapaxes(1, 2) - given.values[:, None]
        return np.asarray(np.square(errors).sum(axis=-1))

    @cached_property
    def mean_network_loss(self) -> Array:
        """The test loss of the network whose weights are the mean of all (moment,)."""
        return np.asarray(np.square(self.test_errors.mean(axis=0)).sum(axis=-1))

    @cached_property
    def disagreement(self) -> Array:
        """The paper's DisAg (moment,).

        It is the mean test loss less the loss of the mean network.
        """
        return disagreement_of(self.test_errors)

    @cached_property
    def test_gradients(self) -> Array:
        """The gradient that the test set would have given (network, step, feature)."""
        return np.asarray(self.test_errors[:, :-1] @ self.regression.test_inputs)

    @cached_property
    def products(self) -> Array:
        """The gradient taken times the test set's gradient (network, step)."""
        return np.asarray(np.einsum("nsf,nsf->ns", self.gradients, self.test_gradients))

    @cached_property
    def moves(self) -> Array:
        """The squared length of what a unit step changes in the test errors (network, step)."""
        return np.asarray(np.square(self.gradients @ self.regression.test_inputs.T).sum(axis=-1))


def disagreement_of(errors: Array) -> Array:
    """Return half the mean squared distance between two networks' errors (...,).

    Takes errors (network, ..., sample). Summed over samples, this is their variance over the
    networks, which needs no pairs:

    >>> disagreement_of(np.array([[1.0, 0.0], [3.0, 0.0]]))
    array(1.)
    """
    return np.asarray(errors.var(axis=0).sum(axis=-1))


def descend(
    regression: Regression, *, step: float, steps: int, batch: float = 1.0, seed: int = 0
) -> Descent:
    """Let every network take so many steps from its start, each down its own training gradient.

    With `batch` below 1, each step of each network takes every training sample with that chance
    and scales the gradient up in turn; `seed` decides on them.

    Raises:
        ChoiceError: the step or the batch is not positive, the batch is above 1, or no steps.
    """
    _check_descent(step, steps, batch)
    random = np.random.default_rng(seed)
    weights, gradients = [regression.starts], []
    for _ in range(steps):
        gradients.append(_gradient(regression, weights[-1], batch, random))
        weights.append(weights[-1] - step * gradients[-1])
    return Descent(regression, step, np.stack(weights, axis=1), np.stack(gradients, axis=1))


def _gradient(
    regression: Regression, weights: Array, batch: float, random: np.random.Generator
) -> Array:  # (network, feature)
    errors = (weights[:, None] @ regression.inputs.swapaxes(1, 2))[:, 0] - regression.values
    if batch < 1:
        errors = errors * (random.random(errors.shape) < batch) / batch
    return np.asarray((errors[:, None] @ regression.inputs)[:, 0])


def rises(values: Array, *, least: float) -> NDArray[np.bool_]:
    """Tell which steps raise a quantity by more than that share of it (..., step).

    >>> rises(np.array([1.0, 2.0, 2.0, 1.0]), least=1e-12)
    array([ True, False, False])
    """
    return np.asarray(np.diff(values) > least * values[..., :-1])


def _check_descent(step: float, steps: int, batch: float) -> None:
    if not step > 0 or steps < 1 or not 0 < batch <= 1:
        raise ChoiceError(
            "gradient descent needs a positive step, at least one of them, and a batch in 0..1; "
            f"got step={step}, steps={steps}, batch={batch}"
        )
