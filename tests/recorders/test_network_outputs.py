"""Network outputs become labels or a table of scores."""

import numpy as np
import pytest

from accord._recorders.network_outputs import (
    NOT_FINITE,
    finite_rows,
    labels_or_scores,
    two_columns,
)
from accord.errors import PredictionError


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_one_probability_leaves_the_rest_to_class_0(shape):
    values = np.array([0.25, 0.5, 0.75]).reshape(shape)
    table = labels_or_scores(values, classes=2, probabilities=True, are_logits=False)
    assert table.tolist() == [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]
    labels = labels_or_scores(values, classes=2, probabilities=False, are_logits=False)
    assert labels.tolist() == [0, 0, 1]


def test_one_logit_is_compared_with_0():
    values = np.array([-1.0, 0.0, 0.25])
    assert labels_or_scores(values, classes=2, probabilities=False).tolist() == [0, 0, 1]


def test_two_columns_returns_a_table_unchanged():
    table = np.arange(6.0).reshape(2, 3)
    assert two_columns(table) is table


def test_labels_stay_labels():
    kept = labels_or_scores(np.array([2, 0], np.uint8), classes=3, probabilities=False)
    assert kept.tolist() == [2, 0]


@pytest.mark.parametrize("probabilities", [False, True])
def test_non_finite_scores_are_marked(probabilities):
    values = np.array([[0, 1], [np.nan, 1], [np.inf, 0], [0, -np.inf]])
    kept = labels_or_scores(values, classes=2, probabilities=probabilities)
    assert finite_rows(kept).tolist() == [True, False, False, False]
    if not probabilities:
        assert kept.tolist() == [1, NOT_FINITE, NOT_FINITE, NOT_FINITE]


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 2), (4, 3, 1), ()])
def test_other_shapes_are_refused(shape):
    with pytest.raises(PredictionError, match=r"for 3 classes .* shape \(batch, 3\); got float64"):
        labels_or_scores(np.zeros(shape), classes=3, probabilities=False)
