"""Gradient descent on linear regressions."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NETWORKS: Final = 10  # the paper's Q
TEST_SAMPLES: Final = 100
LEAST_SPREAD: Final = 0.3  # of the last feature, 1 of the first: convergence rates differ


@dataclass(frozen=True)
class Regression:
    """Training data and initial weights of all networks with shared test data."""

    inputs: Array  # (network, sample, feature)
    values: Array  # (network, sample)
    test_inputs: Array  # (sample, feature)
    test_values: Array  # (sample,)
    starts: Array  # (network, feature)

    @property
    def covariances(self) -> Array:
        """Covariance sigma of the training inputs, of shape (network, feature, feature)."""
        return np.asarray(self.inputs.swapaxes(1, 2) @ self.inputs)

    @property
    def closed_forms(self) -> Array:
        """Weights that minimise the training loss, of shape (network, feature)."""
        products = np.einsum("nsf,ns->nf", self.inputs, self.values)
        return np.asarray(np.linalg.solve(self.covariances, products[..., None])[..., 0])

    def step_size(self, rate: float) -> float:
        """Compute the step size as `rate` over the largest eigenvalue of any covariance."""
        return float(rate / np.linalg.eigvalsh(self.covariances).max())


def draw_regression(
    *, seed: int, networks: int = NETWORKS, own_inputs: bool = False, own_noise: bool = False
) -> Regression:
    """Draw a problem with noisy training values and noiseless test values.

    The seed also determines the number of features (5 to 20), the training samples per feature
    (1.2 to 3), and the scale of the noise and of the initial weights. All networks share one
    training set, unless each has its own inputs (and noise), or its own noise on shared inputs.

    >>> shared = draw_regression(seed=0, networks=3)
    >>> bool((shared.values == shared.values[0]).all())
    True
    """
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
    """Weights and gradients of every network at every step."""

    regression: Regression
    step: float  # the paper's mu
    weights: Array  # (network, time, feature), one time more than steps
    gradients: Array  # (network, step, feature)

    @cached_property
    def test_errors(self) -> Array:
        """Predicted minus true test values e(i, t), of shape (network, time, sample)."""
        return np.asarray(
            self.weights @ self.regression.test_inputs.T - self.regression.test_values
        )

    @cached_property
    def test_loss(self) -> Array:
        """Squared norm of the test errors, of shape (network, time)."""
        return np.asarray(np.square(self.test_errors).sum(axis=-1))

    @cached_property
    def train_loss(self) -> Array:
        """Squared norm of the training errors, of shape (network, time)."""
        regression = self.regression
        errors = self.weights @ regression.inputs.swapaxes(1, 2) - regression.values[:, None]
        return np.asarray(np.square(errors).sum(axis=-1))

    @cached_property
    def mean_network_loss(self) -> Array:
        """Test loss of the network with the mean weights, of shape (time,)."""
        return np.asarray(np.square(self.test_errors.mean(axis=0)).sum(axis=-1))

    @cached_property
    def disagreement(self) -> Array:
        """Mean test loss minus the loss of the mean network (DisAg), of shape (time,)."""
        return disagreement_of(self.test_errors)

    @cached_property
    def test_gradients(self) -> Array:
        """Gradient of the test loss, of shape (network, step, feature)."""
        return np.asarray(self.test_errors[:, :-1] @ self.regression.test_inputs)

    @cached_property
    def products(self) -> Array:
        """Product of training and test gradients, of shape (network, step)."""
        return np.asarray(np.einsum("nsf,nsf->ns", self.gradients, self.test_gradients))

    @cached_property
    def moves(self) -> Array:
        """Squared change of the test errors by a unit step, of shape (network, step)."""
        return np.asarray(np.square(self.gradients @ self.regression.test_inputs.T).sum(axis=-1))


def disagreement_of(errors: Array) -> Array:
    """Compute half the mean squared distance between the errors of two networks.

    Takes errors (network, ..., sample). Summed over samples, this is their variance over the
    networks, which needs no pairs:

    >>> disagreement_of(np.array([[1.0, 0.0], [3.0, 0.0]]))
    array(1.)
    """
    return np.asarray(errors.var(axis=0).sum(axis=-1))


def descend(
    regression: Regression, *, step: float, steps: int, batch: float = 1.0, seed: int = 0
) -> Descent:
    """Run gradient descent for every network on its training set.

    With `batch` below 1, each step of each network includes every training sample with that
    probability, drawn from `seed`, and scales the gradient by its inverse.
    """
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
    """Find the steps that raise a quantity by more than the fraction `least`.

    >>> rises(np.array([1.0, 2.0, 2.0, 1.0]), least=1e-12)
    array([ True, False, False])
    """
    return np.asarray(np.diff(values) > least * values[..., :-1])
