import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accord.errors import ChoiceError
from accord.rules import network_agreement
from accord.rules._pair_agreement import group_sizes, measure_pair_agreement, sum_by_group
from accord.store import ArrayReader, SampleInfo
from accord.store import _record_reader as rows_module
from accord.testing import small_records
from accord.testing._contracts import reader_of

quickly = settings(max_examples=40)


@quickly
@given(small_records())
def test_shares_follow_their_definition(record):
    rows = reader_of(record)
    if rows.networks < 2:
        with pytest.raises(ChoiceError, match="needs two; there is one"):
            measure_pair_agreement(rows)
        return
    found = measure_pair_agreement(rows, groups=2)
    labels = record.labels
    for network in range(rows.networks):
        others = [other for other in range(rows.networks) if other != network]
        expected = np.mean([labels[network] == labels[other] for other in others], axis=(0, 2))
        np.testing.assert_allclose(found.by_network[network], expected)
    for group, shares in enumerate(found.by_group):
        pairs = itertools.combinations(labels[:, :, group :: len(found.by_group)], 2)
        expected = np.mean([first == second for first, second in pairs], axis=(0, 2))
        np.testing.assert_allclose(shares, expected)
        assert found.sizes[group] == len(range(group, rows.samples, len(found.by_group)))
    pairs = itertools.combinations(labels, 2)
    expected = np.mean([first == second for first, second in pairs], axis=(0, 2))
    np.testing.assert_allclose(found.agreement, expected)
    np.testing.assert_array_equal(network_agreement(rows), found.agreement)


@quickly
@given(st.integers(1, 20), st.integers(0, 30), st.integers(1, 6))
def test_a_group_adds_up_its_own_samples(samples, start, groups):
    counts = np.random.default_rng(samples).integers(0, 9, (2, samples))
    expected = np.zeros((groups, 2))
    for sample in range(samples):
        expected[(start + sample) % groups] += counts[:, sample]
    np.testing.assert_array_equal(sum_by_group(counts, start=start, groups=groups), expected)


def test_groups_that_are_left_over_have_no_samples():
    assert group_sizes(2, groups=3).tolist() == [1, 1, 0]


@quickly
@given(small_records())
def test_leaving_a_network_out_is_counting_without_it(record):
    rows = reader_of(record)
    assume(rows.networks > 2)
    found = measure_pair_agreement(rows)
    for network in range(rows.networks):
        rest = [other for other in range(rows.networks) if other != network]
        expected = network_agreement(rows.select(networks=rest))
        np.testing.assert_allclose(found.without(network), expected, atol=1e-12)


@quickly
@given(small_records())
def test_blocks_together_are_the_whole(record):
    rows = reader_of(record)
    assume(rows.networks > 1)
    whole = measure_pair_agreement(rows, groups=4)
    before = rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK
    rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK = 1, 1
    try:
        parts = measure_pair_agreement(rows, groups=4)
    finally:
        rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK = before
    np.testing.assert_array_equal(whole.by_group, parts.by_group)
    np.testing.assert_array_equal(whole.by_network, parts.by_network)


def test_epochs_counted_in_two_parts_are_the_whole():
    labels = np.random.default_rng(0).integers(0, 3, (3, 5, 20)).astype(np.uint8)
    rows = ArrayReader(labels, SampleInfo(20, 3))
    whole = measure_pair_agreement(rows)
    first, later = (
        measure_pair_agreement(rows.select(epochs=at)) for at in (range(2), range(2, 5))
    )
    joined = first.then(later)
    for name in ("agreement", "by_network", "by_group"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
        expected = getattr(whole, name)[..., :2]
        np.testing.assert_array_equal(getattr(whole.first(2), name), expected)
    assert (joined.epochs, whole.first(2).epochs) == (5, 2)


def test_of_two_networks_neither_can_be_left_out():
    found = measure_pair_agreement(ArrayReader(np.zeros((2, 1, 3), np.uint8), SampleInfo(3, 2)))
    with pytest.raises(ChoiceError, match="no pair would be left"):
        found.without(0)
