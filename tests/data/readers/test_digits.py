"""The embedded digits are scikit-learn's, and are split by class."""

import subprocess
import sys

import numpy as np
import pytest
import sklearn.datasets
from hypothesis import given
from hypothesis import strategies as st

from accord.data import read_dataset
from accord.data.readers.digits import load_digits, split_digits
from accord.errors import ChoiceError


def test_digits_are_scaled_to_bytes():
    dataset = read_dataset("digits", seed=3, train_share=0.5)
    train, test = split_digits(load_digits(), seed=3, train_share=0.5)
    np.testing.assert_array_equal(dataset.train.labels, train.labels)
    np.testing.assert_array_equal(dataset.test.labels, test.labels)
    assert dataset.train.inputs.dtype == np.uint8
    assert (dataset.train.inputs.min(), dataset.train.inputs.max()) == (0, 255)
    np.testing.assert_array_equal(np.rint(dataset.train.inputs[:, 0] / 255 * 16), train.images)
    np.testing.assert_array_equal(DIGITS.images[dataset.train.ids], train.images)
    np.testing.assert_array_equal(DIGITS.images[dataset.test.ids], test.images)


def test_a_path_is_refused(tmp_path):
    with pytest.raises(ChoiceError, match="digits come with Accord and take no path"):
        read_dataset("digits", tmp_path)


DIGITS = load_digits()


def test_digits_are_those_of_scikit_learn():
    theirs = sklearn.datasets.load_digits()
    np.testing.assert_array_equal(DIGITS.images, theirs.images)
    np.testing.assert_array_equal(DIGITS.labels, theirs.target)


def test_digits_are_small_integers():
    assert DIGITS.images.dtype == DIGITS.labels.dtype == np.uint8
    assert (DIGITS.images.min(), DIGITS.images.max()) == (0, 16)


def test_loading_digits_needs_no_scikit_learn():
    program = (
        "import sys, accord.data.readers.digits as d; d.load_digits(); "
        "assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@given(st.integers(0, 2**32), st.floats(0.05, 0.95))
def test_every_sample_lands_in_exactly_one_part(seed, share):
    train, test = split_digits(DIGITS, seed=seed, train_share=share)

    def rows(*parts):
        return sorted(part.images[i].tobytes() for part in parts for i in range(len(part.labels)))

    assert rows(train, test) == rows(DIGITS)


@given(st.integers(0, 2**32), st.floats(0.05, 0.95))
def test_each_class_is_split_by_the_same_share(seed, share):
    train, _ = split_digits(DIGITS, seed=seed, train_share=share)
    wanted = [round(share * size) for size in np.bincount(DIGITS.labels)]
    assert np.bincount(train.labels, minlength=10).tolist() == wanted


def test_images_keep_their_labels_and_their_order():
    train, _ = split_digits(DIGITS, seed=3)
    images = {image.tobytes(): i for i, image in enumerate(DIGITS.images)}
    positions = [images[image.tobytes()] for image in train.images]
    assert positions == sorted(positions)
    np.testing.assert_array_equal(train.labels, DIGITS.labels[positions])


def test_the_seed_sets_the_split():
    first, again, other = (split_digits(DIGITS, seed=seed)[0].images for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("share", [0.0, 1.0, 60, float("nan")])
def test_a_share_that_leaves_a_part_empty_is_refused(share):
    with pytest.raises(ChoiceError, match=r"between 0 and 1; got .*percentage"):
        split_digits(DIGITS, seed=0, train_share=share)
