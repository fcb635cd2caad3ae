"""Ranks keep the order of classes, so no kernel can tell them from classes."""

import numpy as np
import pytest
from hypothesis import given

from accord.kernels._blocks import block_at, columns_for, narrow
from accord.testing._contracts import labels_and_classes


@given(labels_and_classes())
def test_ranks_number_the_classes_voted_for_in_order(drawn):
    labels, classes = drawn
    block = narrow(block_at(labels, slice(0, labels.shape[-1]), classes), most=0)
    assert block.classes <= labels[..., 0].size
    np.testing.assert_array_equal(block.named(block.labels), labels)
    for sample, names in enumerate(block.names):
        voted = np.unique(labels[..., sample])
        np.testing.assert_array_equal(names[: voted.size], voted)
        assert block.labels[..., sample].max() + 1 == voted.size


def test_few_classes_keep_their_names():
    block = block_at(np.zeros((5, 2), np.uint8), slice(0, 2), 256)
    assert narrow(block) is block


@pytest.mark.parametrize(
    ("voters", "classes", "columns"), [(5, 10, 10), (5, 1000, 5), (1000, 10_000, 10_000)]
)
def test_the_table_has_a_column_per_class_or_per_voter(voters, classes, columns):
    assert columns_for(voters, classes) == columns
