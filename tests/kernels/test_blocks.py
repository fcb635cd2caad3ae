import numpy as np
import pytest
from drawn_labels import labels_and_classes
from hypothesis import given

from accord.kernels._blocks import block_at, columns_for, narrow, smallest_type, spans, width_for


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
