import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from accord.analysis._trust._confidence_intervals import (
    highest_share,
    mean_interval,
    share_interval,
)
from accord.errors import PredictionError


@settings(max_examples=60)
@given(st.integers(1, 3000), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.9975]))
def test_the_interval_is_scipys(trials, share, confidence):
    hits = round(share * trials)
    expected = binomtest(hits, trials).proportion_ci(confidence, method="exact")
    found = share_interval(hits, trials, confidence=confidence)
    assert found == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_one_sided_bounds_at_the_ends():
    assert highest_share(5, 5) == 1
    assert highest_share(0, 100, confidence=0.95) == pytest.approx(1 - 0.05 ** (1 / 100))


def test_many_trials_do_not_underflow():
    assert highest_share(0, 10**6) == pytest.approx(3e-6, rel=0.01)
    assert highest_share(5000, 10**5) == pytest.approx(0.0511, abs=2e-4)


@pytest.mark.parametrize(("hits", "trials"), [(-1, 5), (6, 5), (0, 0)])
def test_impossible_counts_are_refused(hits, trials):
    for bound in (highest_share, share_interval):
        with pytest.raises(PredictionError, match=rf"0\.\.trials.*; got {hits} of {trials}$"):
            bound(hits, trials)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_impossible_confidence_is_refused(confidence):
    for bound in (highest_share, share_interval):
        with pytest.raises(PredictionError, match="between 0 and 1"):
            bound(1, 2, confidence=confidence)


@given(st.integers(1, 200), st.floats(0, 1), st.sampled_from([0.8, 0.95]))
def test_of_plain_trials_the_interval_of_a_mean_is_that_of_a_share(trials, share, confidence):
    hits = round(share * trials)
    smoothed = (hits + 0.5) / (trials + 1)
    variance = smoothed * (1 - smoothed) / trials
    found = mean_interval(hits / trials, smoothed, variance, confidence=confidence)
    assert found == pytest.approx(share_interval(hits, trials, confidence=confidence))


def test_parts_of_trials_only_widen_the_interval():
    low, high = mean_interval(0.5, 0.5, 0.25 / 10.9, confidence=0.95)
    assert (low, high) == pytest.approx(share_interval(5, 10))
    low, high = mean_interval(0.55, 0.55, 0.55 * 0.45 / 10, confidence=0.95)
    assert low == pytest.approx(share_interval(5, 10)[0])
    assert high == pytest.approx(share_interval(6, 10)[1])


def test_many_trials_have_a_normal_interval_within_bounds():
    low, high = mean_interval(0.5, 0.5, 0.25 / 10**6, confidence=0.95)
    assert (low, high) == pytest.approx((0.5 - 0.00098, 0.5 + 0.00098), abs=1e-6)
    assert mean_interval(1.0, 0.9999, 1e-12, confidence=0.95)[1] == 1
    assert mean_interval(0.0, 0.0001, 1e-12, confidence=0.95)[0] == 0


def test_without_variance_there_is_no_doubt():
    assert mean_interval(0.3, 0.3, 0.0, confidence=0.95) == (0.3, 0.3)
    with pytest.raises(PredictionError, match="between 0 and 1"):
        mean_interval(0.3, 0.3, 0.0, confidence=95)
