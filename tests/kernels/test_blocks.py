"""Blocks hold labels as the loops want them, copied only if they must be."""

import numpy as np
import pytest
from hypothesis import given

from accord.kernels._blocks import block_at, smallest_type, spans, width_for
from accord.testing._contracts import labels_and_classes


@given(labels_and_classes())
def test_a_block_is_contiguous_in_the_smallest_type(drawn):
    labels, classes = drawn
    block = block_at(labels, slice(0, labels.shape[-1]), classes)
    assert block.labels.flags.c_contiguous
    assert block.labels.dtype == smallest_type(classes)
    np.testing.assert_array_equal(block.own_labels.reshape(labels.shape), labels)


def test_labels_that_can_be_read_in_place_are_not_copied():
    labels = np.zeros((2, 3, 9), np.uint8)
    block = block_at(labels, slice(4, 7), 256)
    assert np.shares_memory(block.own_labels, labels)
    assert block.width == 3


@pytest.mark.parametrize(
    ("voters", "columns", "width"),
    [(5, 10, 4096), (1000, 100, 1310), (1000, 10**6, 16), (10**5, 10, 41)],
)
def test_blocks_narrow_as_tables_or_voters_grow(voters, columns, width):
    assert width_for(voters, columns) == width


def test_spans_cover_every_sample_once():
    assert [range(9)[span] for span in spans(9, 4)] == [range(4), range(4, 8), range(8, 9)]
