"""What is measured of trust equals what the analysis says, sample by sample."""

import numpy as np
import pytest

from accord._record import Record
from accord.analysis import CorruptReader, choose_threshold
from accord.analysis._trust._intervals import highest_share
from accord.analysis._trust._trust_summary import TRAINED_ON, measure_trust
from accord.errors import ChoiceError, PredictionError
from accord.store import ArrayReader, make_sample_info


def test_max_agreement_is_as_sure_as_its_margin(hard):
    found = measure_trust(hard)
    right = hard.predict().labels == hard.truth
    assert (found.rule, found.by) == ("max-agreement", "margin")
    np.testing.assert_array_equal(found.sureness, hard.margin())
    assert found.accuracy == right.mean()
    assert found.bins.error == hard.calibration().error
    np.testing.assert_array_equal(found.curve.risk, hard.risk_coverage().risk)
    np.testing.assert_array_equal(found.curve.coverage, hard.risk_coverage().coverage)


def test_another_rule_is_as_sure_as_its_score(hard):
    found = measure_trust(hard, "majority")
    assert (found.rule, found.by) == ("majority", "score")
    np.testing.assert_array_equal(found.sureness, hard.predict("majority").scores)
    assert found.bins.error == hard.calibration("majority").error


def test_the_recommended_rule_is_measured_as_the_one_it_is(make_hard):
    alone = make_hard(networks=1)
    found = measure_trust(alone, "recommended")
    assert (found.rule, found.by) == ("max-agreement", "margin")
    assert found.notes == ("recommended: max-agreement, as there is one network",)


def test_the_threshold_is_the_one_that_keeps_the_risk(hard):
    right = hard.predict().labels == hard.truth
    chosen = choose_threshold(hard.margin(), right, risk=0.1, confidence=0.9)
    answers = measure_trust(hard, risk=0.1, confidence=0.9).answers
    assert (answers.target, answers.threshold) == (0.1, chosen.threshold)
    assert answers.coverage == pytest.approx(chosen.coverage)
    assert (answers.risk, answers.bound, answers.confidence) == (chosen.risk, chosen.bound, 0.9)
    assert answers.bound <= 0.1


def test_who_is_answered_makes_up_the_coverage_and_the_risk(hard):
    found = measure_trust(hard, risk=0.1)
    answered = found.answered
    np.testing.assert_array_equal(answered, hard.margin() >= found.answers.threshold)
    wrong = hard.predict().labels != hard.truth
    assert answered.mean() == pytest.approx(found.answers.coverage)
    assert wrong[answered].mean() == pytest.approx(found.answers.risk)
    assert 0 < found.answers.coverage < 1


def test_a_risk_that_cannot_be_kept_answers_nothing_and_says_why(hard):
    found = measure_trust(hard, risk=1e-6)
    assert found.answers.threshold is None
    assert "no threshold keeps the risk below 1e-06" in found.answers.reason
    assert not found.answered.any()


def test_a_threshold_from_elsewhere_is_told_with_its_own_bound(hard):
    answers = measure_trust(hard, threshold=0.5).answers
    answered = hard.margin() >= 0.5
    wrong = (hard.predict().labels != hard.truth)[answered]
    assert (answers.target, answers.threshold) == (None, 0.5)
    assert answers.coverage == answered.mean()
    assert answers.risk == wrong.mean()
    assert answers.bound == highest_share(int(wrong.sum()), len(wrong), confidence=0.95)


def test_a_threshold_that_nobody_reaches_has_no_risk(hard):
    answers = measure_trust(hard, threshold=1.5).answers
    assert (answers.coverage, answers.risk, answers.bound) == (0, None, None)


def test_abstentions_are_never_answered_and_count_in_the_coverage(make_hard):
    record = make_hard(4)
    predicted = record.predict("consensus")
    labelled = predicted.labels >= 0
    assert 0 < labelled.mean() < 1
    found = measure_trust(record, "consensus", risk=0.2)
    right = predicted.labels == record.truth
    assert found.accuracy == right.mean()
    assert found.curve.coverage[-1] == pytest.approx(labelled.mean())
    assert found.curve.risk[-1] == pytest.approx(1 - right[labelled].mean())
    assert found.bins.counts.sum() == labelled.sum()
    assert found.answers.coverage == pytest.approx(found.answered.mean())
    everything = measure_trust(record, "consensus", threshold=0.0)
    np.testing.assert_array_equal(everything.answered, labelled)
    assert everything.answers.coverage == labelled.mean()


def test_a_rule_that_never_answers_is_told():
    sample_info = make_sample_info(samples=2, classes=2, truth=[0, 1])
    split = Record(ArrayReader(np.array([[[0, 0]], [[1, 1]]]), sample_info, name="runs/split"))
    with pytest.raises(PredictionError, match=r"runs/split: consensus abstains on every sample"):
        measure_trust(split, "consensus")


@pytest.mark.parametrize("risk", [0, 1, -0.1, float("nan")])
def test_an_impossible_risk_is_refused(hard, risk):
    with pytest.raises(ChoiceError, match=r"between 0 and 1, as 0.05 does; got"):
        measure_trust(hard, risk=risk)


def test_without_truth_what_can_be_told_is_told(make_hard):
    blind = make_hard(truth=False)
    found = measure_trust(blind)
    assert (found.accuracy, found.curve, found.rescued) == (None, None, None)
    assert found.bins.counts.sum() == 1000
    assert found.answers.threshold is None
    assert found.answers.reason == "a threshold for a risk needs true labels"
    assert found.forgetting.judged_by == "max-agreement"
    known = measure_trust(blind, threshold=0.5)
    assert known.answers.coverage == (blind.margin() >= 0.5).mean()
    assert (known.answers.risk, known.answers.bound) == (None, None)


def test_networks_and_forgetting_are_told(hard):
    spoilt = Record(CorruptReader(hard.reader, kind="constant", count=1))
    found = measure_trust(spoilt)
    assert [one.kind for one in found.members] == ["good"] * 5 + ["constant"]
    assert found.comparable
    assert not measure_trust(hard.select(networks=[0])).comparable
    found = measure_trust(hard)
    gone = hard.forgetting().forgotten
    np.testing.assert_array_equal(found.forgetting.forgotten, gone)
    assert found.forgetting.judged_by == "truth"
    assert found.rescued == (hard.predict().labels == hard.truth)[gone].sum()


def test_what_should_be_known_is_noted(make_hard, make_record):
    assert measure_trust(make_hard()).notes == ()
    assert measure_trust(make_hard(split="train")).notes == (TRAINED_ON,)
    held_out = make_hard(given=np.zeros(1000, int), split="validation")
    assert measure_trust(held_out).notes == ()
    (said,) = measure_trust(make_hard(), "oracle-best-epoch").notes
    assert said.startswith("oracle-best-epoch is an oracle: the true labels that judge it")
    alone = measure_trust(make_record(1, 4, 60, 3), "weighted-agreement")
    assert alone.notes[0].startswith("the epochs of a single network")
