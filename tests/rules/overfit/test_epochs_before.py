import pytest
from overfitting import draw_run, memorised, right_chances

from accord.rules.overfit import epochs_before as module
from accord.rules.overfit.epochs_before import epochs_before_early_overfit, epochs_before_overfit
from accord.rules.overfit.verdict import Verdict


def test_epochs_are_counted_until_agreement_has_fallen():
    rows = memorised()
    assert 5 <= epochs_before_overfit(rows) <= 20
    assert epochs_before_early_overfit(rows) == epochs_before_overfit(rows)


def test_where_agreement_has_not_fallen_there_is_nothing_to_count():
    rows = draw_run(right_chances())
    assert epochs_before_overfit(rows) is epochs_before_early_overfit(rows) is None


def test_one_network_has_nobody_to_agree_with():
    assert epochs_before_overfit(memorised().select(networks=[2])) is None


def test_a_fall_that_raises_no_alarm_does_not_count(monkeypatch):
    calm = Verdict(False, "it wobbles", fall=0.2, before=5)
    monkeypatch.setattr(module, "judge_record", lambda rows, pairs: calm)
    assert epochs_before_overfit(memorised()) is None


@pytest.mark.parametrize(("before", "early"), [(30, 30), (31, None), (None, None)])
def test_a_fall_is_early_that_leaves_a_quarter_of_the_epochs(monkeypatch, before, early):
    monkeypatch.setattr(module, "epochs_before_overfit", lambda rows: before)
    assert epochs_before_early_overfit(memorised()) == early  # of 40 epochs
