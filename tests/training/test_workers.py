"""Worker processes train the same bits, report failures, and end with their parent."""

import contextlib
import json
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from killing import TIMEOUT, is_alive, kill_run_after, wait_until

import accord
from accord.errors import RecordBusy
from accord.store import check_record
from accord.training import Progress, Run, _workers, parse_spec, train
from accord.training._checkpoints import checkpoints_in, load_checkpoint
from accord.training._workers import COMMAND, train_in_workers

TEXT = """
name = "shared"
[data]
kind = "digits"
per_class = 20
[noise]
kind = "symmetric"
rate = 0.4
[train]
networks = 3
network = "small-cnn"
options = { width = 4 }
epochs = 4
batch = 64
optimizer = { lr = 0.02 }
[record]
splits = ["test", "train"]
checkpoints = 2
"""


def train_text(out, text=TEXT, **options):
    return train(parse_spec(text), out, source=text, **options)


def assert_same_run(one, other):
    for split in ("test", "train"):
        labels = [np.asarray(accord.open(out / split).labels) for out in (one, other)]
        np.testing.assert_array_equal(*labels)
    for network in range(3):
        folders = [out / "checkpoints" / f"network-{network:03d}" for out in (one, other)]
        for paths in zip(*(checkpoints_in(folder).values() for folder in folders), strict=True):
            ours, theirs = map(load_checkpoint, paths)
            assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "whole"
    assert train_text(out, processes=1).failed == {}
    return out


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path / "run", parse_spec(TEXT))


@pytest.fixture
def fake_worker(monkeypatch):
    """Replace the program of a worker by a few lines of Python, with `job` and `send`."""

    def install(lines):
        program = (
            "import json, os, sys, time\n"
            "job = json.loads(sys.stdin.readline())\n"
            "def send(**event): print(json.dumps(event), flush=True)\n"
            "def progress(epoch, loss=0.0):\n"
            "    send(network=job['network'], epoch=epoch, epochs=4, loss=loss)\n"
        )
        monkeypatch.setattr(_workers, "COMMAND", (sys.executable, "-c", program + lines))

    return install


def test_networks_trained_in_workers_have_the_same_bits(whole, tmp_path):
    seen = []
    result = train_text(tmp_path / "run", processes=2, progress=seen.append)
    assert result.failed == {}
    assert_same_run(tmp_path / "run", whole)
    for network in range(3):
        epochs = [event.epoch for event in seen if event.network == network]
        assert epochs == [1.0, 2.0, 3.0, 4.0]
    assert len((tmp_path / "run/metrics.csv").read_text().splitlines()) == 13


def test_a_network_that_fails_in_a_worker_is_reported(tmp_path):
    text = TEXT.replace("networks = 3", "networks = [{}, { lr = 1e30 }, { lr = 1e30 }]")
    seen = []
    result = train_text(tmp_path / "run", text, processes=2, progress=seen.append)
    assert list(result.failed) == [1, 2]
    assert all("the loss became" in why for why in result.failed.values())
    assert {event.network for event in seen} == {0}


def test_an_error_raised_in_a_worker_is_raised_here(tmp_path):
    class Stop(Exception):
        pass

    def train_again(_):
        with pytest.raises(RecordBusy, match="another recorder holds this network"):
            train_text(tmp_path / "run", networks=[1, 2], processes=2)
        raise Stop

    with pytest.raises(Stop):
        train_text(tmp_path / "run", networks=[2], processes=1, progress=train_again)


def test_events_arrive_in_order_and_limits_hold(run, fake_worker):
    fake_worker("progress(1); progress(2); send()")
    events = list(train_in_workers(run, run.networks, 2))
    for network in range(3):
        assert [e for e in events if e.network == network] == [
            Progress(network, 1, 4, 0.0),
            Progress(network, 2, 4, 0.0),
        ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("os.kill(os.getpid(), 9)", "was killed by signal 9, as happens when memory runs out."),
        ("1 / 0", "ended with status 1 (ZeroDivisionError: division by zero)."),
        ("print('{\"netw', end='')", "ended with status 0."),
    ],
)
def test_a_worker_that_ends_early_is_reported_and_the_others_continue(
    run, fake_worker, lines, message
):
    fake_worker(f"if job['network'] == 1:\n    {lines}\nelse:\n    progress(4); send()")
    events = list(train_in_workers(run, run.networks, 1))
    assert [event.network for event in events] == [0, 1, 2]
    expected = f"its worker process {message} Start the run again to resume it."
    assert [event.error for event in events] == [None, expected, None]


def test_a_run_whose_workers_were_killed_resumes(whole, tmp_path, fake_worker, monkeypatch):
    with monkeypatch.context():
        fake_worker("os.kill(os.getpid(), 9)")
        assert list(train_text(tmp_path / "run", processes=2).failed) == [0, 1, 2]
    monkeypatch.setattr(_workers, "COMMAND", COMMAND)
    assert train_text(tmp_path / "run", processes=2).failed == {}
    assert_same_run(tmp_path / "run", whole)


def test_workers_are_killed_when_the_caller_stops_early(run, fake_worker):
    fake_worker("progress(1, loss=os.getpid()); time.sleep(10_000)")
    with contextlib.closing(train_in_workers(run, run.networks, 2)) as events:
        pids = [int(next(events).loss) for _ in range(2)]
        assert all(map(is_alive, pids))
    assert not any(map(is_alive, pids))


def test_a_worker_exits_when_its_parent_does(tmp_path):
    text = TEXT.replace("epochs = 4", "epochs = 1000000")
    run = Run.create(tmp_path / "run", parse_spec(text), source=text)
    job = {"run": str(run.path), "spec": run.spec.model_dump_json(), "network": 1, "threads": 1}
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        try:
            worker.stdin.write(json.dumps(job).encode() + b"\n")
            worker.stdin.flush()
            assert json.loads(worker.stdout.readline())["network"] == 1
            worker.stdin.close()  # as the kernel does when the parent dies
            assert worker.wait(timeout=TIMEOUT) == 1
        finally:
            worker.kill()


def test_a_network_is_trained_here_if_no_worker_can_start(whole, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError("no memory")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert train_text(tmp_path / "run", processes=2).failed == {}
    assert_same_run(tmp_path / "run", whole)


def test_a_worker_finds_the_modules_that_this_process_finds(tmp_path, monkeypatch):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "only_here.py").write_text(
        "from accord.training.networks import build\n"
        "def net(**shape):\n"
        "    return build('small-cnn', seed=0, width=4, **shape)\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "modules")
    old = 'network = "small-cnn"\noptions = { width = 4 }'
    text = TEXT.replace(old, 'network = "only_here:net"').replace("epochs = 4", "epochs = 1")
    assert train_text(tmp_path / "run", text, networks=[0, 1], processes=2).failed == {}
    sys.modules.pop("only_here")


@pytest.mark.slow
def test_a_run_killed_at_any_time_resumes_to_the_same_bits(whole, tmp_path):
    out = tmp_path / "run"
    for epochs in (2, 6, 9):
        kill_run_after(epochs, TEXT, out, processes=2)
        assert check_record(out / "test").sound

    def all_workers_have_ended():
        try:
            return train_text(out, processes=2).failed == {}
        except RecordBusy:
            time.sleep(0.05)
            return False

    wait_until(all_workers_have_ended)
    assert_same_run(out, whole)
