"""The embedded digits as a data set."""

import numpy as np
import pytest

from accord.data import read_dataset
from accord.data.readers.digits import load_digits, split_digits
from accord.errors import ChoiceError


def test_digits_are_split_as_before_and_spread_over_bytes():
    dataset = read_dataset("digits", seed=3, train_share=0.5)
    train, test = split_digits(load_digits(), seed=3, train_share=0.5)
    np.testing.assert_array_equal(dataset.train.labels, train.labels)
    np.testing.assert_array_equal(dataset.test.labels, test.labels)
    assert dataset.train.inputs.dtype == np.uint8
    assert (dataset.train.inputs.min(), dataset.train.inputs.max()) == (0, 255)
    np.testing.assert_array_equal(np.rint(dataset.train.inputs[:, 0] / 255 * 16), train.images)


def test_a_path_is_refused(tmp_path):
    with pytest.raises(ChoiceError, match="digits come with Accord and take no path"):
        read_dataset("digits", tmp_path)
