import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.analysis._trust._intervals import highest_share
from accord.analysis._trust._trust import abstain_below, choose_threshold, risk_coverage
from accord.errors import PredictionError
from accord.rules import Prediction

samples = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=40)


@given(samples)
def test_risk_and_coverage_follow_their_definition(drawn):
    scores = np.array([score for score, _ in drawn], float)
    right = np.array([right for _, right in drawn])
    found = risk_coverage(scores, right)
    assert found.thresholds.tolist() == sorted(set(scores.tolist()), reverse=True)
    for threshold, coverage, risk in zip(found.thresholds, found.coverage, found.risk, strict=True):
        answered = scores >= threshold
        assert coverage == pytest.approx(answered.mean())
        assert risk == pytest.approx(1 - right[answered].mean())
    own = [1 - right[scores >= score].mean() for score in scores]
    assert found.area == pytest.approx(np.mean(own))


def test_infinite_scores_are_equal_too():
    found = risk_coverage(
        np.array([np.inf, np.inf, 0, -np.inf, -np.inf]), np.array([1, 0, 1, 1, 1])
    )
    assert found.thresholds.tolist() == [np.inf, 0, -np.inf]
    assert found.coverage.tolist() == [0.4, 0.6, 1.0]


def draw(samples, seed):
    generator = np.random.default_rng(seed)
    scores = generator.random(samples)
    return scores, generator.random(samples) < 0.7 + 0.3 * scores


def test_the_promise_is_kept_on_new_samples():
    """Of 200 thresholds at most 5 % may have a true risk above the target."""
    broken = 0
    for seed in range(200):
        chosen = choose_threshold(*draw(1500, seed), risk=0.1)
        true_risk = 0.3 * (1 - (1 + chosen.threshold) / 2)
        broken += true_risk > 0.1
    assert broken <= 10


def test_the_largest_coverage_that_keeps_it_is_chosen():
    scores, right = draw(2000, 0)
    chosen = choose_threshold(scores, right, risk=0.1, confidence=0.9, choices=10)
    answered = scores >= chosen.threshold
    assert chosen.coverage == pytest.approx(answered.mean())
    assert chosen.risk == pytest.approx(1 - right[answered].mean())
    errors = int((~right[answered]).sum())
    assert chosen.bound == highest_share(errors, int(answered.sum()), confidence=0.99) <= 0.1
    more = scores >= np.sort(scores)[::-1][int(answered.sum()) + 200 - 1]
    assert highest_share(int((~right[more]).sum()), int(more.sum()), confidence=0.99) > 0.1


def test_where_nothing_is_wrong_everything_is_answered():
    chosen = choose_threshold(np.linspace(0, 1, 500), np.ones(500, bool), risk=0.05)
    assert (chosen.coverage, chosen.threshold, chosen.risk) == (1, 0, 0)


def test_equal_scores_are_answered_together():
    scores = np.repeat([1.0, 0.0], 200)
    right = scores > 0
    chosen = choose_threshold(scores, right, risk=0.05)
    assert (chosen.threshold, chosen.coverage) == (1, 0.5)


def test_a_promise_that_cannot_be_kept_is_refused():
    with pytest.raises(PredictionError, match=r"no threshold keeps.*on 20 labelled.*Label more"):
        choose_threshold(np.arange(20) / 20, np.ones(20, bool), risk=0.01)


def test_one_sample_is_told_as_one():
    with pytest.raises(PredictionError, match=r"on 1 labelled sample\. Label more"):
        choose_threshold(np.ones(1), np.ones(1, bool), risk=0.01)


@pytest.mark.parametrize(
    ("scores", "right", "risk", "words"),
    [
        ([0.5], [True, False], 0.1, "got shapes"),
        ([], [], 0.1, "at least one labelled"),
        ([np.nan], [True], 0.1, "a score is nan"),
        ([0.5], [True], 0, "risk must lie between 0 and 1"),
        ([0.5], [True], 5, "risk must lie between 0 and 1"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(scores, right, risk, words):
    with pytest.raises(PredictionError, match=words):
        choose_threshold(np.array(scores), np.array(right, bool), risk=risk)


def test_below_the_threshold_a_prediction_abstains():
    prediction = Prediction(np.array([2, 1, 0]), np.array([0.1, 0.2, 0.3]))
    found = abstain_below(prediction, np.array([0.9, 0.5, 0.4]), 0.5)
    assert found.labels.tolist() == [2, 1, -1]
    assert found.scores is prediction.scores


@pytest.mark.parametrize("scores", [[0.5], [0.1, 0.2, 0.3, 0.4], [[0.1], [0.2], [0.3]],
                                    [0.1, np.nan, 0.3]])  # fmt: skip
def test_scores_that_do_not_go_with_the_labels_are_refused(scores):
    prediction = Prediction(np.array([2, 1, 0]), np.array([0.1, 0.2, 0.3]))
    with pytest.raises(PredictionError, match="one score for each of the 3 labels"):
        abstain_below(prediction, np.array(scores), 0.5)


def test_a_threshold_that_is_no_number_is_refused():
    prediction = Prediction(np.array([2]), np.array([0.1]))
    with pytest.raises(PredictionError, match="none of them nan"):
        abstain_below(prediction, prediction.scores, float("nan"))


def test_no_choices_are_refused():
    with pytest.raises(PredictionError, match="at least 1; got 0"):
        choose_threshold(np.arange(20) / 20, np.ones(20, bool), risk=0.1, choices=0)
