"""Axes, labels and panels of figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.report._drawing import draw_by_epochs, new_axes, spread, styled


def drawn(sizes, accuracy, voted=0.7):
    with styled("test"):
        _, axes = new_axes((374, 236), right=131)
        draw_by_epochs(axes, sizes, np.array(accuracy), voted)
    return axes


def test_the_axis_leaves_out_the_first_of_several_sizes_and_notes_its_value():
    axes = drawn([1, 2, 4], [0.1, 0.8, 0.9])
    assert axes.get_ylim()[0] == pytest.approx(0.68)
    assert "↓ 10.0" in [text.get_text() for text in axes.texts]


def test_a_single_size_is_on_the_axis():
    axes = drawn([1], [0.1])
    assert axes.get_ylim()[0] < 0.1
    assert not any("↓" in text.get_text() for text in axes.texts)


def test_a_note_of_a_hidden_point_does_not_cover_the_majority():
    axes = drawn([1, 2, 4, 8], [0.44, 0.69, 0.88, 0.9], voted=0.64)
    (note,) = (text for text in axes.texts if "↓" in text.get_text())
    shape = note.get_window_extent()
    _, line = axes.transData.transform((1, 0.64))
    assert shape.y0 > line
    axes = drawn([1, 2, 4, 8], [0.1, 0.5, 0.8, 0.9], voted=0.8)
    (note,) = (text for text in axes.texts if "↓" in text.get_text())
    assert note.get_position()[1] == 0.02


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
