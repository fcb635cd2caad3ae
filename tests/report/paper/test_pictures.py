"""A sample's picture becomes rows of colours, whatever form the pictures have."""

import numpy as np
import pytest

from accord.errors import ChoiceError
from accord.experiments.paper._figure_numbers import MOST_PIXELS, picture_of


def test_no_pictures_give_none():
    assert picture_of(None, 0, samples=4) is None


def test_bytes_in_colour_stay_as_they_are():
    pictures = np.arange(2 * 2 * 3 * 3, dtype=np.uint8).reshape(2, 2, 3, 3)
    assert picture_of(pictures, 1, samples=2) == pictures[1].tolist()


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 2, 2, 1)])
def test_grey_is_all_three_colours(shape):
    pictures = np.array([0, 0, 0, 0, 0, 64, 128, 255], np.uint8).reshape(shape)
    greys = [[[0] * 3, [64] * 3], [[128] * 3, [255] * 3]]
    assert picture_of(pictures, 1, samples=2) == greys


def test_fractions_become_bytes():
    assert picture_of(np.array([[[0.0, 0.5, 1.0]]]), 0, samples=1) == [
        [[0] * 3, [128] * 3, [255] * 3]
    ]


@pytest.mark.parametrize(("side", "left"), [(MOST_PIXELS, 64), (MOST_PIXELS + 1, 33), (224, 56)])
def test_large_pictures_are_thinned_not_cut(side, left):
    ramp = np.linspace(0, 1, side)
    (row, *_) = rows = picture_of(np.broadcast_to(ramp, (1, side, side)), 0, samples=1)
    assert len(row) == len(rows) == left
    assert row[-1][0] >= 245


@pytest.mark.parametrize("shape", [(5, 8, 8), (4, 8), (4, 3, 8, 8), (4, 8, 0), (4, 8, 8, 3, 1)])
def test_another_shape_is_refused(shape):
    with pytest.raises(ChoiceError, match=r"shape \(4, height, width\).*got \(.*colour axis"):
        picture_of(np.zeros(shape), 0, samples=4)


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan")])
def test_standardised_pictures_are_refused(value):
    with pytest.raises(ChoiceError, match=r"float64 must lie in 0\.\.1; got .*standardised"):
        picture_of(np.full((1, 2, 2), value), 0, samples=1)


def test_integers_beyond_a_byte_are_refused():
    with pytest.raises(ChoiceError, match=r"must lie in 0\.\.255; got 256\.\.256"):
        picture_of(np.full((1, 2, 2), 256), 0, samples=1)
