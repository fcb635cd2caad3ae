import numpy as np
import pytest
from overfitting import draw_run, right_chances

from accord.errors import PredictionError
from accord.rules import _overfitting as module
from accord.rules import find_rule
from accord.rules._epoch_weights import predict_regressed
from accord.rules._overfitting import good_epochs
from accord.rules.majority import Majority
from accord.store import _record_reader as rows_module


def test_shares_say_how_often_the_majority_is_what_the_rule_says():
    rows = draw_run(right_chances(12))
    found = good_epochs(rows)
    expected = find_rule("dawid-skene")(rows).labels
    for epoch in range(rows.epochs):
        majority = Majority()(rows.select(epochs=[epoch])).labels
        same = majority == expected
        assert found.shares[epoch] == np.mean(same)
        by_group = [same[group::64].mean() for group in range(64)]
        np.testing.assert_allclose(found.by_group[:, epoch], by_group)
    assert found.sizes.tolist() == [len(range(group, rows.samples, 64)) for group in range(64)]
    assert found.best == int(np.argmax(found.shares))


def test_fewer_samples_than_groups_are_a_group_each():
    found = good_epochs(draw_run(right_chances(12), samples=7))
    assert found.sizes.tolist() == [1] * 7
    np.testing.assert_allclose(found.by_group.mean(axis=0), found.shares)


def test_the_best_epoch_is_nearly_the_oracles():
    rows = draw_run(right_chances(40, end=0.5))
    hits = [
        np.mean(Majority()(rows.select(epochs=[epoch])).labels == rows.truth())
        for epoch in range(rows.epochs)
    ]
    assert hits[good_epochs(rows).best] >= max(hits) - 0.015
    assert hits[-1] < max(hits) - 0.05


def test_where_dawid_skene_refuses_the_vote_it_would_begin_with_judges(monkeypatch):
    class Refusing(module.DawidSkene):
        def __call__(self, rows):
            raise PredictionError("too large")

    monkeypatch.setattr(module, "DawidSkene", Refusing)
    rows = draw_run(right_chances(12))
    found = good_epochs(rows)
    expected = predict_regressed(rows).labels
    last = Majority()(rows).labels
    assert found.shares[-1] == pytest.approx(np.mean(last == expected))


def test_the_size_of_the_blocks_changes_nothing(monkeypatch):
    rows = draw_run(right_chances(12), samples=100)
    whole = good_epochs(rows)
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 1)
    monkeypatch.setattr(rows_module, "LEAST_BLOCK", 7)
    assert len(list(rows.blocks())) > 1
    np.testing.assert_array_equal(good_epochs(rows).by_group, whole.by_group)
