import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.analysis._trust._calibration import calibration, calibration_of
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
