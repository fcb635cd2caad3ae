"""Training on a cluster: workers, the watcher of the record, and the driver."""

import contextlib
import os
import platform
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from recorded import write_record
from small_spec import SMALL

import accord
from accord._recorder import Recorder
from accord.errors import (
    ChoiceError,
    ClusterError,
    NodeUnfit,
    RecordBusy,
    SourceError,
    SpecError,
)
from accord.experiments.cluster import _remote_train, train_remotely
from accord.experiments.cluster._ray import (
    Resources,
)
from accord.experiments.cluster._remote_train import (
    RecordWatcher,
    log_path,
    publish_spec,
    train_one,
)
from accord.training import Progress, parse_spec, train

SPEC = parse_spec(SMALL)


def task_of(out, network=0, **changes):
    values = {
        "out": str(out),
        "spec": SPEC.model_dump_json(),
        "source": SMALL,
        "network": network,
        "digest": publish_spec(out, changes.get("source", SMALL)),
        "folder": str(Path.cwd()),
        "patience": 0.0,
    }
    return {**values, **changes}


@pytest.fixture(autouse=True)
def restore_working_directory():
    with contextlib.chdir("."):
        yield


def _recorder_options(out):
    """Return the options of a run's recorder of network 1."""
    record = accord.open(out / "test", networks=[0])
    metadata = {**record.networks_info[0].metadata, "number": 1, "seed": 1}
    return {"truth": record.truth, "class_names": record.class_names, "metadata": metadata}


def test_worker_trains_one_network_and_writes_a_log(tmp_path, capsys):
    assert train_one(task_of(tmp_path / "run", 1)) == {"failed": {}, "notes": ()}
    assert not (tmp_path / "run/test/network-000").exists()
    log = log_path(tmp_path / "run", 1).read_text().splitlines()
    assert log_path(tmp_path / "run", 1).name == "network-001.log"
    assert re.search(rf"on {platform.node()}, process {os.getpid()}, \w+, \d+ threads", log[0])
    assert re.search(r"Z|\+00:00 epoch 1 of 2, loss \d\.\d{4}$", log[1])
    assert log[-1].endswith(" done")
    train_one(task_of(tmp_path / "run", 1))
    assert len(log_path(tmp_path / "run", 1).read_text().splitlines()) == len(log) + 2
    assert capsys.readouterr() == ("", "")


def test_output_of_a_worker_goes_to_its_log(tmp_path, capsys, monkeypatch):
    def print_lines(*_, **__):
        print("to out")
        print("to err", file=sys.stderr)
        raise ZeroDivisionError("here")

    monkeypatch.setattr("accord.training.train", print_lines)
    with pytest.raises(ZeroDivisionError, match="here"):
        train_one(task_of(tmp_path / "run"))
    log = log_path(tmp_path / "run", 0).read_text()
    assert "to out\nto err\n" in log
    assert "stopped by ZeroDivisionError: here" in log
    assert capsys.readouterr() == ("", "")


def test_worker_that_does_not_see_the_run_names_its_node(tmp_path, monkeypatch):
    monkeypatch.setattr(_remote_train._wait_for_spec, "__kwdefaults__", {"seconds": 0.0})
    missing = task_of(tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    with pytest.raises(NodeUnfit, match=rf"{platform.node()}: does not see .*run/logs.*all nodes"):
        train_one(missing)
    assert not (tmp_path / "run").exists()


def test_worker_waits_for_a_run_that_appears_late(tmp_path, monkeypatch):
    given = task_of(tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "later")
    naps = []

    def appear(seconds):
        naps.append(seconds)
        (tmp_path / "later").rename(tmp_path / "run")

    monkeypatch.setattr(_remote_train.time, "sleep", appear)
    assert train_one(given)["failed"] == {}
    assert naps == [_remote_train.RETRY_SECONDS]


def test_relative_paths_start_from_the_drivers_working_directory(tmp_path):
    text = SMALL.replace('kind = "digits"', 'kind = "cifar10"\npath = "nothing-here"')
    changes = {"spec": parse_spec(text).model_dump_json(), "source": text, "folder": str(tmp_path)}
    with pytest.raises(SourceError, match=rf"^on {platform.node()}: .*nothing-here"):
        train_one(task_of(tmp_path / "run", **changes))
    assert Path.cwd() == tmp_path
    with pytest.raises(SourceError, match="nothing-here"):
        train_one(task_of(tmp_path / "run", **changes | {"folder": "/not/on/this/node"}))


def test_worker_waits_for_a_busy_network(tmp_path, monkeypatch):
    out = tmp_path / "run"
    train_one(task_of(out, 0))
    with (
        Recorder(out / "test", network=1, samples=719, classes=10, **_recorder_options(out)),
        pytest.raises(RecordBusy, match=rf"on {platform.node()}: .*another recorder holds"),
    ):
        train_one(task_of(out, 1))
    held = Recorder(out / "test", network=1, samples=719, classes=10, **_recorder_options(out))
    naps = []

    def let_go(seconds):
        naps.append(seconds)
        held.close()

    monkeypatch.setattr(_remote_train.time, "sleep", let_go)
    assert train_one(task_of(out, 1, patience=60.0))["failed"] == {}
    assert len(naps) == 1
    assert "waiting: " in log_path(out, 1).read_text()
    assert accord.open(out / "test").epochs == 2


def test_watcher_yields_the_latest_epoch_of_each_network_once(tmp_path):
    write_record(tmp_path / "record", networks=1, epochs=2)
    watcher = RecordWatcher(tmp_path / "record", [0, 1], epochs=9)
    assert list(watcher.new_epochs()) == []  # recorded before
    write_record(tmp_path / "record", networks=2, epochs=4)
    assert list(watcher.new_epochs()) == [
        Progress(0, 4.0, 9, 0.25, 2),
        Progress(1, 4.0, 9, 0.25, 2),
    ]
    assert list(watcher.new_epochs()) == []


def test_watcher_waits_for_a_missing_or_incomplete_record(tmp_path):
    watcher = RecordWatcher(tmp_path / "record", [0], epochs=9)
    assert list(watcher.new_epochs()) == []
    write_record(tmp_path / "record", networks=1, epochs=3)
    gap = tmp_path / "record/network-000/commits/c.1"
    gap.rename(tmp_path / "late")
    assert list(watcher.new_epochs()) == []
    (tmp_path / "late").rename(gap)
    assert [event.epoch for event in watcher.new_epochs()] == [3.0]


def test_cluster_trains_the_same_networks_as_one_process(here, tmp_path):
    seen, messages = [], []
    result = train_remotely(
        SPEC,
        tmp_path / "run",
        source=SMALL,
        address="auto",
        ship=True,
        cpus=2,
        retries=5,
        progress=seen.append,
        notify=messages.append,
    )
    train(SPEC, tmp_path / "plain", source=SMALL)
    assert (result.out, result.failed, result.notes) == (tmp_path / "run", {}, ())
    np.testing.assert_array_equal(
        accord.open(tmp_path / "run/test").labels, accord.open(tmp_path / "plain/test").labels
    )
    assert (tmp_path / "run/spec.toml").read_text() == SMALL
    assert (tmp_path / "run/metrics.csv").read_text().count("\n") == 5
    assert here[0].options == {"address": "auto", "ship": True}
    assert [(one[1]["network"], *one[2:]) for one in here[0].started] == [
        (0, Resources(2.0, 0.0), 5),
        (1, Resources(2.0, 0.0), 5),
    ]
    assert messages == ["2 networks, each with 2 CPUs, on a cluster of 1 node: 4 CPUs, 0 GPUs"]
    assert (0, 2, 2.0, 2) in [(e.network, e.networks, e.epoch, e.epochs) for e in seen]


def test_subset_of_networks(here, tmp_path):
    train_remotely(SPEC, tmp_path / "run", source=SMALL, networks=[1])
    assert [one[1]["network"] for one in here[0].started] == [1]
    assert accord.open(tmp_path / "run/test").reader.numbers == (1,)
    with pytest.raises(ChoiceError, match="small: no network 7; there are 0, 1"):
        train_remotely(SPEC, tmp_path / "run", source=SMALL, networks=[7])
    with pytest.raises(ChoiceError, match="retries must be 0 or more; got -1"):
        train_remotely(SPEC, tmp_path / "run", source=SMALL, retries=-1)


def test_progress_counts_only_the_chosen_networks(here, tmp_path):
    seen = []
    text = SMALL.replace("networks = 2", "networks = 3")
    train_remotely(
        parse_spec(text),
        tmp_path / "run",
        source=text,
        networks=[0, 2],
        progress=seen.append,
    )
    assert [(event.network, event.networks) for event in seen] == [(0, 2)]


def test_worker_that_dies_too_often_fails_only_its_network(here, tmp_path, monkeypatch):
    def dies(given):
        if given["network"] == 0:
            raise ClusterError("its worker or node died: bang")
        return {"failed": {}, "notes": ("slow",)}

    monkeypatch.setattr(_remote_train, "train_one", dies)
    result = train_remotely(SPEC, tmp_path / "run", source=SMALL)
    assert result.failed == {
        0: f"its worker or node died: bang; see {tmp_path}/run/logs/network-000.log"
    }
    assert result.notes == ("slow",)


def test_unfit_node_stops_the_training(here, tmp_path, monkeypatch):
    def unfit(_):
        raise NodeUnfit("b: has no accord")

    monkeypatch.setattr(_remote_train, "train_one", unfit)
    with pytest.raises(NodeUnfit, match="b: has no accord"):
        train_remotely(SPEC, tmp_path / "run", source=SMALL)


def test_notes_are_listed_once(here, tmp_path, monkeypatch):
    result = {"failed": {}, "notes": ("slow",)}
    monkeypatch.setattr(_remote_train, "train_one", lambda _: result)
    assert train_remotely(SPEC, tmp_path / "run", source=SMALL).notes == ("slow",)


def test_driver_writes_the_metrics_of_all_networks(here, tmp_path, monkeypatch):
    train(SPEC, tmp_path / "run", source=SMALL)
    (tmp_path / "run/metrics.csv").rename(tmp_path / "whole")
    monkeypatch.setattr(_remote_train, "train_one", lambda _: {"failed": {}, "notes": ()})
    train_remotely(SPEC, tmp_path / "run", source=SMALL)
    assert (tmp_path / "run/metrics.csv").read_text() == (tmp_path / "whole").read_text()


@pytest.mark.slow
def test_spec_that_a_worker_refused_can_be_corrected(joined, tmp_path):
    text = SMALL.replace('"mlp"', '"mlpp"')
    with pytest.raises(ChoiceError, match=rf"on {platform.node()}: .*Did you mean 'mlp'"):
        train_remotely(parse_spec(text), tmp_path / "run", source=text)
    assert train_remotely(SPEC, tmp_path / "run", source=SMALL).failed == {}
    assert accord.open(tmp_path / "run/test").epochs == 2


def test_relative_folders_are_made_absolute(here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert train_remotely(SPEC, "run", source=SMALL).out == tmp_path / "run"
    assert here[0].started[0][1]["out"] == str(tmp_path / "run")
    assert here[0].started[0][1]["folder"] == str(tmp_path)


def test_failed_network_does_not_stop_the_others(here, tmp_path):
    text = SMALL.replace("networks = 2", "networks = [{ lr = 1e30 }, {}]\nbatch = 16")
    result = train_remotely(parse_spec(text), tmp_path / "run", source=text)
    assert list(result.failed) == [0]
    assert "the loss became" in result.failed[0]
    assert accord.open(tmp_path / "run/test", networks=[1]).epochs == 2
    assert log_path(tmp_path / "run", 0).read_text().splitlines()[-1].endswith(result.failed[0])


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [('"mlp"', '"mlpp"', ChoiceError), ('"digits"', '"cifar10"\npath = "no"', SourceError)],
)
def test_failed_start_does_not_claim_the_folder(here, tmp_path, old, new, error):
    text = SMALL.replace(old, new)
    with pytest.raises(error, match=r"mlp|no"):
        train_remotely(parse_spec(text), tmp_path / "run", source=text)
    assert not (tmp_path / "run/spec.toml").exists()
    assert train_remotely(SPEC, tmp_path / "run", source=SMALL).failed == {}
    assert (tmp_path / "run/spec.toml").read_text() == SMALL


def test_folder_of_another_spec_raises_before_a_cluster_starts(here, tmp_path):
    train(SPEC, tmp_path / "run", source=SMALL)
    text = SMALL.replace("epochs = 2", "epochs = 3")
    with pytest.raises(SpecError, match="holds a run of another spec"):
        train_remotely(parse_spec(text), tmp_path / "run", source=text)
    assert here == []


def test_spec_is_written_anew_without_its_source(here, tmp_path):
    assert not train_remotely(SPEC, tmp_path / "run").failed
    assert parse_spec((tmp_path / "run/spec.toml").read_text()) == SPEC
