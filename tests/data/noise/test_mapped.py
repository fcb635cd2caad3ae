"""Class by class, a mapping moves the share that is asked, to where it leads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.data.noise import mapped_noise, patrini_noise, superclass_noise
from accord.data.noise._generators import patrini_mapping, superclass_mapping
from accord.data.readers.cifar import (
    CIFAR10_NAMES,
    CIFAR100_NAMES,
    CIFAR100_SUPERCLASS,
    CIFAR100_SUPERCLASSES,
)
from accord.errors import ChoiceError, PredictionError

SEEDS = st.integers(0, 2**40)


@st.composite
def cases(draw):
    """Labels, and a mapping that may leave classes as they are."""
    classes = draw(st.integers(2, 8))
    number = st.integers(0, classes - 1)
    labels = draw(st.lists(number, max_size=60))
    return np.array(labels, int), draw(st.lists(number, min_size=classes, max_size=classes))


@given(cases(), st.floats(0, 1), SEEDS)
def test_each_class_that_moves_loses_its_share_and_no_other_changes(case, rate, seed):
    labels, mapping = case
    labels.flags.writeable = False
    noisy = mapped_noise(labels, rate=rate, classes=len(mapping), seed=seed, mapping=mapping)
    for label, turned in enumerate(mapping):
        came = noisy[labels == label]
        wanted = 0 if label == turned else int(rate * len(came))
        assert (came != label).sum() == wanted
        assert set(came) <= {label, turned}


def test_patrini_moves_cifar10_as_published():
    labels = np.arange(10).repeat(100)
    noisy = patrini_noise(labels, rate=0.4, classes=10, seed=0)
    went = {
        (CIFAR10_NAMES[old], CIFAR10_NAMES[new])
        for old, new in zip(labels, noisy, strict=True)
        if old != new
    }
    assert went == {
        ("truck", "automobile"),
        ("bird", "airplane"),
        ("deer", "horse"),
        ("cat", "dog"),
        ("dog", "cat"),
    }
    assert (noisy != labels).sum() == 5 * 40


def test_patrini_moves_cifar100_within_blocks_of_five():
    mapping = patrini_mapping(100)
    assert mapping[:6].tolist() == [1, 2, 3, 4, 0, 6]
    assert (mapping // 5 == np.arange(100) // 5).all()
    labels = np.arange(100).repeat(10)
    noisy = patrini_noise(labels, rate=0.45, classes=100, seed=3)
    assert (np.bincount(labels[noisy != labels]) == 4).all()  # int(0.45 * 10) of each


def test_superclasses_are_circles_of_five():
    mapping = superclass_mapping(100)
    assert sorted(mapping) == list(range(100))
    np.testing.assert_array_equal(CIFAR100_SUPERCLASS[mapping], CIFAR100_SUPERCLASS)
    five_on = np.arange(100)
    for steps in range(1, 6):
        five_on = mapping[five_on]
        assert (five_on == np.arange(100)).all() == (steps == 5)


def test_superclass_noise_moves_an_exact_share_of_all():
    labels = np.arange(100).repeat(7)
    noisy = superclass_noise(labels, rate=0.3, classes=100, seed=0)
    assert (noisy != labels).sum() == int(0.3 * 700)
    np.testing.assert_array_equal(CIFAR100_SUPERCLASS[noisy], CIFAR100_SUPERCLASS[labels])


def test_superclasses_are_those_of_the_published_files():
    # The first byte of each row of cifar-100-binary, for fine labels 0 to 99.
    published = (
        "4 1 14 8 0 6 7 7 18 3 3 14 9 18 7 11 3 9 7 11 6 11 5 10 7 6 13 15 3 15 "
        "0 11 1 10 12 14 16 9 11 5 5 19 8 8 15 13 14 17 18 10 16 4 17 4 2 0 17 4 18 17 "
        "10 3 2 12 12 16 12 1 9 19 2 10 0 1 16 12 9 13 15 13 16 19 2 4 6 19 5 5 8 19 "
        "18 1 2 15 6 0 17 8 14 13"
    )
    assert CIFAR100_SUPERCLASS.tolist() == [int(number) for number in published.split()]
    assert (len(CIFAR100_NAMES), len(CIFAR100_SUPERCLASSES)) == (100, 20)
    assert list(CIFAR100_SUPERCLASSES) == sorted(CIFAR100_SUPERCLASSES)
    assert (CIFAR100_NAMES[0], CIFAR100_NAMES[47], CIFAR100_NAMES[99]) == (
        "apple",
        "maple_tree",
        "worm",
    )


@pytest.mark.parametrize("noise", [patrini_noise, superclass_noise])
def test_other_numbers_of_classes_are_refused(noise):
    with pytest.raises(ChoiceError, match=r"is defined for CIFAR.*; got 7 classes.*kind='"):
        noise(np.array([0, 1]), rate=0.5, classes=7, seed=0)


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ([1, 0], r"each of the 3 classes; got int64 of shape \(2,\)"),
        ([1, 2, 3], r"classes must lie in 0\.\.2 .*got 1\.\.3.*counted from 1"),
    ],
)
def test_a_mapping_that_leads_nowhere_is_refused(mapping, words):
    with pytest.raises(ChoiceError, match=words):
        mapped_noise(np.array([0, 1, 2]), rate=0.5, classes=3, seed=0, mapping=mapping)


def test_labels_out_of_range_are_refused():
    with pytest.raises(PredictionError, match=r"0\.\.9 for 10 classes; got 1\.\.10"):
        patrini_noise(np.array([1, 10]), rate=0.5, classes=10, seed=0)
