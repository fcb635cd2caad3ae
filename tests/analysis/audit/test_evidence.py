import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from accord.analysis._audit._evidence import beyond_chance, independent_pairs

shares = st.floats(0, 1)


def document(part, rate, alike):
    """What is seen if networks contradict a part together, and the rest each at a rate."""
    share = part + (1 - part) * rate
    same = part + (1 - part) * rate**2 * alike
    return tuple(np.array([value]) for value in (same, alike * share**2, alike, share))


@drawn(st.floats(0, 0.95), st.floats(0, 0.95), shares)
def test_the_part_that_networks_contradict_together_is_found(part, rate, alike):
    same, independent, alike, share = document(part, rate, alike)
    found = beyond_chance(same, independent, alike=alike, share=share)
    assert found[0] == pytest.approx(part, abs=1e-4)


@drawn(shares, shares, shares, shares)
def test_the_part_is_a_share_of_what_is_the_same(same, independent, alike, share):
    values = [np.array([value]) for value in (same, independent)]
    found = beyond_chance(*values, alike=np.array([alike]), share=np.array([share]))
    assert 0 <= found[0] <= same
    if same <= independent:
        assert found[0] == 0


def test_networks_that_predict_one_class_do_not_agree_beyond_chance():
    predicted = np.array([[[0, 30]], [[0, 30]]])  # all predict 1 for the 30 labels 0
    same, alike = independent_pairs(predicted, np.array([[[0, 20]], [[0, 20]]]), np.array([30, 20]))
    assert (same[0], alike[0]) == (0.6, 1)
    found = beyond_chance(np.array([0.6]), same, alike=alike, share=np.array([0.6]))
    assert found[0] == 0


def test_a_class_that_is_never_given_is_never_contradicted():
    predicted = np.array([[[0, 5, 5]], [[0, 5, 5]]])
    same, alike = independent_pairs(predicted, np.array([[[0, 0, 0]]] * 2), np.array([10, 0, 0]))
    assert (same[0], alike[0]) == (0.5, 0.5)
