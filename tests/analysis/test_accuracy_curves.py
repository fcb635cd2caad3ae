import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from accord import analysis
from accord.rules import all_rules, find_rule
from accord.store import ArrayReader, SampleInfo
from accord.testing import small_records
from accord.testing._contracts import reader_of

quickly = settings(max_examples=40)


def some_rows():
    labels = np.random.default_rng(0).integers(0, 3, (4, 5, 60))
    return ArrayReader(labels, SampleInfo(60, 3, truth=labels[0, 0]))


def test_max_agreement_by_epochs_reads_each_once(epochs_read):
    analysis.by_epochs(some_rows(), "max-agreement")
    assert epochs_read == [0, 1, 2, 3, 4]


@quickly
@given(small_records())
def test_a_curve_is_the_score_of_every_prefix(record):
    rows = reader_of(record)
    for name in all_rules():
        drawn = analysis.curve(rows, name)
        for epoch in range(rows.epochs):
            prefix = rows.select(epochs=range(epoch + 1))
            (expected,) = analysis.score(prefix, [name])
            assert drawn.accuracy[epoch] == pytest.approx(expected.accuracy)
            assert drawn.points[epoch].coverage == expected.coverage
            if name != "single":
                assert drawn.balanced_accuracy[epoch] == pytest.approx(expected.balanced_accuracy)
        assert drawn.recall.shape == (rows.epochs, rows.classes)
        assert drawn.progress == rows.networks_info()[0].progress


@quickly
@given(small_records())
def test_by_networks_scores_every_subset(record):
    rows = reader_of(record)
    for name in ("majority", "max-agreement", "soft-agreement", "single"):
        sweep = analysis.by_networks(rows, name)
        assert [len(some) for some in sweep.accuracies] == [
            len(list(_subsets(rows.networks, size))) for size in sweep.sizes
        ]
        for size, some in zip(sweep.sizes, sweep.accuracies, strict=True):
            expected = [
                (find_rule(name)(rows.select(networks=subset)).labels == record.truth).mean()
                for subset in _subsets(rows.networks, size)
            ]
            np.testing.assert_allclose(sorted(some), sorted(expected))
        np.testing.assert_allclose(sweep.mean[-1], np.mean(sweep.accuracies[-1]))


def _subsets(networks, size):
    return itertools.combinations(range(networks), size)


def test_of_too_many_subsets_some_are_drawn():
    labels = np.random.default_rng(0).integers(0, 3, (8, 2, 20)).astype(np.uint8)
    rows = ArrayReader(labels, SampleInfo(20, 3, truth=labels[0, 0]))
    sweep = analysis.by_networks(rows, "majority", most_subsets=5)
    assert [len(some) for some in sweep.accuracies] == [5, 5, 5, 5, 5, 5, 5, 1]
    assert sweep == analysis.by_networks(rows, "majority", most_subsets=5)


@quickly
@given(small_records())
def test_by_epochs_scores_equally_spaced_epochs(record):
    rows = reader_of(record)
    sweep = analysis.by_epochs(rows, "max-agreement")
    assert sweep.sizes[0] == 1
    assert sweep.sizes[-1] == rows.epochs
    for size, (accuracy,) in zip(sweep.sizes, sweep.accuracies, strict=True):
        chosen = np.round(np.linspace(0, rows.epochs - 1, size)).astype(int)
        expected = find_rule("max-agreement")(rows.select(epochs=chosen.tolist())).labels
        assert accuracy == pytest.approx((expected == record.truth).mean())


def test_by_epochs_refuses_more_epochs_than_there_are():
    rows = ArrayReader(np.zeros((1, 3, 2), np.uint8), SampleInfo(2, 2, truth=np.array([0, 1])))
    with pytest.raises(ValueError, match=r"1\.\.3"):
        analysis.by_epochs(rows, "majority", [4])
