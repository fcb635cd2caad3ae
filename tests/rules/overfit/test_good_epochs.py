import numpy as np
import pytest
from overfitting import draw_run, right_chances

from accord.rules import _em as expectation
from accord.rules import find_rule
from accord.rules._epoch_weights import predict_by_regression
from accord.rules._overfitting import score_epochs
from accord.rules.majority import Majority
from accord.store import _record_reader as rows_module


def test_shares_are_those_of_majority_votes_that_equal_dawid_skene():
    rows = draw_run(right_chances(12))
    found = score_epochs(rows)
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
    found = score_epochs(draw_run(right_chances(12), samples=7))
    assert found.sizes.tolist() == [1] * 7
    np.testing.assert_allclose(found.by_group.mean(axis=0), found.shares)


def test_the_best_epoch_is_nearly_the_oracles():
    rows = draw_run(right_chances(40, end=0.5))
    hits = [
        np.mean(Majority()(rows.select(epochs=[epoch])).labels == rows.truth())
        for epoch in range(rows.epochs)
    ]
    assert hits[score_epochs(rows).best] >= max(hits) - 0.015
    assert hits[-1] < max(hits) - 0.05


def test_without_memory_for_dawid_skene_the_vote_it_starts_from_is_the_reference(monkeypatch):
    monkeypatch.setattr(expectation, "MAX_CELLS", 1)
    rows = draw_run(right_chances(12))
    found = score_epochs(rows)
    expected = predict_by_regression(rows).labels
    last = Majority()(rows).labels
    assert found.shares[-1] == pytest.approx(np.mean(last == expected))


def test_the_size_of_the_blocks_changes_nothing(monkeypatch):
    rows = draw_run(right_chances(12), samples=100)
    whole = score_epochs(rows)
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 1)
    monkeypatch.setattr(rows_module, "LEAST_BLOCK", 7)
    assert len(list(rows.blocks())) > 1
    np.testing.assert_array_equal(score_epochs(rows).by_group, whole.by_group)
