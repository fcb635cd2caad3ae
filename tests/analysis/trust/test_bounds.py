import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from accord.analysis.trust.bounds import highest_share, share_interval
from accord.errors import PredictionError


@settings(deadline=None, max_examples=60)
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
    with pytest.raises(PredictionError, match=r"0\.\.trials"):
        highest_share(hits, trials)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_impossible_confidence_is_refused(confidence):
    for bound in (highest_share, share_interval):
        with pytest.raises(PredictionError, match="between 0 and 1"):
            bound(1, 2, confidence=confidence)
