import math

import numpy as np
import pytest
from drawn_labels import labels_and_classes
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.errors import ChoiceError
from accord.kernels import (
    equally_spaced,
    subsets_of,
    winners,
    winners_by_spacing,
    winners_by_subset,
)


@pytest.mark.usefixtures("engine")
@settings(max_examples=50)
@given(labels_and_classes(), st.data())
def test_a_subset_wins_as_its_networks_alone_would(drawn, data):
    labels, classes = drawn
    some = st.lists(st.integers(0, len(labels) - 1), min_size=1, unique=True)
    subsets = data.draw(st.lists(some, min_size=1, max_size=5))
    found = winners_by_subset(labels, subsets, classes=classes)
    assert found.dtype == np.min_scalar_type(classes - 1)
    expected = [winners(labels[subset], classes=classes).labels for subset in subsets]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("engine")
@settings(max_examples=50)
@given(labels_and_classes(epochs=6))
def test_spaced_epochs_win_as_they_alone_would(drawn):
    labels, classes = drawn
    counts = range(1, labels.shape[1] + 1)
    found = winners_by_spacing(labels, counts, classes=classes)
    assert found.dtype == np.min_scalar_type(classes - 1)
    epochs = [equally_spaced(labels.shape[1], count) for count in counts]
    expected = [winners(labels[:, some], classes=classes).labels for some in epochs]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("classes", [10, 100_000])
def test_sweeps_hold_over_many_blocks(classes):
    labels = np.random.default_rng(0).integers(0, 10, (3, 4, 9000)) * (classes // 10)
    labels = labels.astype(np.min_scalar_type(classes - 1))
    first_two = winners(labels[:2], classes=classes).labels
    np.testing.assert_array_equal(
        winners_by_subset(labels, [(2,), (1, 0)], classes=classes)[1], first_two
    )
    np.testing.assert_array_equal(
        winners_by_spacing(labels, [2], classes=classes)[0],
        winners(labels[:, [0, 3]], classes=classes).labels,
    )


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 40), st.integers(0, 9))
def test_subsets_are_all_or_as_many_as_allowed(networks, size, limit, seed):
    size = min(size, networks)
    subsets = subsets_of(networks, size, limit=limit, seed=seed)
    assert len(subsets) == min(limit, math.comb(networks, size))
    assert subsets == sorted(set(subsets))
    for subset in subsets:
        assert list(subset) == sorted(set(subset) & set(range(networks)))
        assert len(subset) == size


def test_the_seed_chooses_the_subsets():
    drawn = [subsets_of(20, 10, limit=50, seed=seed) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_random_subsets_leave_no_network_out():
    drawn = subsets_of(12, 6, limit=100, seed=0)
    assert {network for subset in drawn for network in subset} == set(range(12))


@pytest.mark.parametrize("size", [0, 4])
def test_a_size_that_no_subset_has_is_refused(size):
    with pytest.raises(ChoiceError, match=rf"3 networks holds 1\.\.3; got size {size}"):
        subsets_of(3, size, limit=1, seed=0)


def test_a_limit_of_no_subset_is_refused():
    with pytest.raises(ChoiceError, match="limit must be at least 1; got 0"):
        subsets_of(3, 1, limit=0, seed=0)


@pytest.mark.parametrize("subset", [(), (0, 0), (0, 2), (-1,)])
def test_a_subset_that_cannot_be_is_refused(subset):
    with pytest.raises(ChoiceError, match=r"different networks in 0\.\.1, at least one; got \("):
        winners_by_subset(np.zeros((2, 1, 1), np.uint8), [(0,), subset], classes=2)


@given(st.integers(1, 300), st.data())
def test_equally_spaced_epochs_are_distinct_and_keep_both_ends(epochs, data):
    count = data.draw(st.integers(1, epochs))
    spaced = equally_spaced(epochs, count).tolist()
    assert len(set(spaced)) == count
    assert spaced == sorted(spaced)
    exact = np.arange(count) * (epochs - 1) / max(1, count - 1)
    assert np.abs(exact - spaced).max() < 0.5 + 1e-9


@pytest.mark.parametrize("count", [0, 5])
def test_more_epochs_than_there_are_is_refused(count):
    with pytest.raises(ChoiceError, match=rf"1\.\.4 for 4 epochs; got {count}"):
        winners_by_spacing(np.zeros((1, 4, 1), np.uint8), [count], classes=2)
