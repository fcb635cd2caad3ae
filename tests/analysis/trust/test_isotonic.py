import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from accord.analysis._trust._calibration import fit_isotonic
from accord.errors import PredictionError

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
def test_what_does_not_fit_together_is_refused(scores, right):
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
