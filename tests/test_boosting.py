"""The boosting face, against a stub booster; clients/test_boosting.py uses real ones."""

import sys

import numpy as np
import pytest

import accord
from accord.boosting import LightGBMRounds, RunningScores, XGBoostRounds, record_rounds
from accord.errors import ChoiceError, ExtraMissing, PredictionError

TREES = np.random.default_rng(0).normal(size=(6, 5, 3))  # (round, sample, class)


class FakeBooster:
    """Sums trees as LightGBM does; dart scales all earlier ones down."""

    def __init__(self, trees=TREES, text="objective=multiclass num_class:3\n[boosting: gbdt]\n"):
        self.trees, self.text, self.rounds, self.evaluated = trees, text, len(trees), 0

    def model_to_string(self, num_iteration):
        return self.text

    def current_iteration(self):
        return self.rounds

    def predict(self, samples, *, raw_score, start_iteration, num_iteration):
        self.evaluated += num_iteration
        shrink = 0.5**self.rounds if "dart" in self.text else 1
        return shrink * self.trees[start_iteration : start_iteration + num_iteration].sum(axis=0)


class FakeLightGBMBooster(FakeBooster):
    __module__ = "lightgbm.basic"  # `record_rounds` finds the kind of a booster by its package


def test_each_tree_is_evaluated_once():
    booster = FakeBooster()
    scores = RunningScores(booster, None)
    for rounds in (1, 3, 3, 6):
        np.testing.assert_allclose(scores.after(rounds), TREES[:rounds].sum(axis=0))
    assert booster.evaluated == 6


def test_a_dart_booster_is_evaluated_again():
    booster = FakeBooster(text="objective=multiclass\n[boosting: dart]\n")
    scores = RunningScores(booster, None)
    for booster.rounds in (2, 3):
        expected = 0.5**booster.rounds * TREES[: booster.rounds].sum(axis=0)
        np.testing.assert_allclose(scores.after(booster.rounds), expected)


def test_sigmoid_scale_and_averaging_are_applied():
    booster = FakeBooster(TREES[..., 0], "objective=binary sigmoid:2\naverage_output\n")
    np.testing.assert_allclose(
        RunningScores(booster, None).after(4), TREES[:4, :, 0].sum(axis=0) * 2 / 4
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("objective=regression\n", "with objective 'regression' one score per sample"),
        ("num_class=1\n", "with objective 'custom' one score per sample"),
    ],
)
def test_objectives_without_classes_are_refused(text, words):
    with pytest.raises(ChoiceError, match=words):
        RunningScores(FakeBooster(TREES[..., 0], text), None).after(1)


def test_a_custom_objective_with_several_classes_is_accepted():
    scores = RunningScores(FakeBooster(text="num_class=3\n"), None)
    assert scores.objective == "custom"
    np.testing.assert_allclose(scores.after(1), TREES[0])


@pytest.fixture
def recorder(tmp_path):
    path = tmp_path / "record"
    with accord.Recorder(path, network=0, samples=5, classes=3, probabilities=True) as one:
        yield one


def test_rounds_are_recorded_after_training(tmp_path, recorder):
    record_rounds(recorder, FakeLightGBMBooster(), None, every=2)
    record = accord.open(tmp_path / "record")
    expected = TREES.cumsum(axis=0)[1::2].argmax(axis=-1)
    np.testing.assert_array_equal(record.labels[0], expected)
    assert record.progress == (2, 4, 6)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("objective=multiclass\n[boosting: dart]\n", ChoiceError, "a dart booster changes"),
        ("objective=multiclassova\n", PredictionError, "probabilities of multiclassova do not"),
    ],
)
def test_boosters_that_cannot_be_recorded_afterwards_are_refused(recorder, text, kind, words):
    with pytest.raises(kind, match=words):
        record_rounds(recorder, FakeLightGBMBooster(text=text), None)
    assert recorder.epochs == 0


def test_other_types_are_refused(recorder):
    with pytest.raises(
        ChoiceError, match=r"XGBoost or LightGBM was expected; got FakeBooster.*stages"
    ):
        record_rounds(recorder, FakeBooster(), None)


def test_unsorted_class_names_require_classes(tmp_path):
    options = {"samples": 5, "classes": 2, "class_names": ["spam", "ham"]}
    with accord.Recorder(tmp_path / "record", network=0, **options) as recorder:
        with pytest.raises(ChoiceError, match=r"spam, ham …, not in sorted order.*np\.unique"):
            LightGBMRounds(recorder, None)
        LightGBMRounds(recorder, None, classes=["ham", "spam"])


def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    monkeypatch.setitem(sys.modules, "xgboost.callback", None)
    with (
        accord.Recorder(tmp_path, network=0, samples=2, classes=2) as recorder,
        pytest.raises(ExtraMissing, match=r"requires xgboost.*pip install 'accord\[boosting\]'"),
    ):
        XGBoostRounds(recorder, [[1.0], [2.0]])
