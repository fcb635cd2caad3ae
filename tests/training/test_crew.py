"""Processes of a crew take what waits, tell of it, and die with whoever began them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import crew_tasks
import pytest
from killing import kill_crews

from accord.errors import RecordBusy
from accord.training._workers import Crew, Pace, Word


def crew(task, *networks):
    return Crew(f"crew_tasks:{task}", [{"network": network} for network in networks])


def is_alive(number):
    """Tell whether a process is there, and not only waiting to be buried."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(fact, seconds=20):
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_processes_tell_of_all_that_waits_each_in_order():
    with crew("count", 0, 1, 2) as busy:
        busy.begin(2)
        words = list(busy.rest())
    for network in (0, 2):
        told = [word for word in words if word.network == network]
        assert told == [Word(network, 1.0, 0.5), Word(network, 2.0, 0.25)]
    assert [word.stopped for word in words if word.network == 1] == [None, None, "odd"]
    assert busy.waiting == ()


def test_the_caller_takes_what_no_process_has_taken():
    with crew("count", 0, 1) as busy:
        assert (busy.begun, len(busy.waiting)) == (False, 2)
        assert busy.take() == {"network": 0}
        busy.begin(1)
        assert busy.begun
        assert {word.network for word in busy.rest()} == {1}
        assert busy.take() is None


def test_an_error_made_for_the_caller_reaches_it():
    with crew("refuse", 3) as busy:
        busy.begin(1)
        with pytest.raises(RecordBusy, match="network 3 is held by another"):
            list(busy.rest())


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ("die", "killed by signal 9, as it is where memory runs out. Started again"),
        ("raise_another", r"ended with status 1 \(ZeroDivisionError: of a bug\). Started again"),
        ("missing", "ended with status 1 (AttributeError: module 'crew_tasks' has no attribute"),
    ],
)
def test_a_process_that_ends_otherwise_is_named_with_its_last_words(task, why):
    with crew(task, 0) as busy:
        busy.begin(1)
        (word,) = busy.rest()
    assert why.replace("\\", "") in word.stopped


def test_a_process_killed_before_it_has_its_job_is_named_too(monkeypatch):
    kill_crews(monkeypatch)
    with crew("count", *range(4)) as busy:
        busy.begin(2)
        assert sorted(word.network for word in busy.rest()) == [0, 1, 2, 3]


def test_who_leaves_early_leaves_no_process_behind():
    begun = time.monotonic()
    with crew("wait", 0, 1, 2) as busy:
        busy.begin(2)
        numbers = [int(next(busy.rest()).progress) for _ in range(2)]
        assert all(map(is_alive, numbers))
    assert time.monotonic() - begun < 50
    assert not any(map(is_alive, numbers))
    assert len(busy.waiting) == 1


BEGINS = """
import sys
sys.path.insert(0, sys.argv[1])
from accord.training._workers import Crew
with Crew("crew_tasks:wait", [{"network": 0}]) as busy:
    busy.begin(1)
    for word in busy.rest():
        print(int(word.progress), flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_processes_die_with_the_one_that_began_them_however_it_dies(how):
    command = [sys.executable, "-c", BEGINS, Path(crew_tasks.__file__).parent]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        number = int(process.stdout.readline())
        assert is_alive(number)
        os.kill(process.pid, how)
        wait_until(lambda: not is_alive(number))


def test_processes_pay_where_what_is_left_takes_long(monkeypatch):
    clock = iter([0.0, 1.0, 2.0, 50.0, 51.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    pace = Pace(30, seconds=2.0)  # 28 s of training or more pay
    assert not pace.pays(1.0, waiting=4)  # nothing has been seen yet
    assert not pace.pays(2.0, waiting=0)
    assert pace.pays(3.0, waiting=1)  # 57 s
    assert not pace.pays(1.0, waiting=1)  # another network, of which nothing has been seen
    assert not pace.pays(3.0, waiting=0)


def test_what_is_done_here_and_elsewhere_is_told_as_one():
    def alone(job):
        yield "here"

    with crew("count", 0, 1, 2) as busy:
        told = list(busy.share(alone, lambda _: 2))
    assert told[0] == (0, "here")
    assert {network for network, _ in told} == {0, 1, 2}


def test_what_no_process_can_begin_is_done_here(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no memory")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with crew("count", 0, 1, 2) as busy:
        told = list(busy.share(lambda job: (one for one in [job["network"]]), lambda _: 2))
    assert sorted(told) == [(0, 0), (1, 1), (2, 2)]


def test_a_process_sees_the_modules_that_this_one_sees(tmp_path, monkeypatch):
    text = "def see(*, network, tell):\n    tell(7.0, 0.0)\n"
    (tmp_path / "only_here.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with Crew("only_here:see", [{"network": 0}]) as busy:
        busy.begin(1)
        assert [word.progress for word in busy.rest()] == [7.0]
