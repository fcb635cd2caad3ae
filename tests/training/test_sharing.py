"""Networks shared out among processes are the same to the last bit, and shared where it pays."""

import time

import numpy as np
import pytest
import torch
from killing import kill_crews, kill_run_after

import accord
from accord.errors import ChoiceError, RecordBusy
from accord.store import check_record
from accord.training import _settings as settings
from accord.training import _workers as crew
from accord.training import run as run_module
from accord.training import run as sharing
from accord.training._checkpoints import checkpoints_in, load_checkpoint
from accord.training._settings import THREAD_SETTINGS, torch_threads
from accord.training.run import train, train_network
from accord.training.spec import parse_spec

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


def go(out, text=TEXT, **options):
    return train(parse_spec(text), out, source=text, **options)


def assert_same(one, other):
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
    assert go(out, processes=1).failed == {}
    return out


@pytest.fixture
def begun(monkeypatch):
    """Let every process pay, and note how many were begun."""
    noted = []
    real = sharing.Crew.begin

    def begin(crew, processes):
        noted.append(processes)
        real(crew, processes)

    monkeypatch.setattr(sharing.Crew, "begin", begin)
    monkeypatch.setattr(crew, "WORTH", 0.0)
    for name in THREAD_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    with torch_threads(2):
        yield noted


def test_networks_trained_in_several_processes_are_the_same(whole, tmp_path):
    seen = []
    result = go(tmp_path / "run", processes=2, progress=lambda *one: seen.append(one))
    assert (result.failed, len(seen)) == ({}, 12)
    assert_same(tmp_path / "run", whole)
    for network in range(3):
        assert [one[2] for one in seen if one[0] == network] == [1.0, 2.0, 3.0, 4.0]
    assert len((tmp_path / "run/metrics.csv").read_text().splitlines()) == 13
    seen.clear()
    go(tmp_path / "run", processes=2, progress=lambda *one: seen.append(one))
    assert seen == []


def test_processes_begin_by_themselves_where_they_pay(whole, tmp_path, begun):
    go(tmp_path / "run")
    assert [number for number in begun if number] == [1]
    assert_same(tmp_path / "run", whole)
    assert torch.get_num_threads() == 2


def test_no_process_begins_where_the_rest_is_quickly_done(tmp_path, begun, monkeypatch):
    monkeypatch.setattr(crew, "WORTH", 4.0)
    go(tmp_path / "run")
    assert not any(begun)


def test_no_process_begins_for_networks_that_take_all_threads(tmp_path, begun, monkeypatch):
    monkeypatch.setattr(settings, "SMALL_STEP", 0)
    go(tmp_path / "run")
    assert not any(begun)


def test_no_process_begins_where_someone_shares_out_the_cores(tmp_path, begun, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    go(tmp_path / "run")
    assert not any(begun)


def test_no_process_begins_for_what_was_finished_before(tmp_path, begun):
    go(tmp_path / "run", networks=[1, 2], processes=1)
    begun.clear()
    go(tmp_path / "run")
    assert not any(begun)


def test_a_network_stopped_in_another_process_is_named_as_in_this(tmp_path):
    text = TEXT.replace("networks = 3", "networks = [{}, { lr = 1e30 }, { lr = 1e30 }]")
    seen = []
    result = go(tmp_path / "run", text, processes=2, progress=lambda *one: seen.append(one[0]))
    assert list(result.failed) == [1, 2]
    assert all("the loss became" in why for why in result.failed.values())
    assert set(seen) == {0}


class Stop(Exception):
    """Ends a training from within."""


def test_a_network_that_another_run_holds_is_refused(tmp_path):
    def meanwhile(*_):
        with pytest.raises(RecordBusy, match="another recorder holds this network"):
            go(tmp_path / "run", networks=[1, 2], processes=2)
        raise Stop

    with pytest.raises(Stop):
        go(tmp_path / "run", networks=[2], processes=1, progress=meanwhile)


def test_a_process_that_was_killed_is_named_and_the_run_goes_on(whole, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        kill_crews(patch)
        result = go(tmp_path / "run", processes=2)
    assert result.failed
    assert all("was killed by signal 9" in why for why in result.failed.values())
    assert go(tmp_path / "run", processes=2).failed == {}
    assert_same(tmp_path / "run", whole)


@pytest.mark.slow
def test_a_shared_run_killed_at_any_moment_gives_the_same_bits(whole, tmp_path):
    out = tmp_path / "run"
    for rows in (2, 6, 9):
        kill_run_after(rows, TEXT, out, processes=2)
        assert check_record(out / "test").sound
    deadline = time.monotonic() + 60
    while True:  # until the last of the killed run's processes has died, too
        try:
            go(out, processes=2)
            break
        except RecordBusy:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert_same(out, whole)


def test_too_few_processes_and_several_on_a_gpu_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ChoiceError, match="at least 1 process; got 0"):
        go(tmp_path / "run", processes=0)
    monkeypatch.setattr(run_module, "choose_device", lambda: torch.device("cuda"))
    with pytest.raises(ChoiceError, match="a GPU trains all networks of a run side by side"):
        go(tmp_path / "run", processes=2)
    assert not (tmp_path / "run").exists()


def test_one_network_is_trained_as_a_process_does(whole, tmp_path):
    told = []
    spec = parse_spec(TEXT).model_dump_json()
    for network in range(3):
        stopped = train_network(
            spec=spec,
            out=str(tmp_path / "run"),
            source=TEXT,
            network=network,
            tell=lambda progress, _: told.append(progress),
        )
        assert stopped is None
    assert told == [1.0, 2.0, 3.0, 4.0] * 3
    assert_same(tmp_path / "run", whole)
