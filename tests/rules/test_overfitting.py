from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from overfitting import draw_run, memorised, right_chances

import accord
from accord.rules import _overfitting as module
from accord.rules._analysis_context import Context
from accord.rules._overfitting import (
    STRETCH,
    EarlyOverfitting,
    Fall,
    Verdict,
    certainty_beyond_fluctuation,
    deepest_fall,
    epochs_before_early_overfitting,
    epochs_before_overfitting,
    find_early_overfitting,
    find_fall,
    smooth,
)
from accord.store import ArrayReader, SampleInfo

quickly = settings(max_examples=40)


curves = arrays(np.float64, st.integers(8, 30), elements=st.integers(0, 100).map(lambda n: n / 100))


@given(curves, st.sampled_from([1, 3, 5, 99]))
def test_smoothing_is_the_mean_of_neighbours(curve, window):
    half = window // 2
    expected = [curve[max(0, e - half) : e + half + 1].mean() for e in range(len(curve))]
    np.testing.assert_allclose(smooth(curve, window=window), expected, atol=1e-12)


def deepest_by_definition(curve):
    smoothed = smooth(curve)
    return max(
        smoothed[peak] - curve[low : low + STRETCH].mean()
        for peak in range(len(curve))
        for low in range(peak + 2, len(curve) - STRETCH + 1)
    )


@given(curves)
def test_the_deepest_fall_is_the_largest_of_all(curve):
    assert deepest_fall(curve) == pytest.approx(deepest_by_definition(curve), abs=1e-12)


@given(curves)
def test_a_fall_goes_from_the_first_peak_to_the_lowest_stretch_after_it(curve):
    found = find_fall(curve)
    smoothed = smooth(curve)
    peak = next(e for e in range(len(curve)) if smoothed[e] >= smoothed.max() - 0.01)
    starts = range(peak + 2, len(curve) - STRETCH + 1)
    if not starts:
        assert found is None
        return
    assert found.peak == peak
    lowest = min(curve[start : start + STRETCH].mean() for start in starts)
    assert found.size(curve) == pytest.approx(smoothed[peak] - lowest, abs=1e-12)
    assert found.low in starts


def test_an_earlier_peak_that_is_nearly_as_high_comes_first():
    curve = np.concatenate([np.full(5, 0.700), np.full(10, 0.5), np.full(5, 0.708)])
    assert find_fall(curve) == Fall(peak=0, low=5)
    curve[-5:] = 0.75
    assert find_fall(curve) is None


def test_a_fall_is_taken_from_many_curves_at_once():
    fall = Fall(peak=1, low=4)
    many = np.arange(20.0).reshape(2, 10)
    np.testing.assert_allclose(fall.size(many), [fall.size(many[0]), fall.size(many[1])])


def wobbling(seed, *, epochs=60, drop=0.0):
    noise = np.random.default_rng(seed).normal(0, 0.02, epochs)
    return 0.8 + noise - drop * (np.arange(epochs) >= epochs // 2)


def test_curves_that_only_wobble_rarely_seem_sure():
    """Of 200 flat curves no more than a few may pass 99 %: the test keeps what it promises."""
    flat = [wobbling(seed) for seed in range(200)]
    sure = [certainty_beyond_fluctuation(c, find_fall(c), seed=0) for c in flat if find_fall(c)]
    assert np.mean(np.array(sure) >= 0.99) <= 0.02


def test_a_fall_beyond_the_wobble_is_sure():
    sure = [certainty_beyond_fluctuation(c, find_fall(c), seed=0) for c in map(dropped, range(30))]
    assert np.mean(np.array(sure) >= 0.99) >= 0.95


def dropped(seed):
    return wobbling(seed, drop=0.08)


def test_the_same_seed_is_as_sure_again():
    curve = wobbling(3, drop=0.03)
    fall = find_fall(curve)
    again = [certainty_beyond_fluctuation(curve, fall, seed=seed) for seed in (0, 0, 1)]
    assert again[0] == again[1]
    assert 0 <= again[2] < 1


def test_epochs_are_counted_until_agreement_has_fallen():
    rows = memorised()
    assert 5 <= epochs_before_overfitting(rows) <= 20
    assert epochs_before_early_overfitting(rows) == epochs_before_overfitting(rows)


def test_where_agreement_has_not_fallen_there_is_nothing_to_count():
    rows = draw_run(right_chances())
    assert epochs_before_overfitting(rows) is epochs_before_early_overfitting(rows) is None


def test_a_fall_counts_if_majority_votes_showed_it_while_the_record_grew():
    """Breast cancer with 30 % symmetric noise, memorised by five perceptrons after a few epochs."""
    record = accord.open(Path(__file__).parent / "data" / "early-fall.zip")
    before, plain = record.score(["before-overfit", "max-agreement"])
    assert epochs_before_overfitting(record.reader) == 6
    assert before.accuracy > plain.accuracy + 0.16


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
