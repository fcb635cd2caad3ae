"""Votes and agreement are what counting one label at a time gives."""

import numpy as np
import pytest
from hypothesis import given, settings

from accord.kernels import agreement, count_votes
from accord.testing._contracts import labels_and_classes


def by_definition(labels, classes):
    """One vote after another: slow, obvious."""
    votes = np.zeros((labels.shape[-1], classes), np.intp)
    for column, row in zip(labels.reshape(-1, labels.shape[-1]).T, votes, strict=True):
        for label in column.tolist():
            row[label] += 1
    return votes


SMALL_TABLES = labels_and_classes().filter(lambda drawn: drawn[1] < 2**32)


@pytest.mark.usefixtures("engine")
@given(SMALL_TABLES)
def test_votes_equal_the_definition(drawn):
    labels, classes = drawn
    votes = count_votes(labels, classes=classes)
    assert votes.dtype == np.intp
    np.testing.assert_array_equal(votes, by_definition(labels, classes))


@pytest.mark.usefixtures("loops")
@settings(max_examples=30)
@given(SMALL_TABLES)
def test_agreement_is_the_share_of_votes(drawn):
    labels, classes = drawn
    shares = by_definition(labels, classes) / labels[..., 0].size
    np.testing.assert_array_equal(agreement(labels, classes=classes), shares)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("voters", [255, 256, 300, 70_000])
@pytest.mark.parametrize("classes", [2, 100])
def test_votes_do_not_overflow_a_byte_or_two(voters, classes):
    labels = np.ones((voters, 2), np.uint8)
    labels[:3] = 0
    assert count_votes(labels, classes=classes)[:, :2].tolist() == [[3, voters - 3]] * 2


@pytest.mark.usefixtures("loops")
def test_many_samples_fall_into_many_blocks():
    labels = np.random.default_rng(0).integers(0, 20, (3, 10_000)).astype(np.uint8)
    votes = count_votes(labels, classes=20)
    np.testing.assert_array_equal(votes, (labels[..., None] == np.arange(20)).sum(axis=0))
