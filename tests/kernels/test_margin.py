"""Margins are differences of agreement, as the paper states them."""

import numpy as np
import pytest
from hypothesis import given, settings

from accord.kernels import final_margins, margins
from accord.testing._contracts import labels_and_classes


def majority(labels):
    return min((-labels.count(label), label) for label in labels)[1]


def lead(votes, label):
    """The votes of a class less those of the best other class, as a share of all."""
    others = [votes.count(other) for other in votes if other != label]
    return (votes.count(label) - max(others, default=0)) / len(votes)


def columns(labels):
    return labels.reshape(-1, labels.shape[-1]).T.tolist()


@pytest.mark.usefixtures("engine")
@given(labels_and_classes())
def test_margin_is_best_less_second_best(drawn):
    labels, classes = drawn
    found = margins(labels, classes=classes)
    assert found.dtype == np.float64
    assert found.tolist() == [lead(votes, majority(votes)) for votes in columns(labels)]


@pytest.mark.usefixtures("engine")
@given(labels_and_classes())
def test_final_margin_is_that_of_the_last_majority(drawn):
    labels, classes = drawn
    last = [majority(votes) for votes in columns(labels[:, -1])]
    expected = [lead(votes, label) for votes, label in zip(columns(labels), last, strict=True)]
    found = final_margins(labels, classes=classes)
    assert found.dtype == np.float64
    assert found.tolist() == expected


@pytest.mark.usefixtures("loops")
@settings(max_examples=20)
@given(labels_and_classes())
def test_seeing_every_epoch_twice_changes_no_margin(drawn):
    labels, classes = drawn
    twice = np.concatenate([labels, labels], axis=1)
    for kernel in (margins, final_margins):
        np.testing.assert_array_equal(
            kernel(twice, classes=classes), kernel(labels, classes=classes)
        )


@pytest.mark.usefixtures("engine")
def test_a_class_without_rivals_leads_by_its_full_share():
    labels = np.zeros((3, 2, 4), np.uint8)
    assert margins(labels, classes=1).tolist() == [1.0] * 4
    assert final_margins(labels, classes=1).tolist() == [1.0] * 4


@pytest.mark.usefixtures("engine")
def test_a_tie_has_no_margin():
    assert margins(np.array([[1], [2], [2], [1]]), classes=3).tolist() == [0.0]
