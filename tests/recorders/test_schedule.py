"""The recording schedule: multiples of `every`, and the last epoch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord._recorders.schedule import RecordedEpochs, Schedule
from accord.errors import ChoiceError


@given(parts=st.integers(1, 100), factor=st.integers(1, 30), epochs=st.integers(1, 50))
def test_every_fraction_of_every_epoch_is_due_once(parts, factor, epochs):
    steps = parts * factor
    schedule = Schedule(1 / parts)
    previous, due = 0.0, []
    for epoch in range(epochs):
        for step in range(steps):
            progress = epoch + (step + 1) / steps
            schedule.check_step(previous, progress)
            if schedule.is_due(progress, recorded=previous):
                due.append((epoch, step + 1))
            previous = progress
    wanted = [(e, factor * (part + 1)) for e in range(epochs) for part in range(parts)]
    assert due == wanted


@given(
    every=st.sampled_from([0.1, 0.25, 0.5, 1, 2, 3, 7]),
    epochs=st.integers(1, 12),
    steps=st.integers(10, 30),
)
def test_progress_and_steps_give_the_same_rows(every, epochs, steps):
    schedule, recorded, found = Schedule(every), 0.0, []
    for epoch in range(epochs):
        for step in range(1, steps + 1):
            progress = epoch + step / steps
            if schedule.is_due(progress, recorded=recorded, last=progress == epochs):
                found.append((epoch, step))
                recorded = progress
    planned = RecordedEpochs(epochs, every, steps)
    assert found == [(epoch, step) for epoch in range(epochs) for step in planned.steps_in(epoch)]
    assert [planned.index(*one) for one in found] == list(range(len(planned)))
    assert recorded == epochs  # the last epoch is always recorded


def test_a_multiple_between_two_steps_is_due_after_the_later_one():
    schedule = Schedule(0.5)
    assert [schedule.rows_due(step / 7) for step in range(1, 8)] == [0, 0, 0, 1, 1, 1, 2]


def test_a_row_can_cover_several_epochs():
    schedule = Schedule(3)
    assert [schedule.rows_due(epoch) for epoch in range(8)] == [0, 0, 0, 1, 1, 1, 2, 2]


def test_the_last_epoch_is_due_once():
    schedule = Schedule(2)
    assert not schedule.is_due(5, recorded=4)
    assert schedule.is_due(5, recorded=4, last=True)
    assert not schedule.is_due(5, recorded=5, last=True)


def test_longer_training_continues_the_schedule_after_the_old_last_epoch():
    schedule = Schedule(2)
    assert [e for e in (6, 7, 8) if schedule.is_due(e, recorded=5)] == [6, 7, 8]
    assert not schedule.is_due(7, recorded=6)


@pytest.mark.parametrize("every", [0, -1, 0.3, 1.5, float("nan"), float("inf"), 1e-320])
def test_other_fractions_are_refused(every):
    with pytest.raises(ChoiceError, match=rf"such as 0\.1; got {every}"):
        Schedule(every)


def test_a_step_past_two_rows_is_refused():
    with pytest.raises(
        ChoiceError, match=r"every=0\.1 requires.*from progress 0 to 0\.25\. Record less"
    ):
        Schedule(0.1).check_step(0, 0.25)
    Schedule(0.1).check_step(0, 0.125)
