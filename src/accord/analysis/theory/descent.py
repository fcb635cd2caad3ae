"""Gradient descent of several linear regressions, and what it measures at every step."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from accord.analysis.theory.regression import Array, Regression
from accord.errors import ChoiceError


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
