"""Networks, epochs and samples are selected as numpy would index them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import ChoiceError
from accord.store._selection import as_slice, check_numbers, check_positions, pick, whole_numbers

VALUES = np.arange(4 * 5 * 6).reshape(4, 5, 6)


def some_of(size):
    return st.lists(st.integers(0, size - 1), unique=True)


@given(some_of(4), some_of(5), st.integers(0, 6), st.integers(0, 6))
def test_values_are_picked_along_each_axis(networks, epochs, start, stop):
    picked = pick(VALUES, networks, epochs, slice(start, stop))
    expected = [[VALUES[n, e, start:stop].tolist() for e in epochs] for n in networks]
    assert picked.tolist() == expected


@given(some_of(9))
def test_a_slice_stands_for_the_same_positions(positions):
    found = as_slice(positions)
    assert (list(range(9)[found]) if isinstance(found, slice) else found) == positions


def test_picked_memory_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        pick(VALUES, [0, 1], [0], slice(None))[...] = 0


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda: check_numbers("r", [3], (1, 2)), "r: no network 3; there are 1, 2"),
        (lambda: check_numbers("r", [1, 1], (1, 2)), "selected twice"),
        (lambda: check_positions("r", "epoch", (), 3), "no epoch is selected; there are 3"),
        (lambda: check_positions("r", "epoch", (0, 0), 3), "same epoch is selected twice"),
        (lambda: check_positions("r", "epoch", (3,), 3), r"epochs must lie in 0\.\.2"),
        (lambda: whole_numbers("r", "networks", [0.5]), "networks must be a list of whole"),
    ],
)
def test_selections_that_do_not_exist_are_refused(check, words):
    with pytest.raises(ChoiceError, match=words):
        check()
