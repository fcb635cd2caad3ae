import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from accord.analysis._trust._calibration import Temperature, calibration, fit_temperature
from accord.errors import PredictionError


def draw(temperature, *, samples=4000, classes=4, voters=50, seed=0):
    """Shares of votes whose classes are right as often as their powers say."""
    generator = np.random.default_rng(seed)
    votes = generator.multinomial(voters, generator.dirichlet(np.ones(classes), samples))
    shares = votes / voters
    chances = Temperature(temperature, voters)(shares)
    labels = (chances.cumsum(axis=1) > generator.random((samples, 1))).argmax(axis=1)
    return shares, labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_temperature_that_made_the_labels_is_found(temperature):
    shares, labels = draw(temperature)
    assert fit_temperature(shares, labels, voters=50).value == pytest.approx(temperature, rel=0.1)


def test_no_other_temperature_makes_the_labels_likelier():
    shares, labels = draw(1.7, samples=300, seed=1)

    def loss(logarithm):
        chances = Temperature(float(np.exp(logarithm)), 50)(shares)
        return -np.log(chances[np.arange(len(labels)), labels]).mean()

    expected = minimize_scalar(loss, bounds=(-4, 4), method="bounded")
    found = fit_temperature(shares, labels, voters=50)
    assert loss(np.log(found.value)) <= expected.fun + 1e-9


def test_probabilities_add_up_and_keep_the_order_of_classes():
    shares, _ = draw(1.0, samples=50)
    for value in (0.01, 0.3, 1.0, 7.0):
        found = Temperature(value, 50)(shares)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        np.testing.assert_array_equal(found.argmax(axis=1), shares.argmax(axis=1))


def test_calibrated_shares_have_less_error_on_other_samples():
    shares, labels = draw(2.5)
    fitted = fit_temperature(shares[::2], labels[::2], voters=50)
    before, after = shares[1::2], fitted(shares[1::2])
    right = before.argmax(axis=1) == labels[1::2]
    error = [calibration(one.max(axis=1), right).error for one in (before, after)]
    assert error[1] < 0.5 * error[0]


@pytest.mark.parametrize(
    ("shape", "labels", "voters", "words"),
    [
        ((3,), [0], 1, "got shapes"),
        ((2, 3), [0], 1, "got shapes"),
        ((0, 3), [], 1, "at least one"),
        ((1, 3), [3], 1, r"0\.\.2 for 3 classes; got 3\.\.3"),
        ((1, 3), [-1], 1, r"0\.\.2 for 3 classes"),
        ((1, 3), [1], 0, "voters, networks × epochs, must be at least 1; got 0"),
    ],
)
def test_what_does_not_fit_together_is_refused(shape, labels, voters, words):
    with pytest.raises(PredictionError, match=words):
        fit_temperature(np.zeros(shape), np.array(labels, int), voters=voters)


def test_labels_that_are_no_whole_numbers_are_refused():
    with pytest.raises(PredictionError, match="whole numbers; got float64"):
        fit_temperature(np.zeros((2, 3)), np.array([0.0, 1.0]), voters=5)


def test_shares_that_are_no_numbers_are_refused():
    with pytest.raises(PredictionError, match="some are not finite"):
        fit_temperature(np.array([[np.nan, 1.0]]), np.array([0]), voters=5)
