import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.isotonic import isotonic_regression

from accord.analysis._trust._calibration import (
    Temperature,
    calibration,
    calibration_of,
    fit_isotonic,
    fit_temperature,
)
from accord.errors import PredictionError
from accord.rules import Prediction

samples = st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=1, max_size=40)


def by_definition(confidence, right, bins):
    error, worst = 0.0, 0.0
    for number in range(bins + 1):
        inside = [i for i, value in enumerate(confidence) if int(value * bins + 1e-9) == number]
        if inside:
            gap = abs(np.mean(confidence[inside]) - np.mean(right[inside]))
            error += gap * len(inside) / len(confidence)
            worst = max(worst, gap)
    return error, worst


@given(samples, st.sampled_from([1, 5, 10, 15]))
def test_errors_follow_their_definition(drawn, bins):
    confidence = np.array([value / 30 for value, _ in drawn])
    right = np.array([right for _, right in drawn])
    found = calibration(confidence, right, bins=bins)
    expected = by_definition(confidence, right, bins)
    assert (found.error, found.largest_error) == pytest.approx(expected, abs=1e-9)
    assert found.counts.sum() == len(drawn)


def test_unanimous_samples_make_a_bin_of_their_own():
    found = calibration(np.array([1.0, 0.99]), np.array([True, False]), bins=10)
    assert found.counts[-2:].tolist() == [1, 1]
    assert found.accuracy[-2:].tolist() == [0, 1]
    assert np.isnan(found.accuracy[0])
    assert found.edges[-1] == 1


def test_shares_on_an_edge_belong_to_the_bin_that_begins_there():
    for bins in (3, 5, 10, 15):
        found = calibration(np.arange(bins) / bins, np.ones(bins, bool), bins=bins)
        assert found.counts.tolist() == [1] * bins + [0]


def test_perfect_confidence_has_no_error():
    assert calibration(np.ones(3), np.ones(3, bool)).error == 0


def test_samples_on_which_a_rule_abstains_are_left_out():
    prediction = Prediction(np.array([1, -1, 0]), np.array([0.8, 0.9, 0.6]))
    found = calibration_of(prediction, np.array([1, 1, 1]), bins=10)
    assert found.counts.sum() == 2
    assert found.error == pytest.approx((0.2 + 0.6) / 2)


@pytest.mark.parametrize(
    ("confidence", "right", "words"),
    [
        ([0.5], [True, False], r"got shapes \(1,\) and \(2,\)"),
        ([], [], "at least one labelled sample"),
        ([[0.5]], [[True]], "one confidence"),
        ([1.5], [True], r"must lie in 0\.\.1; got 1\.5.*percent"),
        ([-0.1], [True], r"must lie in 0\.\.1"),
        ([np.nan], [True], r"must lie in 0\.\.1"),
    ],
)
def test_what_is_no_confidence_is_refused(confidence, right, words):
    with pytest.raises(PredictionError, match=words):
        calibration(np.array(confidence), np.array(right, bool))


def test_no_bins_are_refused():
    with pytest.raises(PredictionError, match="at least 1; got 0"):
        calibration(np.ones(1), np.ones(1, bool), bins=0)


samples = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=60)


@given(samples)
def test_steps_are_scikit_learns(drawn):
    scores = np.array([score / 10 for score, _ in drawn])
    right = np.array([right for _, right in drawn])
    fitted = fit_isotonic(scores, right)
    distinct = np.unique(scores)
    means = [right[scores == score].mean() for score in distinct]
    counts = [(scores == score).sum() for score in distinct]
    expected = isotonic_regression(np.array(means), sample_weight=np.array(counts, float))
    np.testing.assert_allclose(fitted(distinct), expected, atol=1e-9)


@given(samples)
def test_steps_rise_and_keep_the_mean(drawn):
    scores = np.array([score for score, _ in drawn], float)
    right = np.array([right for _, right in drawn])
    fitted = fit_isotonic(scores, right)
    assert (np.diff(fitted.shares) > 0).all()
    assert (np.diff(fitted.scores) > 0).all()
    assert fitted(scores).mean() == pytest.approx(right.mean())


def test_scores_outside_what_was_seen_get_the_nearest_step():
    fitted = fit_isotonic(np.array([0.4, 0.6]), np.array([0.25, 0.75]))
    np.testing.assert_array_equal(fitted(np.array([0.0, 0.5, 1.0])), [0.25, 0.25, 0.75])


@pytest.mark.parametrize(("scores", "right"), [([], []), ([1.0], [1, 0]), ([[1.0]], [[1]])])
def test_isotonic_refuses_mismatched_shapes(scores, right):
    with pytest.raises(PredictionError, match="at least one labelled sample; got shapes"):
        fit_isotonic(np.array(scores), np.array(right))


@pytest.mark.parametrize(("scores", "right"), [([np.nan, 1], [1, 0]), ([0, 1], [np.nan, 0]),
                                               ([np.inf, 1], [1, 0])])  # fmt: skip
def test_what_is_no_number_is_refused(scores, right):
    with pytest.raises(PredictionError, match="must be finite"):
        fit_isotonic(np.array(scores), np.array(right))


def test_a_score_that_is_no_number_is_not_taken_for_a_high_one():
    fitted = fit_isotonic(np.array([0.4, 0.6]), np.array([0.25, 0.75]))
    with pytest.raises(PredictionError, match="a score is nan"):
        fitted(np.array([0.5, np.nan]))
    np.testing.assert_array_equal(fitted(np.array([-np.inf, np.inf])), [0.25, 0.75])


def draw(temperature, *, samples=4000, classes=4, voters=50, seed=0):
    """Shares of votes whose powers are the probabilities of their classes."""
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
def test_temperature_refuses_mismatched_shapes(shape, labels, voters, words):
    with pytest.raises(PredictionError, match=words):
        fit_temperature(np.zeros(shape), np.array(labels, int), voters=voters)


def test_labels_that_are_no_whole_numbers_are_refused():
    with pytest.raises(PredictionError, match="whole numbers; got float64"):
        fit_temperature(np.zeros((2, 3)), np.array([0.0, 1.0]), voters=5)


def test_shares_that_are_no_numbers_are_refused():
    with pytest.raises(PredictionError, match="some are not finite"):
        fit_temperature(np.array([[np.nan, 1.0]]), np.array([0]), voters=5)
