import numpy as np
from hypothesis import given

from accord.kernels import _pairs as matching
from accord.kernels._pairs import count_matching_pairs
from accord.testing._contracts import labels_and_classes


@given(labels_and_classes())
def test_pairs_are_what_comparing_one_by_one_gives(drawn):
    labels, _ = drawn
    flat = labels.reshape(-1, labels.shape[-1])
    expected = [[np.sum(one == other) for other in flat] for one in flat]
    np.testing.assert_array_equal(count_matching_pairs(flat), expected)


def test_samples_may_be_compared_in_parts(monkeypatch):
    labels = np.random.default_rng(0).integers(0, 3, (4, 11))
    whole = count_matching_pairs(labels)
    monkeypatch.setattr(matching, "COMPARED_AT_ONCE", 4)
    np.testing.assert_array_equal(count_matching_pairs(labels), whole)
