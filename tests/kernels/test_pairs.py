import numpy as np
import pytest
from hypothesis import given

from accord.kernels._pairs import count_matching_pairs
from accord.testing._contracts import labels_and_classes


@given(labels_and_classes())
def test_pairs_are_what_comparing_one_by_one_gives(drawn):
    labels, _ = drawn
    flat = labels.reshape(-1, labels.shape[-1])
    expected = [[np.sum(one == other) for other in flat] for one in flat]
    np.testing.assert_array_equal(count_matching_pairs(flat), expected)


@pytest.mark.parametrize("samples", [1, 63, 64, 65, 1000])
def test_all_bits_of_all_samples_are_compared(samples):
    labels = np.random.default_rng(0).integers(0, 1000, (4, samples)).astype(np.uint16)
    labels[1] = labels[0]
    labels[2] = labels[0] ^ 512
    labels[3, -1] = labels[0, -1]
    expected = (labels[:, np.newaxis] == labels).sum(axis=2)
    np.testing.assert_array_equal(count_matching_pairs(labels), expected)
