"""The time of training is kept from its first moment on, and added to what was there."""

import json

import pytest

from accord.errors import SourceError
from accord.experiments.paper._required_runs import EFFORT, Stopwatch, effort_of, machine_name

MOMENT = (0, 5, 1.0, 4, 0.5)


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_nothing_is_written_before_the_first_moment(tmp_path):
    Stopwatch(tmp_path / "run", "a machine")
    assert not (tmp_path / "run").exists()
    assert effort_of(tmp_path / "run") is None


def test_every_moment_is_kept_and_passed_on(tmp_path, clock):
    told = []
    watch = Stopwatch(tmp_path, "a machine", lambda *moment: told.append(moment))
    clock[0] += 2
    watch.moment(*MOMENT)
    assert effort_of(tmp_path) == {"machine": "a machine", "seconds": 2.0}
    clock[0] += 3
    watch.moment(*MOMENT)
    assert effort_of(tmp_path) == {"machine": "a machine", "seconds": 5.0}
    assert told == [MOMENT, MOMENT]


def test_time_is_added_to_what_was_there(tmp_path, clock):
    for machine, seconds in (("one GPU", 2), ("2 cores", 3), ("one GPU", 4)):
        watch = Stopwatch(tmp_path, machine)
        clock[0] += seconds
        watch.moment(*MOMENT)
    assert effort_of(tmp_path) == {"machine": "one GPU, then 2 cores", "seconds": 9.0}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"machine": "m", "seconds": "long"}', "\xff"])
def test_a_damaged_file_is_named_with_the_cure(text, tmp_path):
    (tmp_path / EFFORT).write_bytes(text.encode("latin-1"))
    with pytest.raises(SourceError, match=r"effort\.json: does not say who trained.*Remove it"):
        effort_of(tmp_path)


def test_what_is_kept_can_be_read_by_anyone(tmp_path):
    Stopwatch(tmp_path, "m").moment(*MOMENT)
    assert json.loads((tmp_path / EFFORT).read_text("utf-8")).keys() == {"machine", "seconds"}


@pytest.mark.parametrize(("threads", "words"), [(1, "1 core, "), (2, "2 cores, ")])
def test_cores_are_counted(threads, words, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.get_num_threads", lambda: threads)
    assert machine_name().startswith(words)


def test_a_gpu_is_named(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "NVIDIA H200")
    assert machine_name() == "one NVIDIA H200"


def test_a_machine_whose_name_is_part_of_another_is_told_too(tmp_path, clock):
    for machine in ("12 cores, x86_64", "2 cores, x86_64"):
        Stopwatch(tmp_path, machine).moment(*MOMENT)
    assert effort_of(tmp_path)["machine"] == "12 cores, x86_64, then 2 cores, x86_64"
