"""An axis shows what matters, and a value that it leaves out is told in words."""

import numpy as np
import pytest

from accord.report._drawing import draw_by_epochs, new_axes, styled


def drawn(sizes, accuracy, voted=0.7):
    with styled("test"):
        _, axes = new_axes((374, 236), right=131)
        draw_by_epochs(axes, sizes, np.array(accuracy), voted)
    return axes


def test_the_first_of_several_sizes_does_not_stretch_the_axis_but_is_told():
    axes = drawn([1, 2, 4], [0.1, 0.8, 0.9])
    assert axes.get_ylim()[0] == pytest.approx(0.68)
    assert "↓ 10.0" in [text.get_text() for text in axes.texts]


def test_an_only_size_is_on_the_axis():
    axes = drawn([1], [0.1])
    assert axes.get_ylim()[0] < 0.1
    assert not any("↓" in text.get_text() for text in axes.texts)


def test_a_note_of_a_hidden_point_is_clear_of_the_majority():
    axes = drawn([1, 2, 4, 8], [0.44, 0.69, 0.88, 0.9], voted=0.64)
    (note,) = (text for text in axes.texts if "↓" in text.get_text())
    shape = note.get_window_extent()
    _, line = axes.transData.transform((1, 0.64))
    assert shape.y0 > line
    axes = drawn([1, 2, 4, 8], [0.1, 0.5, 0.8, 0.9], voted=0.8)
    (note,) = (text for text in axes.texts if "↓" in text.get_text())
    assert note.get_position()[1] == 0.02
