import numpy as np
import pytest
from overfitting import draw_run, right_chances

from accord.analysis import good_epochs as module
from accord.analysis.good_epochs import good_epochs
from accord.errors import PredictionError
from accord.rules import find_rule
from accord.rules.majority import Majority


def test_shares_say_how_often_the_majority_is_what_the_rule_says():
    rows = draw_run(right_chances(12))
    found = good_epochs(rows)
    expected = find_rule("dawid-skene")(rows).labels
    for epoch in range(rows.epochs):
        majority = Majority()(rows.select(epochs=[epoch])).labels
        assert found.shares[epoch] == np.mean(majority == expected)
    assert found.rule == "dawid-skene"
    assert found.best == int(np.argmax(found.shares))


def test_the_best_epoch_is_nearly_the_oracles():
    rows = draw_run(right_chances(40, end=0.5))
    hits = [
        np.mean(Majority()(rows.select(epochs=[epoch])).labels == rows.truth())
        for epoch in range(rows.epochs)
    ]
    assert hits[good_epochs(rows).best] >= max(hits) - 0.015
    assert hits[-1] < max(hits) - 0.05


def test_where_dawid_skene_refuses_weighted_agreement_judges(monkeypatch):
    class Refusing(module.DawidSkene):
        def __call__(self, rows):
            raise PredictionError("too large")

    monkeypatch.setattr(module, "DawidSkene", Refusing)
    rows = draw_run(right_chances(12))
    found = good_epochs(rows)
    expected = find_rule("weighted-agreement")(rows).labels
    last = Majority()(rows).labels
    assert found.rule == "weighted-agreement"
    assert found.shares[-1] == pytest.approx(np.mean(last == expected))
