"""Trust in a rule, measured against counts by sample."""

import numpy as np
import pytest
from hard_records import with_bad_networks
from hypothesis import given
from hypothesis import strategies as st

from accord._record import Record
from accord.analysis._trust._confidence_intervals import highest_share
from accord.analysis._trust._trust import (
    NO_THRESHOLD,
    TRAINED_ON,
    abstain_below,
    choose_threshold,
    measure_trust,
    risk_coverage,
)
from accord.errors import ChoiceError, PredictionError
from accord.rules import Prediction
from accord.store import ArrayReader, make_sample_info

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


def test_one_sample_is_singular():
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


def test_the_certainty_of_max_agreement_is_its_margin(hard):
    found = measure_trust(hard.reader)
    right = hard.predict().labels == hard.truth
    assert (found.rule, found.by) == ("max-agreement", "margin")
    np.testing.assert_array_equal(found.certainty, hard.margin())
    assert found.accuracy == right.mean()
    assert found.bins.error == hard.calibration().error
    np.testing.assert_array_equal(found.curve.risk, hard.risk_coverage().risk)
    np.testing.assert_array_equal(found.curve.coverage, hard.risk_coverage().coverage)


def test_another_rule_is_as_sure_as_its_score(hard):
    found = measure_trust(hard.reader, "majority")
    assert (found.rule, found.by) == ("majority", "score")
    np.testing.assert_array_equal(found.certainty, hard.predict("majority").scores)
    assert found.bins.error == hard.calibration("majority").error


def test_the_recommended_rule_is_measured_as_the_one_it_is(make_hard):
    alone = make_hard(networks=1)
    found = measure_trust(alone.reader, "recommended")
    assert (found.rule, found.by) == ("max-agreement", "margin")
    assert found.notes[0] == "recommended: max-agreement, as there is one network"
    assert found.notes[1:] == alone.notes() != ()


def test_the_threshold_is_the_one_that_keeps_the_risk(hard):
    right = hard.predict().labels == hard.truth
    chosen = choose_threshold(hard.margin(), right, risk=0.1, confidence=0.9)
    answers = measure_trust(hard.reader, risk=0.1, confidence=0.9).answers
    assert (answers.target, answers.threshold) == (0.1, chosen.threshold)
    assert answers.coverage == pytest.approx(chosen.coverage)
    assert (answers.risk, answers.bound, answers.confidence) == (chosen.risk, chosen.bound, 0.9)
    assert answers.bound <= 0.1


def test_who_is_answered_makes_up_the_coverage_and_the_risk(hard):
    found = measure_trust(hard.reader, risk=0.1)
    answered = found.answered
    np.testing.assert_array_equal(answered, hard.margin() >= found.answers.threshold)
    wrong = hard.predict().labels != hard.truth
    assert answered.mean() == pytest.approx(found.answers.coverage)
    assert wrong[answered].mean() == pytest.approx(found.answers.risk)
    assert 0 < found.answers.coverage < 1


def test_a_risk_that_cannot_be_kept_answers_nothing(hard):
    found = measure_trust(hard.reader, risk=1e-6)
    assert found.answers.threshold is None
    assert "no threshold keeps the risk below 1e-06" in found.answers.reason
    assert not found.answered.any()


def test_a_given_threshold_has_its_own_bound(hard):
    answers = measure_trust(hard.reader, threshold=0.5).answers
    answered = hard.margin() >= 0.5
    wrong = (hard.predict().labels != hard.truth)[answered]
    assert (answers.target, answers.threshold) == (None, 0.5)
    assert answers.coverage == answered.mean()
    assert answers.risk == wrong.mean()
    assert answers.bound == highest_share(int(wrong.sum()), len(wrong), confidence=0.95)


def test_a_threshold_that_nobody_reaches_has_no_risk(hard):
    answers = measure_trust(hard.reader, threshold=1.5).answers
    assert (answers.coverage, answers.risk, answers.bound) == (0, None, None)


def test_abstentions_are_never_answered_and_count_in_the_coverage(make_hard):
    record = make_hard(4)
    predicted = record.predict("consensus")
    labelled = predicted.labels >= 0
    assert 0 < labelled.mean() < 1
    found = measure_trust(record.reader, "consensus", risk=0.2)
    right = predicted.labels == record.truth
    assert found.accuracy == right.mean()
    assert found.curve.coverage[-1] == pytest.approx(labelled.mean())
    assert found.curve.risk[-1] == pytest.approx(1 - right[labelled].mean())
    assert found.bins.counts.sum() == labelled.sum()
    assert found.answers.coverage == pytest.approx(found.answered.mean())
    everything = measure_trust(record.reader, "consensus", threshold=0.0)
    np.testing.assert_array_equal(everything.answered, labelled)
    assert everything.answers.coverage == labelled.mean()


def test_a_rule_that_always_abstains_is_refused():
    sample_info = make_sample_info(samples=2, classes=2, truth=[0, 1])
    split = Record(ArrayReader(np.array([[[0, 0]], [[1, 1]]]), sample_info, name="runs/split"))
    with pytest.raises(PredictionError, match=r"runs/split: consensus abstains on every sample"):
        measure_trust(split.reader, "consensus")


@pytest.mark.parametrize("risk", [0, 1, -0.1, float("nan")])
def test_an_impossible_risk_is_refused(hard, risk):
    with pytest.raises(ChoiceError, match=r"between 0 and 1, such as 0.05; got"):
        measure_trust(hard.reader, risk=risk)


def test_without_truth_the_scores_are_measured(make_hard):
    blind = make_hard(truth=False)
    found = measure_trust(blind.reader)
    assert (found.accuracy, found.curve, found.rescued) == (None, None, None)
    assert found.bins.counts.sum() == 1000
    assert found.answers.threshold is None
    assert found.answers.reason == "a threshold for a risk requires true labels"
    assert found.forgetting.judged_by == "max-agreement"
    known = measure_trust(blind.reader, threshold=0.5)
    assert known.answers.coverage == (blind.margin() >= 0.5).mean()
    assert (known.answers.risk, known.answers.bound) == (None, None)


def test_networks_and_forgetting_are_measured(hard):
    spoilt = with_bad_networks(hard, "constant")
    found = measure_trust(spoilt.reader)
    assert [one.kind for one in found.networks] == ["good"] * 5 + ["constant"]
    assert found.comparable
    assert not measure_trust(hard.select(networks=[0]).reader).comparable
    found = measure_trust(hard.reader)
    gone = hard.forgetting().forgotten
    np.testing.assert_array_equal(found.forgetting.forgotten, gone)
    assert found.forgetting.judged_by == "truth"
    assert found.rescued == (hard.predict().labels == hard.truth)[gone].sum()


def test_notes_warn_of_training_samples_and_oracles(make_hard, make_record):
    assert measure_trust(make_hard().reader).notes == ()
    assert measure_trust(make_hard(split="train").reader).notes == (TRAINED_ON,)
    answers = measure_trust(make_hard(split="train").reader).answers
    assert (answers.threshold, answers.reason) == (None, NO_THRESHOLD)
    assert measure_trust(make_hard(split="train").reader, threshold=0.1).answers.bound is None
    held_out = make_hard(given=np.zeros(1000, int), split="validation")
    assert measure_trust(held_out.reader).notes == ()
    (note,) = measure_trust(make_hard().reader, "oracle-best-epoch").notes
    assert note.startswith("oracle-best-epoch is an oracle: it chose its epoch by the true labels")
    alone = measure_trust(make_record(1, 4, 60, 3).reader, "weighted-agreement")
    assert alone.notes[0].startswith("the epochs of a single network cannot be compared")
