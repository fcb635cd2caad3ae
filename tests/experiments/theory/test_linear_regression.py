"""Gradient descent on linear regressions, compared with slow twins."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.experiments.theory._linear_regression import (
    Regression,
    descend,
    disagreement_of,
    draw_regression,
    rises,
)

quickly = settings(max_examples=15)
seeds = st.integers(0, 10_000)


def by_definition(errors):
    """DisAg as the paper states it, over all pairs of networks; errors (network, sample)."""
    networks = len(errors)
    pairs = [np.sum((one - other) ** 2) for one in errors for other in errors]
    return sum(pairs) / (2 * networks**2)


def descend_slowly(regression, step, steps):
    """One network at a time, one sample at a time."""
    ends = []
    for inputs, values, weights in zip(
        regression.inputs, regression.values, regression.starts, strict=True
    ):
        for _ in range(steps):
            gradient = sum((x @ weights - y) * x for x, y in zip(inputs, values, strict=True))
            weights = weights - step * gradient
        ends.append(weights)
    return np.array(ends)


@quickly
@given(seeds)
def test_disagreement_is_half_the_mean_squared_distance_of_all_pairs(seed):
    errors = np.random.default_rng(seed).normal(size=(4, 3, 5))  # (network, time, sample)
    expected = [by_definition(errors[:, time]) for time in range(3)]
    np.testing.assert_allclose(disagreement_of(errors), expected)


@quickly
@given(seeds, st.booleans(), st.booleans())
def test_networks_descend_independently(seed, own_inputs, own_noise):
    regression = draw_regression(seed=seed, networks=3, own_inputs=own_inputs, own_noise=own_noise)
    step = regression.step_size(0.5)
    descent = descend(regression, step=step, steps=4)
    assert descent.weights.shape[:2] == (3, 5)
    assert descent.gradients.shape[:2] == (3, 4)
    np.testing.assert_array_equal(descent.weights[:, 0], regression.starts)
    np.testing.assert_allclose(descent.weights[:, -1], descend_slowly(regression, step, 4))


def test_quantities_of_a_descent_match_their_definitions():
    regression = draw_regression(seed=3, networks=3, own_inputs=True)
    descent = descend(regression, step=regression.step_size(0.5), steps=3)
    network, time = 1, 2
    weights = descent.weights[network, time]
    errors = regression.test_inputs @ weights - regression.test_values
    training = regression.inputs[network] @ weights - regression.values[network]
    gradient, test_gradient = training @ regression.inputs[network], errors @ regression.test_inputs
    np.testing.assert_allclose(descent.test_errors[network, time], errors)
    assert descent.test_loss[network, time] == pytest.approx(errors @ errors)
    assert descent.train_loss[network, time] == pytest.approx(training @ training)
    np.testing.assert_allclose(descent.gradients[network, time], gradient)
    np.testing.assert_allclose(descent.test_gradients[network, time], test_gradient)
    assert descent.products[network, time] == pytest.approx(gradient @ test_gradient)
    moved = regression.test_inputs @ gradient
    assert descent.moves[network, time] == pytest.approx(moved @ moved)
    mean = regression.test_inputs @ descent.weights[:, time].mean(axis=0) - regression.test_values
    assert descent.mean_network_loss[time] == pytest.approx(mean @ mean)


@quickly
@given(seeds)
def test_disagreement_is_mean_loss_minus_loss_of_the_mean_network(seed):
    regression = draw_regression(seed=seed, own_inputs=True)
    descent = descend(regression, step=regression.step_size(0.1), steps=20)
    gap = descent.test_loss.mean(axis=0) - descent.mean_network_loss
    np.testing.assert_allclose(descent.disagreement, gap, rtol=1e-9)


def test_training_values_are_noisy_and_test_values_are_not():
    regression = draw_regression(seed=5)
    lines = [
        np.linalg.lstsq(inputs, values, rcond=None)[1]
        for inputs, values in (
            (regression.test_inputs, regression.test_values),
            (regression.inputs[0], regression.values[0]),
        )
    ]
    assert lines[0] < 1e-20
    assert lines[1] > 1e-3


@pytest.mark.parametrize(
    ("own", "inputs_differ", "values_differ"),
    [({}, False, False), ({"own_noise": True}, False, True), ({"own_inputs": True}, True, True)],
)
def test_networks_share_inputs_and_values_by_default(own, inputs_differ, values_differ):
    regression = draw_regression(seed=0, **own)
    assert (regression.inputs[0] != regression.inputs[1]).any() == inputs_differ
    assert (regression.values[0] != regression.values[1]).any() == values_differ
    assert (regression.starts[0] != regression.starts[1]).any()


def test_own_inputs_imply_own_noise():
    regression = draw_regression(seed=0, own_inputs=True)
    weights = np.linalg.lstsq(regression.test_inputs, regression.test_values, rcond=None)[0]
    noise = regression.values - regression.inputs @ weights
    assert np.abs(noise[0] - noise[1]).max() > 0.01


@quickly
@given(seeds)
def test_regressions_have_the_documented_shape_and_full_rank(seed):
    regression = draw_regression(seed=seed, networks=2)
    _, samples, features = regression.inputs.shape
    assert 5 <= features <= 20
    assert int(1.2 * features) <= samples <= 3 * features
    assert regression.starts.shape == (2, features)
    assert np.linalg.matrix_rank(regression.covariances[0]) == features
    gradient = (regression.inputs[0] @ regression.closed_forms[0] - regression.values[0]) @ (
        regression.inputs[0]
    )
    np.testing.assert_allclose(gradient, 0, atol=1e-9)


def test_draws_follow_the_seed():
    one, same, other = (draw_regression(seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.values, same.values)
    assert one.values.shape != other.values.shape or (one.values != other.values).any()


def test_step_size_uses_the_largest_eigenvalue_of_any_network():
    inputs = np.array([[[1.0, 0], [0, 1]], [[2.0, 0], [0, 1]]])
    regression = Regression(inputs, np.zeros((2, 2)), np.eye(2), np.zeros(2), np.zeros((2, 2)))
    assert regression.step_size(0.5) == pytest.approx(0.5 / 4)


def test_batches_differ_between_networks_and_are_unbiased():
    regression = draw_regression(seed=0)
    regression = replace(regression, starts=np.repeat(regression.starts[:1], 10, axis=0))
    step = regression.step_size(1e-9)  # the weights stay: every step sees the same gradient
    whole = descend(regression, step=step, steps=1).gradients[0, 0]
    halves = descend(regression, step=step, steps=2000, batch=0.5, seed=1).gradients
    assert (halves[0, 0] != halves[1, 0]).any()
    np.testing.assert_allclose(halves.mean(axis=(0, 1)), whole, atol=0.05 * np.abs(whole).max())
    again = descend(regression, step=step, steps=1, batch=0.5, seed=1).gradients
    np.testing.assert_array_equal(again[:, 0], halves[:, 0])


def test_rises_exceed_the_least_share():
    values = np.array([[100.0, 101.0, 103.0, 102.0]])
    assert rises(values, least=0.015).tolist() == [[False, True, False]]
    assert not rises(np.zeros(2), least=0.015).any()
