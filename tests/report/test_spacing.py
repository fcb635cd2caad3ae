"""Labels never overlap, keep their order and stay near their place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.report._drawing import spread

places = st.lists(st.floats(0, 100), min_size=1, max_size=8)


@given(places)
def test_no_two_are_closer_than_the_gap(wanted):
    placed = spread(wanted, gap=10, low=0, high=100)
    assert np.all(np.diff(sorted(placed)) >= 10 - 1e-9)
    assert min(placed) >= 0
    assert max(placed) <= 100


@given(places)
def test_order_is_kept(wanted):
    placed = spread(wanted, gap=10, low=0, high=100)
    order = np.argsort(wanted, kind="stable")
    assert np.all(np.diff(np.array(placed)[order]) > 0)


@given(st.permutations([0.0, 12.0, 40.0, 80.0]))
def test_what_is_far_enough_apart_stays(wanted):
    assert spread(wanted, gap=10, low=0, high=100) == pytest.approx(wanted)


def test_close_ones_move_equally_far():
    assert spread([50.0, 51.0], gap=11, low=0, high=100) == pytest.approx([45.0, 56.0])
