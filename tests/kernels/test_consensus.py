"""Error consensus counts wrong pairs by how many networks share the mistake."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from accord.errors import PredictionError
from accord.kernels import error_consensus

TYPES = st.sampled_from([np.uint8, np.uint16, np.int64])


def by_definition(labels, truth):
    """Look at each pair of a sample with a network, then at all networks again."""
    counts = [0] * len(labels)
    for column, true in zip(labels.T.tolist(), truth.tolist(), strict=True):
        for label in column:
            if label != true:
                counts[column.count(label) - 1] += 1
    return counts


@given(st.data(), st.integers(1, 6), st.integers(0, 8), TYPES, TYPES)
def test_error_consensus_equals_the_definition(data, networks, samples, kind, true_kind):
    few = st.integers(0, 2)
    labels = data.draw(arrays(kind, (networks, samples), elements=few))
    truth = data.draw(arrays(true_kind, samples, elements=few))
    found = error_consensus(labels, truth)
    assert found.dtype == np.intp
    assert found.tolist() == by_definition(labels, truth)


def test_every_wrong_pair_is_counted_once():
    random = np.random.default_rng(0)
    labels, truth = random.integers(0, 5, (300, 40)), random.integers(0, 5, 40)
    assert error_consensus(labels, truth).sum() == (labels != truth).sum()


@pytest.mark.parametrize(
    "labels", [np.zeros((0, 2), int), np.zeros((2, 2)), np.zeros((1, 1, 2), int)]
)
def test_labels_of_another_form_are_refused(labels):
    with pytest.raises(PredictionError, match=r"integers \(network, sample\).*labels\[:, -1\]"):
        error_consensus(labels, np.zeros(2, int))


@pytest.mark.parametrize("truth", [np.zeros(3, int), np.zeros(2), np.zeros((2, 1), int)])
def test_truth_that_does_not_fit_is_refused(truth):
    with pytest.raises(PredictionError, match=r"2 integers, one per sample.*another split"):
        error_consensus(np.zeros((1, 2), int), truth)
