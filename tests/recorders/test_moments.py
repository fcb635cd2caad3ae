"""Rows are due whenever progress passes a multiple of `every`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord._recorders.schedule import Moments
from accord.errors import ChoiceError


@given(parts=st.integers(1, 100), factor=st.integers(1, 30), epochs=st.integers(1, 50))
def test_every_part_of_every_epoch_is_passed_once(parts, factor, epochs):
    steps = parts * factor
    moments = Moments(1 / parts)
    previous, due = 0.0, []
    for epoch in range(epochs):
        for step in range(steps):
            progress = epoch + (step + 1) / steps
            moments.check_step(previous, progress)
            if moments.passed(progress) > moments.passed(previous):
                due.append((epoch, step + 1))
            previous = progress
    wanted = [(e, factor * (part + 1)) for e in range(epochs) for part in range(parts)]
    assert due == wanted


def test_a_moment_between_two_steps_is_passed_by_the_later_one():
    moments = Moments(0.5)
    assert [moments.passed(step / 7) for step in range(1, 8)] == [0, 0, 0, 1, 1, 1, 2]


def test_several_epochs_make_one_row():
    moments = Moments(3)
    assert [moments.passed(epoch) for epoch in range(8)] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert moments.progress_of(1) == 6


@pytest.mark.parametrize("every", [0, -1, 0.3, 1.5, float("nan"), float("inf"), 1e-320])
def test_what_does_not_divide_an_epoch_is_refused(every):
    with pytest.raises(ChoiceError, match=rf"such as 0\.1; got {every}"):
        Moments(every)


def test_a_step_past_two_moments_is_refused():
    with pytest.raises(
        ChoiceError, match=r"every=0\.1 asks.*from progress 0 to 0\.25\. Record less"
    ):
        Moments(0.1).check_step(0, 0.25)
    Moments(0.1).check_step(0, 0.125)
