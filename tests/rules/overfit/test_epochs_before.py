import numpy as np
import pytest
from overfitting import draw_run, memorised, right_chances

from accord.rules import _overfitting as module
from accord.rules._context import Context
from accord.rules._overfitting import (
    EarlyOverfitting,
    Verdict,
    epochs_before_early_overfitting,
    epochs_before_overfitting,
    find_early_overfitting,
)
from accord.store import ArrayReader, SampleInfo


def test_epochs_are_counted_until_agreement_has_fallen():
    rows = memorised()
    assert 5 <= epochs_before_overfitting(rows) <= 20
    assert epochs_before_early_overfitting(rows) == epochs_before_overfitting(rows)


def test_where_agreement_has_not_fallen_there_is_nothing_to_count():
    rows = draw_run(right_chances())
    assert epochs_before_overfitting(rows) is epochs_before_early_overfitting(rows) is None


def test_one_network_has_nobody_to_agree_with():
    assert epochs_before_overfitting(memorised().select(networks=[2])) is None


def test_a_fall_that_raises_no_alarm_does_not_count(monkeypatch):
    calm = Verdict(False, "it fluctuates", fall=0.2, before=5)
    monkeypatch.setattr(module, "detect_overfitting", lambda *_: calm)
    assert epochs_before_overfitting(memorised()) is None


def test_a_context_is_judged_once(monkeypatch):
    judged = []

    def judge(rows, *_):
        judged.append(rows)
        return Verdict(True, "it fell", before=len(judged))

    monkeypatch.setattr(module, "detect_overfitting", judge)
    context = Context(memorised())
    others = (context, context.select(epochs=range(30)), memorised(), context)
    assert [epochs_before_overfitting(one) for one in others] == [1, 2, 3, 1]


@pytest.mark.parametrize(("before", "early"), [(30, 30), (31, None), (None, None)])
def test_a_fall_is_early_that_leaves_a_quarter_of_the_epochs(monkeypatch, before, early):
    monkeypatch.setattr(module, "epochs_before_overfitting", lambda rows: before)
    monkeypatch.setattr(module, "repetition", lambda within: 1)
    assert epochs_before_early_overfitting(memorised()) == early  # of 40 epochs


@pytest.mark.parametrize(
    ("alike", "agreed", "spoils"),
    [(0.65, 0.1, True), (0.64, 0.6, True), (0.64, 0.59, False)],
)
def test_epochs_are_spoilt_that_repeat_each_other_or_follow_on_good_ones(
    monkeypatch, alike, agreed, spoils
):
    def measure(within):
        assert within.shape == (30, 30)  # of 40 epochs: those after the fall
        return alike

    monkeypatch.setattr(module, "epochs_before_overfitting", lambda rows: 10)
    monkeypatch.setattr(module, "repetition", measure)
    monkeypatch.setattr(module, "best_agreement", lambda likeness: agreed)
    assert find_early_overfitting(memorised()) == EarlyOverfitting(before=10, spoils=spoils)
    assert epochs_before_early_overfitting(memorised()) == (10 if spoils else None)


def test_networks_that_go_on_changing_even_out_and_spoil_nothing():
    generator = np.random.default_rng(0)
    truth = np.arange(1000) % 10
    right = generator.random((4, 40, 1000)) < np.where(np.arange(40) < 10, 0.6, 0.3)[:, np.newaxis]
    labels = np.where(right, truth, generator.integers(0, 10, (4, 40, 1000)))
    rows = ArrayReader(labels.astype(np.uint8), SampleInfo(1000, 10))
    assert epochs_before_overfitting(rows) is not None
    assert epochs_before_early_overfitting(rows) is None
