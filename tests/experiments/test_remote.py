"""Training and predicting on a cluster: what is shared out, sent, followed and gathered.

Clusters whose workers, nodes and drivers are killed: clients/test_ray.py.
"""

import contextlib
import json
import math
import os
import platform
import re
import signal
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import labels_of, write_record
from small_spec import SMALL

import accord
from accord._recorder import Recorder
from accord.errors import (
    ChoiceError,
    ClusterError,
    ExtraMissing,
    NodeUnfit,
    ProbabilitiesMissing,
    RecordBusy,
    RecordMissing,
    SourceError,
    SpecError,
)
from accord.experiments.cluster import _cluster as cluster
from accord.experiments.cluster import _predict as aggregation
from accord.experiments.cluster import _train as remote_training
from accord.experiments.cluster import _train as work
from accord.experiments.cluster import predict_remotely, train_remotely
from accord.experiments.cluster._cluster import (
    FINEST,
    Cluster,
    Node,
    Share,
    cut_samples,
    has_gpus,
    share_out,
)
from accord.experiments.cluster._predict import predict_range
from accord.experiments.cluster._train import RunFollower, leave_word, log_of, train_one
from accord.rules import all_rules
from accord.rules.consensus import Consensus
from accord.rules.max_agreement import MaxAgreement
from accord.store import pack_record
from accord.training.run import train
from accord.training.spec import parse_spec

SPEC = parse_spec(SMALL)
ONE = Share(cpus=1.0, gpus=0.0)
BY_SAMPLE = {
    "consensus",
    "majority",
    "max-agreement",
    "probability-average",
    "single",
    "soft-agreement",
}


class InThisProcess:
    """A cluster that runs each task at once, here; a task may be told to fail."""

    def __init__(self, address=None, *, ship=False):
        self.asked = {"address": address, "ship": ship}
        self.started = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def nodes(self):
        return [Node("here", cpus=4, gpus=0)]

    def start(self, function, given, *, share, retries):
        json.dumps(given)  # nothing but what any node can read
        self.started.append((function, given, share, retries))
        return len(self.started) - 1

    def wait(self, tasks, *, seconds=None):
        return list(tasks)[:1]

    def result(self, task):
        function, given, *_ = self.started[task]
        return function(given)


@pytest.fixture
def here(monkeypatch):
    """Put the cluster of this process in place of Ray's."""
    made = []

    def make(*given, **options):
        made.append(InThisProcess(*given, **options))
        return made[-1]

    monkeypatch.setattr(remote_training, "Cluster", make)
    monkeypatch.setattr(aggregation, "Cluster", make)
    return made


# What each task takes.


@given(st.integers(1, 40), st.lists(st.integers(0, 8), min_size=1, max_size=4))
def test_unless_told_all_networks_run_at_once_and_none_could_have_more(tasks, gpus):
    nodes = [Node(f"n{number}", cpus=64, gpus=one) for number, one in enumerate(gpus)]
    parts = round(share_out(tasks, nodes).gpus * FINEST)  # as Ray counts
    if sum(gpus) == 0:
        assert parts == 0
        return
    on_one = FINEST // parts
    assert on_one * sum(gpus) >= tasks
    assert on_one == 1 or (on_one - 1) * sum(gpus) < tasks


def test_what_is_asked_for_is_taken():
    nodes = [Node("a", cpus=4, gpus=2)]
    assert share_out(3, nodes, cpus=2, gpus=0.25) == Share(2.0, 0.25)
    assert share_out(3, nodes, gpus=2) == Share(1.0, 2.0)
    assert share_out(3, nodes, gpus=0) == Share(1.0, 0.0)
    assert share_out(2, [Node("a", cpus=4, gpus=0)], cpus=4) == Share(4.0, 0.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gpus": 1.5}, r"a part of one, such as 0\.25, or a whole number; got 1\.5"),
        ({"gpus": -1}, "or a whole number; got -1"),
        ({"gpus": float("nan")}, "or a whole number; got nan"),
        ({"gpus": float("inf")}, "or a whole number; got inf"),
        ({"cpus": -1}, "cpus must be 0 or more for each network; got -1"),
        ({"cpus": float("nan")}, "cpus must be 0 or more"),
    ],
)
def test_impossible_shares_are_refused(options, words):
    with pytest.raises(ChoiceError, match=words):
        share_out(2, [Node("a", cpus=4, gpus=2)], **options)


@pytest.mark.parametrize("options", [{"gpus": 0.5}, {"cpus": 8}, {"cpus": 3, "gpus": 0}])
def test_a_task_that_would_wait_for_ever_is_refused(options):
    nodes = [Node("a", cpus=2, gpus=0), Node("b", cpus=2, gpus=0)]
    with pytest.raises(ClusterError, match=r"no node has that \(a: 2 CPUs, 0 GPUs; b: .*Ask for"):
        share_out(2, nodes, **options)
    with pytest.raises(ClusterError, match="there are no nodes"):
        share_out(1, [])


def test_cpus_and_gpus_must_be_on_one_node():
    with pytest.raises(ClusterError, match="no node has that"):
        share_out(1, [Node("a", cpus=8, gpus=0), Node("b", cpus=1, gpus=1)], cpus=2, gpus=1)


@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 9))
def test_ranges_cover_every_sample_once_and_split_no_chunk(samples, pieces, chunk):
    cuts = cut_samples(samples, pieces=pieces, chunk=chunk)
    assert [one for cut in cuts for one in range(samples)[cut]] == list(range(samples))
    assert len(cuts) <= pieces
    assert all(cut.start % chunk == 0 for cut in cuts)
    chunks = math.ceil(samples / chunk)
    assert math.ceil(cuts[0].stop / chunk) == math.ceil(chunks / pieces)


def test_no_range_is_refused():
    with pytest.raises(ChoiceError, match="at least 1 block of samples is wanted; got 0"):
        cut_samples(5, pieces=0)


# What a worker does.


def job(out, network=0, **changes):
    said = {
        "out": str(out),
        "spec": SPEC.model_dump_json(),
        "source": SMALL,
        "network": network,
        "digest": leave_word(out, changes.get("source", SMALL)),
        "folder": str(Path.cwd()),
        "patience": 0.0,
    }
    return {**said, **changes}


@pytest.fixture(autouse=True)
def back_where_we_were():
    with contextlib.chdir("."):
        yield


def test_a_worker_trains_one_network_and_logs_what_it_does(tmp_path, capsys):
    assert train_one(job(tmp_path / "run", 1)) == {"failed": {}, "notes": ()}
    assert not (tmp_path / "run/test/network-000").exists()
    log = log_of(tmp_path / "run", 1).read_text().splitlines()
    assert log_of(tmp_path / "run", 1).name == "network-001.log"
    assert re.search(rf"on {platform.node()}, process {os.getpid()}, \w+, \d+ threads", log[0])
    assert re.search(r"Z|\+00:00 epoch 1 of 2, loss \d\.\d{4}$", log[1])
    assert log[-1].endswith(" done")
    train_one(job(tmp_path / "run", 1))
    assert len(log_of(tmp_path / "run", 1).read_text().splitlines()) == len(log) + 2
    assert capsys.readouterr() == ("", "")


def test_what_is_printed_while_training_goes_to_the_log(tmp_path, capsys, monkeypatch):
    def talk(*_, **__):
        print("to out")
        print("to err", file=sys.stderr)
        raise ZeroDivisionError("here")

    monkeypatch.setattr("accord.training.run.train", talk)
    with pytest.raises(ZeroDivisionError, match="here"):
        train_one(job(tmp_path / "run"))
    said = log_of(tmp_path / "run", 0).read_text()
    assert "to out\nto err\n" in said
    assert "ended by ZeroDivisionError: here" in said
    assert capsys.readouterr() == ("", "")


def test_a_worker_that_does_not_see_the_run_names_its_node(tmp_path, monkeypatch):
    monkeypatch.setattr(work._check_seen, "__kwdefaults__", {"seconds": 0.0})
    missing = job(tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    with pytest.raises(NodeUnfit, match=rf"{platform.node()}: does not see .*run/logs.*all nodes"):
        train_one(missing)
    assert not (tmp_path / "run").exists()


def test_a_run_that_appears_late_is_waited_for(tmp_path, monkeypatch):
    given = job(tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "later")
    naps = []

    def appear(seconds):
        naps.append(seconds)
        (tmp_path / "later").rename(tmp_path / "run")

    monkeypatch.setattr(work.time, "sleep", appear)
    assert train_one(given)["failed"] == {}
    assert naps == [work.AGAIN_SECONDS]


def test_the_paths_of_a_spec_start_where_the_driver_stands(tmp_path):
    text = SMALL.replace('kind = "digits"', 'kind = "cifar10"\npath = "nothing-here"')
    asked = {"spec": parse_spec(text).model_dump_json(), "source": text, "folder": str(tmp_path)}
    with pytest.raises(SourceError, match=rf"^on {platform.node()}: .*nothing-here"):
        train_one(job(tmp_path / "run", **asked))
    assert Path.cwd() == tmp_path
    with pytest.raises(SourceError, match="nothing-here"):
        train_one(job(tmp_path / "run", **asked | {"folder": "/not/on/this/node"}))


def test_a_busy_network_is_waited_for_as_long_as_is_patient(tmp_path, monkeypatch):
    out = tmp_path / "run"
    train_one(job(out, 0))
    with (
        Recorder(out / "test", network=1, samples=719, classes=10, **_told(out)),
        pytest.raises(RecordBusy, match=rf"on {platform.node()}: .*another recorder holds"),
    ):
        train_one(job(out, 1))
    held = Recorder(out / "test", network=1, samples=719, classes=10, **_told(out))
    naps = []

    def let_go(seconds):
        naps.append(seconds)
        held.close()

    monkeypatch.setattr(work.time, "sleep", let_go)
    assert train_one(job(out, 1, patience=60.0))["failed"] == {}
    assert len(naps) == 1
    assert "waiting: " in log_of(out, 1).read_text()
    assert accord.open(out / "test").epochs == 2


def _told(out):
    """What a run's recorder of network 1 says, so that another may stand in for it."""
    record = accord.open(out / "test", networks=[0])
    about = {**record.networks_info[0].metadata, "number": 1, "seed": 1}
    return {"truth": record.truth, "class_names": record.class_names, "metadata": about}


# What the driver follows.


def test_a_follower_tells_the_latest_of_each_network_once(tmp_path):
    write_record(tmp_path / "record", networks=1, epochs=2)
    follower = RunFollower(tmp_path / "record", [0, 1])
    assert list(follower.news()) == []  # what was there before is no news
    write_record(tmp_path / "record", networks=2, epochs=4)
    assert list(follower.news()) == [(0, 4.0, 0.25), (1, 4.0, 0.25)]
    assert list(follower.news()) == []


def test_a_follower_waits_for_a_record_that_is_not_there_or_half_listed(tmp_path):
    follower = RunFollower(tmp_path / "record", [0])
    assert list(follower.news()) == []
    write_record(tmp_path / "record", networks=1, epochs=3)
    gap = tmp_path / "record/network-000/commits/c.1"
    gap.rename(tmp_path / "late")
    assert list(follower.news()) == []
    (tmp_path / "late").rename(gap)
    assert [news.progress for news in follower.news()] == [3.0]


# The driver.


def test_a_cluster_trains_what_one_process_trains(here, tmp_path):
    seen, said = [], []
    result = train_remotely(
        SPEC,
        tmp_path / "run",
        source=SMALL,
        address="auto",
        ship=True,
        cpus=2,
        retries=5,
        progress=lambda *one: seen.append(one[:4]),
        say=said.append,
    )
    train(SPEC, tmp_path / "plain", source=SMALL)
    assert (result.out, result.failed, result.notes) == (tmp_path / "run", {}, ())
    np.testing.assert_array_equal(
        accord.open(tmp_path / "run/test").labels, accord.open(tmp_path / "plain/test").labels
    )
    assert (tmp_path / "run/spec.toml").read_text() == SMALL
    assert (tmp_path / "run/metrics.csv").read_text().count("\n") == 5
    assert here[0].asked == {"address": "auto", "ship": True}
    assert [(one[1]["network"], *one[2:]) for one in here[0].started] == [
        (0, Share(2.0, 0.0), 5),
        (1, Share(2.0, 0.0), 5),
    ]
    assert said == ["2 networks, each with 2 CPUs, on a cluster of 1 node: 4 CPUs, 0 GPUs"]
    assert (0, 2, 2.0, 2) in seen  # what a task records after the last look is not told


def test_some_networks_alone_can_be_trained(here, tmp_path):
    train_remotely(SPEC, tmp_path / "run", source=SMALL, networks=[1])
    assert [one[1]["network"] for one in here[0].started] == [1]
    assert accord.open(tmp_path / "run/test").reader.numbers == (1,)
    with pytest.raises(ChoiceError, match="small: no network 7; there are 0, 1"):
        train_remotely(SPEC, tmp_path / "run", source=SMALL, networks=[7])
    with pytest.raises(ChoiceError, match="retries must be 0 or more; got -1"):
        train_remotely(SPEC, tmp_path / "run", source=SMALL, retries=-1)


def test_progress_counts_the_chosen_networks_alone(here, tmp_path):
    seen = []
    text = SMALL.replace("networks = 2", "networks = 3")
    train_remotely(
        parse_spec(text),
        tmp_path / "run",
        source=text,
        networks=[0, 2],
        progress=lambda *one: seen.append(one[:2]),
    )
    assert seen == [(0, 2)]  # what a task records after the last look is not told


def test_relative_folders_are_sent_whole(here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert train_remotely(SPEC, "run", source=SMALL).out == tmp_path / "run"
    assert here[0].started[0][1]["out"] == str(tmp_path / "run")
    assert here[0].started[0][1]["folder"] == str(tmp_path)


def test_a_network_that_cannot_be_trained_is_named_and_the_others_go_on(here, tmp_path):
    text = SMALL.replace("networks = 2", "networks = [{ lr = 1e30 }, {}]\nbatch = 16")
    result = train_remotely(parse_spec(text), tmp_path / "run", source=text)
    assert list(result.failed) == [0]
    assert "the loss became" in result.failed[0]
    assert accord.open(tmp_path / "run/test", networks=[1]).epochs == 2
    assert log_of(tmp_path / "run", 0).read_text().splitlines()[-1].endswith(result.failed[0])


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [('"mlp"', '"mlpp"', ChoiceError), ('"digits"', '"cifar10"\npath = "no"', SourceError)],
)
def test_what_cannot_begin_bars_no_other_spec_from_its_folder(here, tmp_path, old, new, error):
    text = SMALL.replace(old, new)
    with pytest.raises(error, match=r"mlp|no"):
        train_remotely(parse_spec(text), tmp_path / "run", source=text)
    assert not (tmp_path / "run/spec.toml").exists()
    assert train_remotely(SPEC, tmp_path / "run", source=SMALL).failed == {}
    assert (tmp_path / "run/spec.toml").read_text() == SMALL


def test_a_folder_of_another_spec_is_refused_before_a_cluster_is_asked(here, tmp_path):
    train(SPEC, tmp_path / "run", source=SMALL)
    text = SMALL.replace("epochs = 2", "epochs = 3")
    with pytest.raises(SpecError, match="holds a run of another spec"):
        train_remotely(parse_spec(text), tmp_path / "run", source=text)
    assert here == []


def test_a_worker_that_dies_for_good_fails_its_network_alone(here, tmp_path, monkeypatch):
    def dies(given):
        if given["network"] == 0:
            raise ClusterError("its worker or node died: bang")
        return {"failed": {}, "notes": ("slow",)}

    monkeypatch.setattr(remote_training, "train_one", dies)
    result = train_remotely(SPEC, tmp_path / "run", source=SMALL)
    assert result.failed == {
        0: f"its worker or node died: bang; see {tmp_path}/run/logs/network-000.log"
    }
    assert result.notes == ("slow",)


def test_a_node_that_cannot_take_part_stops_it_all(here, tmp_path, monkeypatch):
    def unfit(_):
        raise NodeUnfit("b: has no accord")

    monkeypatch.setattr(remote_training, "train_one", unfit)
    with pytest.raises(NodeUnfit, match="b: has no accord"):
        train_remotely(SPEC, tmp_path / "run", source=SMALL)


def test_the_same_note_of_all_networks_is_kept_once(here, tmp_path, monkeypatch):
    said = {"failed": {}, "notes": ("slow",)}
    monkeypatch.setattr(remote_training, "train_one", lambda _: said)
    assert train_remotely(SPEC, tmp_path / "run", source=SMALL).notes == ("slow",)


def test_the_driver_writes_the_metrics_of_all_networks_at_the_end(here, tmp_path, monkeypatch):
    train(SPEC, tmp_path / "run", source=SMALL)
    (tmp_path / "run/metrics.csv").rename(tmp_path / "whole")
    monkeypatch.setattr(remote_training, "train_one", lambda _: {"failed": {}, "notes": ()})
    train_remotely(SPEC, tmp_path / "run", source=SMALL)
    assert (tmp_path / "run/metrics.csv").read_text() == (tmp_path / "whole").read_text()


# Predicting.


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A record with probabilities, as written and packed."""
    folder = tmp_path_factory.mktemp("records")
    for network in range(3):
        with Recorder(
            folder / "rows", network=network, samples=23, classes=5, probabilities=True
        ) as recorder:
            for epoch in range(4):
                generator = np.random.default_rng([network, epoch])
                recorder.record(generator.multinomial(4, [0.2] * 5, 23) / 4)
    pack_record(folder / "rows", folder / "packed")
    return folder


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(sorted(BY_SAMPLE)), st.integers(1, 30), st.sampled_from(["rows", "packed"]))
def test_ranges_together_are_the_whole_prediction(record, name, pieces, form):
    expected = accord.open(record / form).predict(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregation, "Cluster", InThisProcess)
        found = predict_remotely(record / form, name, blocks=pieces)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert (found.labels.dtype, found.note) == (expected.labels.dtype, expected.note)


def test_by_default_each_cpu_gets_a_range(here, record):
    predict_remotely(record / "rows", address="auto", ship=True)
    assert here[0].asked == {"address": "auto", "ship": True}
    assert [(one[1]["start"], one[1]["stop"]) for one in here[0].started] == [
        (0, 6),
        (6, 12),
        (12, 18),
        (18, 23),
    ]
    assert here[0].started[0][2:] == (ONE, aggregation.RETRIES)


def test_ranges_of_a_packed_record_are_whole_chunks(here, tmp_path, monkeypatch):
    monkeypatch.setattr("accord.store._packed.LABELS_PER_CHUNK", 50)
    write_record(tmp_path / "rows", networks=2, epochs=5)
    pack_record(tmp_path / "rows", tmp_path / "packed")
    predict_remotely(tmp_path / "packed", blocks=3)
    assert [one[1]["start"] for one in here[0].started] == [0, 20]


def test_rules_keep_their_options(here, record):
    strict = Consensus(least=3, threshold=0.5)
    expected = accord.open(record / "rows").predict(strict)
    found = predict_remotely(record / "rows", strict)
    np.testing.assert_array_equal(found.labels, expected.labels)
    assert (found.labels == -1).any()
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("name", sorted(set(all_rules()) - BY_SAMPLE))
def test_rules_that_look_at_all_samples_are_refused(record, name):
    with pytest.raises(ChoiceError, match=rf"{name} cannot be used on a range.*Record\.predict"):
        predict_remotely(record / "rows", name)


def test_a_rule_of_ones_own_is_refused_whatever_its_name(record):
    class Mine(MaxAgreement):
        pass

    with pytest.raises(ChoiceError, match="cannot be used on a range of samples"):
        predict_remotely(record / "rows", Mine())


def test_a_record_that_has_grown_is_predicted_as_it_was(tmp_path, monkeypatch):
    path = write_record(tmp_path / "record", networks=2, epochs=3, truth=labels_of(9, 9))
    expected = accord.open(path).predict().labels

    class Growing(InThisProcess):
        def nodes(self):
            write_record(path, networks=1, epochs=9)
            write_record(path, networks=3, epochs=4)
            return super().nodes()

    monkeypatch.setattr(aggregation, "Cluster", Growing)
    np.testing.assert_array_equal(predict_remotely(path).labels, expected)


def test_what_is_missing_is_said_before_a_cluster_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(aggregation, "Cluster", lambda *_, **__: pytest.fail("asked"))
    path = write_record(tmp_path / "record")
    for rule in ("soft-agreement", Consensus(threshold=0.5)):
        with pytest.raises(ProbabilitiesMissing, match="only labels were recorded"):
            predict_remotely(path, rule)
    with pytest.raises(RecordMissing, match="no such file or folder"):
        predict_remotely(tmp_path / "nowhere")


def test_urls_are_sent_as_they_are_and_paths_whole(here, record, monkeypatch):
    monkeypatch.chdir(record)
    predict_remotely("rows")
    assert here[0].started[0][1]["path"] == str(record / "rows")
    predict_remotely("example://cifar10-sym40", blocks=1)
    assert here[1].started[0][1]["path"] == "example://cifar10-sym40"
    assert predict_range(here[0].started[0][1])["labels"].shape == (6,)


# Ray itself.


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ExtraMissing, match=r"a cluster requires ray.*pip install 'accord\[ray\]'"):
        train_remotely(SPEC, tmp_path / "run", source=SMALL)
    assert not (tmp_path / "run").exists()


def test_the_envelope_says_which_accord_is_there_before_it_loads_anything(monkeypatch):
    work = cluster._envelope()
    node, version = platform.node(), accord.__version__
    assert work(version, "builtins", "dict", {"a": 1}) == (node, version, {"a": 1})
    assert work("0.0.1", "nowhere", "nothing", {}) == (node, version, {})
    monkeypatch.setitem(sys.modules, "accord", None)
    assert work(version, "nowhere", "nothing", {}) == (node, None, {})


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("0.0.1", r"b: has accord 0\.0\.1; this is accord .*send it along with ship=True"),
        (None, r"b: has no accord; this is accord .*pip install accord=="),
    ],
)
def test_a_node_with_another_accord_is_named_with_the_cure(version, words):
    with pytest.raises(NodeUnfit, match=words):
        cluster._check_version("b", version)


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_an_address_that_nothing_listens_at_is_refused_at_once(form):
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))  # taken, and nobody listens
        address = form.format(door.getsockname()[1])
        with pytest.raises(ClusterError, match=rf"{address}: no cluster answers there .*ray start"):
            cluster._check_door(address)
        door.listen()
        cluster._check_door(address)
    cluster._check_door("auto")


@pytest.fixture(scope="module")
def joined():
    pytest.importorskip("ray", reason="ray is not installed; `make clients` has it")
    with Cluster() as joined:
        yield joined


@pytest.mark.parametrize("gpus", [(0.0, 0.0), (0.0, 2.0)])
def test_a_cluster_has_gpus_if_a_node_has(gpus, monkeypatch):
    joined = []

    class Nodes(contextlib.nullcontext):
        def __init__(self, address):
            joined.append(address)
            super().__init__(self)

        def nodes(self):
            return [Node(name="a", cpus=1.0, gpus=some) for some in gpus]

    monkeypatch.setattr(cluster, "Cluster", Nodes)
    assert has_gpus("10.0.0.1:6379") == any(gpus)
    assert joined == ["10.0.0.1:6379"]


@pytest.mark.slow
def test_a_task_runs_elsewhere_and_what_it_raises_comes_back(joined):
    assert sum(node.cpus for node in joined.nodes()) >= 1
    task = joined.start(eval, "{'process': __import__('os').getpid()}", share=ONE, retries=0)
    assert joined.wait([task]) == [task]
    assert joined.result(task)["process"] != os.getpid()
    task = joined.start(predict_range, {"path": "/nowhere", "networks": []}, share=ONE, retries=0)
    with pytest.raises(RecordMissing, match="/nowhere: no such file"):
        joined.result(task)
    task = joined.start(eval, "1 / 0", share=ONE, retries=0)
    with pytest.raises(ClusterError, match="ZeroDivisionError: division by zero"):
        joined.result(task)


@pytest.mark.slow
def test_a_spec_that_a_worker_refused_can_be_corrected_in_its_folder(joined, tmp_path):
    text = SMALL.replace('"mlp"', '"mlpp"')
    with pytest.raises(ChoiceError, match=rf"on {platform.node()}: .*Did you mean 'mlp'"):
        train_remotely(parse_spec(text), tmp_path / "run", source=text)
    assert train_remotely(SPEC, tmp_path / "run", source=SMALL).failed == {}
    assert accord.open(tmp_path / "run/test").epochs == 2


KILLED = f"__import__('os').kill(__import__('os').getpid(), {int(signal.SIGKILL)})"


@pytest.mark.slow
def test_a_task_whose_worker_dies_is_tried_again_as_often_as_told(joined, tmp_path):
    count = f"open({str(tmp_path / 'tries')!r}, 'a').write('x') and {KILLED}"
    task = joined.start(eval, count, share=ONE, retries=2)
    with pytest.raises(ClusterError, match="its worker or node died: "):
        joined.result(task)
    assert (tmp_path / "tries").read_text() == "xxx"


@pytest.mark.slow
def test_waiting_ends_when_its_time_is_over_and_leaving_ends_what_still_runs(joined, tmp_path):
    import ray

    nap = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(__import__('os').getpid()))"
    with Cluster() as inner:  # joins the same one, and leaves it as it is
        task = inner.start(eval, f"{nap} and __import__('time').sleep(600)", share=ONE, retries=3)
        while not (tmp_path / "pid").exists():
            assert inner.wait([task], seconds=0.1) == []
    assert ray.is_initialized()
    assert ray.wait([task], timeout=60)[0] == [task]
    with pytest.raises((ray.exceptions.TaskCancelledError, ray.exceptions.WorkerCrashedError)):
        ray.get(task)


@pytest.mark.slow
def test_no_cluster_to_join_is_said(monkeypatch):
    pytest.importorskip("ray", reason="ray is not installed; `make clients` has it")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ray = sys.modules["ray"]
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def refuse(**options):
        assert options["address"] == "auto"
        raise ConnectionError("Could not find any running Ray instance.")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(ClusterError, match=r"auto: the cluster cannot be joined: Could not find"):
        Cluster("auto")


def test_ray_that_does_not_start_here_is_said(monkeypatch):
    """On a busy machine Ray gives up after 30 seconds, with an exception of no kind."""

    class TooSlow:
        @staticmethod
        def is_initialized():
            return False

        @staticmethod
        def init(**_):
            raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(cluster, "_import_ray", lambda: TooSlow)
    words = r"could not be started on this machine: The current node timed out.*leave --ray out"
    with pytest.raises(ClusterError, match=words):
        Cluster()


class AuthenticationError(Exception):
    """As Ray calls its own."""


@pytest.mark.parametrize(
    "cause",
    [RuntimeError("Last connection error: RPC error: InvalidAuthToken"), AuthenticationError()],
)
def test_a_cluster_that_asks_for_a_token_is_said(monkeypatch, cause):
    """Ray says only in the cause of its error that it was refused."""

    class Refused:
        @staticmethod
        def is_initialized():
            return False

        @staticmethod
        def init(**_):
            raise ConnectionError("Failed to connect to Ray cluster") from cause

    monkeypatch.setattr(cluster, "_import_ray", lambda: Refused)
    words = r"auto: the cluster admits only .*`ray get-auth-token`.*RAY_AUTH_MODE=token on all"
    with pytest.raises(ClusterError, match=words):
        Cluster("auto")
