"""Weighted votes are what adding one weight after another gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.errors import PredictionError
from accord.kernels import _votes as weighted
from accord.kernels._votes import count_weighted


def by_definition(labels, weights, classes):
    """One vote after another: slow, obvious."""
    table = np.zeros((labels.shape[2], classes), int)
    for network, epoch, sample in np.ndindex(labels.shape):
        table[sample, labels[network, epoch, sample]] += weights[epoch]
    return table


@st.composite
def weighted_labels(draw):
    """Labels of one to thirty classes, with weights of which some are zero."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 7)))
    classes, largest = draw(st.integers(1, 30)), draw(st.sampled_from([1, 8, 300]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from([np.uint8, np.int64]))
    labels = generator.integers(0, classes, shape).astype(kind)
    weights = generator.integers(0, largest + 1, shape[1])
    return labels, np.where(generator.random(shape[1]) < 0.3, 0, weights), classes


@given(weighted_labels())
def test_weighted_votes_equal_the_definition(drawn):
    labels, weights, classes = drawn
    table = count_weighted(labels, weights, classes=classes)
    np.testing.assert_array_equal(table, by_definition(labels, weights, classes))
    assert table.dtype == np.min_scalar_type(len(labels) * weights.sum())


@settings(max_examples=30)
@given(weighted_labels())
def test_in_narrow_spans_the_votes_are_the_same(drawn):
    labels, weights, classes = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weighted, "COMPARED_AT_ONCE", 2 * labels[..., 0].size)
        patch.setattr(weighted, "width_for", lambda *_: 2)
        table = count_weighted(labels, weights, classes=classes)
    np.testing.assert_array_equal(table, by_definition(labels, weights, classes))


@pytest.mark.parametrize("voters", [255, 256, 600])
@pytest.mark.parametrize("classes", [3, 100])
def test_votes_do_not_overflow_a_byte(voters, classes):
    labels = np.ones((voters, 1, 2), np.uint8)
    labels[:3] = 0
    table = count_weighted(labels, np.array([7]), classes=classes)
    assert table[:, :2].tolist() == [[21, 7 * (voters - 3)]] * 2
    assert table.sum() == 2 * 7 * voters


def test_epochs_without_weight_leave_an_empty_table():
    for classes in (2, 50):
        table = count_weighted(np.ones((2, 3, 4), np.uint8), np.zeros(3, int), classes=classes)
        assert table.shape == (4, classes)
        assert not table.any()


def test_labels_out_of_shape_or_range_are_refused():
    with pytest.raises(PredictionError, match=r"\(network, epoch, sample\); got shape \(2, 3\)"):
        count_weighted(np.zeros((2, 3), int), np.ones(3, int), classes=2)
    with pytest.raises(PredictionError, match=r"0\.\.1 for 2 classes; got 0\.\.5"):
        count_weighted(np.array([[[0, 5]]]), np.ones(1, int), classes=2)
    with pytest.raises(PredictionError, match="the largest is 4 GiB"):
        count_weighted(np.zeros((1, 1, 2**16), int), np.ones(1, int), classes=2**16)
