import pytest

from accord.training._loop import SCHEDULES, learning_rate_at
from accord.training._spec import ScheduleSpec


def rates(progress, **schedule):
    asked = ScheduleSpec(**schedule)
    return [learning_rate_at(one, schedule=asked, lr=1.0, epochs=10) for one in progress]


def test_every_schedule_of_the_spec_is_built():
    kinds = ScheduleSpec.model_fields["kind"].annotation.__args__
    assert set(kinds) == set(SCHEDULES)


def test_cosine_and_linear_fall_to_nothing():
    assert rates([0, 5, 10], kind="cosine") == pytest.approx([1, 0.5, 0])
    assert rates([0, 2.5, 10], kind="linear") == pytest.approx([1, 0.75, 0])


def test_a_cosine_falls_from_epoch_to_epoch_and_a_line_all_the_time():
    assert len(set(rates([3, 3.5, 3.99], kind="cosine"))) == 1
    assert len(set(rates([3, 3.5, 3.99], kind="linear"))) == 3


def test_constant_stays():
    assert rates([0, 9.9], kind="constant") == [1, 1]


def test_steps_fall_at_their_milestones():
    asked = {"kind": "step", "milestones": (4, 8), "factor": 0.5}
    assert rates([3.99, 4, 7.9, 8], **asked) == pytest.approx([1, 0.5, 0.5, 0.25])


def test_a_warm_up_rises_first():
    assert rates([0, 1, 2, 6, 10], kind="cosine", warmup=2) == pytest.approx([0, 0.5, 1, 0.5, 0])
