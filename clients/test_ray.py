"""Train and predict on real Ray clusters whose workers, nodes and drivers are killed."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import ray
import torch
from ray.cluster_utils import Cluster as RayCluster

import accord
from accord._recorder import Recorder
from accord.errors import ClusterError, NodeUnfit, SpecError
from accord.experiments.cluster import predict_remotely, train_remotely
from accord.experiments.cluster._ray import Cluster, Resources
from accord.store import check_record, open_reader, pack_record
from accord.training import parse_spec, train

EPOCHS = 150
TEXT = f"""
name = "small"
[data]
kind = "digits"
per_class = 20
[noise]
kind = "symmetric"
rate = 0.4
[train]
networks = 2
network = "small-cnn"
options = {{ width = 4 }}
epochs = {EPOCHS}
batch = 64
optimizer = {{ lr = 0.02 }}
augment = ["shift"]
[record]
splits = ["test", "train"]
"""
SHORT = TEXT.replace(f"epochs = {EPOCHS}", "epochs = 2")


def labels_in(out, split="test"):
    return np.asarray(accord.open(out / split).labels)


def writers_of(out, network):
    """Return who wrote each row of a network."""
    rows = open_reader(out / "test", networks=[network])
    return [rows._commit(0, epoch)["writer"] for epoch in range(rows.epochs)]


def process_in(log):
    return int(re.findall(r"process (\d+)", log.read_text())[-1])


def commits_in(out, network):
    return len(list(out.glob(f"test/network-{network:03d}/commits/c.*")))


@pytest.fixture(autouse=True)
def nobody_is_connected():
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run that nothing disturbed."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as many as a worker with one CPU has
    out = tmp_path_factory.mktemp("run") / "whole"
    train(parse_spec(TEXT), out, source=TEXT)
    torch.set_num_threads(before)
    return out


@pytest.fixture
def cluster():
    """A cluster of two nodes on this machine, the second with a GPU that is none."""
    head = {"num_cpus": 1, "num_gpus": 0, "include_dashboard": False}
    made = RayCluster(initialize_head=True, head_node_args=head)
    made.second = made.add_node(num_cpus=1, num_gpus=1)
    yield made
    ray.shutdown()
    made.shutdown()


def assert_undisturbed(out, whole):
    for split in ("test", "train"):
        assert check_record(out / split).sound
        np.testing.assert_array_equal(labels_in(out, split), labels_in(whole, split))
    lines = (out / "metrics.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * EPOCHS


def test_a_killed_worker_is_replaced_and_goes_on_to_the_same_bits(whole, tmp_path):
    out, killed, heard = tmp_path / "run", [], []

    def kill_once(progress):
        heard.append((progress.network, progress.networks, progress.epochs))
        if progress.network == 1 and not killed and progress.epoch < EPOCHS:
            killed.append(process_in(out / "logs/network-001.log"))
            os.kill(killed[0], signal.SIGKILL)

    result = train_remotely(parse_spec(TEXT), out, source=TEXT, progress=kill_once)
    assert killed
    assert result.failed == {}
    assert process_in(out / "logs/network-001.log") != killed[0]
    assert_undisturbed(out, whole)
    assert set(heard) == {(0, 2, EPOCHS), (1, 2, EPOCHS)}
    writers = writers_of(out, 1)
    assert len(set(writers)) == 2  # what the first had written was left as it was
    assert sorted(writers, key=writers.index) == writers
    assert len(set(writers_of(out, 0))) == 1


def test_a_worker_that_dies_too_often_fails_and_the_others_go_on(tmp_path):
    out = tmp_path / "run"

    def kill(progress):
        if progress.network == 1 and progress.epoch < EPOCHS:
            os.kill(process_in(out / "logs/network-001.log"), signal.SIGKILL)

    result = train_remotely(parse_spec(TEXT), out, source=TEXT, retries=0, progress=kill)
    assert list(result.failed) == [1]
    assert re.search(r"worker or node died: .*; see .*network-001\.log", result.failed[1])
    assert accord.open(out / "test", networks=[0]).epochs == EPOCHS
    assert (out / "metrics.csv").read_text().count("\n0,") == EPOCHS


DRIVER = """
import sys
from pathlib import Path
from accord.experiments.cluster import train_remotely
from accord.training import parse_spec
text = sys.stdin.read()
train_remotely(parse_spec(text), Path(sys.argv[1]), source=text)
"""


def wait_for_commits(out, networks, count, driver):
    deadline = time.monotonic() + 300
    while min(commits_in(out, network) for network in networks) < count:
        assert time.monotonic() < deadline
        assert driver.poll() is None
        time.sleep(0.02)


def test_a_worker_and_then_the_driver_are_killed_and_it_goes_on_to_the_same_bits(whole, tmp_path):
    out = tmp_path / "run"
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, out], stdin=subprocess.PIPE)
    driver.stdin.write(TEXT.encode())
    driver.stdin.close()
    wait_for_commits(out, [0, 1], EPOCHS // 15, driver)
    worker = process_in(out / "logs/network-001.log")
    os.kill(worker, signal.SIGKILL)
    written = commits_in(out, 1)
    wait_for_commits(out, [1], written + 5, driver)  # another worker goes on with it
    assert process_in(out / "logs/network-001.log") != worker
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait(timeout=300)
    assert commits_in(out, 1) < EPOCHS
    result = train_remotely(parse_spec(TEXT), out, source=TEXT)
    assert result.failed == {}
    assert_undisturbed(out, whole)
    assert len(set(writers_of(out, 1))) == 3


def test_a_lost_nodes_networks_move_to_another(whole, cluster, tmp_path):
    out, lost, second = tmp_path / "run", [], cluster.second

    def lose_once(progress):
        if not lost and progress.epoch < EPOCHS:
            lost.append(second)
            cluster.remove_node(second, allow_graceful=False)

    result = train_remotely(
        parse_spec(TEXT), out, source=TEXT, address=cluster.address, gpus=0, progress=lose_once
    )
    assert lost
    assert result.failed == {}
    assert_undisturbed(out, whole)


def test_all_networks_share_the_only_gpu_and_one_that_is_not_there_is_refused(cluster, tmp_path):
    messages = []
    options = {"source": SHORT, "address": cluster.address, "notify": messages.append}
    with pytest.raises(ClusterError, match=r"2 GPUs on one node, and no node has that \(.*1 GPU\b"):
        train_remotely(parse_spec(SHORT), tmp_path / "run", **options, gpus=2)
    assert not (tmp_path / "run").exists()
    train_remotely(parse_spec(SHORT), tmp_path / "run", **options, cpus=0.5)
    assert messages == ["2 networks, each with 0.5 CPU and 0.5 GPU, on a cluster of 2 nodes: "
                    "2 CPUs, 1 GPU"]  # fmt: skip
    assert accord.open(tmp_path / "run/test").epochs == 2


def test_a_changed_spec_is_refused_with_the_difference(tmp_path):
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    train_remotely(parse_spec(SHORT), tmp_path / "run", source=SHORT)
    other = SHORT.replace("rate = 0.4", "rate = 0.2")
    with pytest.raises(SpecError, match=r'(?s)another spec.*\+  "rate": 0\.2'):
        train_remotely(parse_spec(other), tmp_path / "run", source=other)
    assert ray.is_initialized()  # the caller's connection is the caller's to end


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__version__ = '0.0.1'", r"has accord 0\.0\.1; this is accord .*ship=True"),
        ("raise ImportError", r"has no accord; this is accord .*pip install accord=="),
    ],
)
def test_a_node_with_another_accord_is_named(tmp_path, text, words):
    (tmp_path / "accord").mkdir()
    (tmp_path / "accord/__init__.py").write_text(text)
    elsewhere = {"env_vars": {"PYTHONPATH": str(tmp_path)}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=elsewhere)
    with pytest.raises(NodeUnfit, match=words):
        train_remotely(parse_spec(SHORT), tmp_path / "run", source=SHORT)


def test_accord_can_be_sent_along(cluster):
    with Cluster(cluster.address, ship=True) as joined:
        where = "{'file': __import__('accord').__file__}"
        task = joined.start(eval, where, resources=Resources(cpus=1, gpus=0), retries=0)
        assert "runtime_resources" in joined.result(task)["file"]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A record of a few chunks, as written and packed."""
    folder, generator = tmp_path_factory.mktemp("large"), np.random.default_rng(0)
    samples, classes = 100_000, 7
    for network in range(2):
        with Recorder(
            folder / "rows", network=network, samples=samples, classes=classes, probabilities=True
        ) as recorder:
            for _ in range(3):
                recorder.record(logits=generator.normal(size=(samples, classes)))
    pack_record(folder / "rows", folder / "packed")
    return folder


def test_predictions_of_a_cluster_are_those_of_one_machine(large):
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    for rule in ("max-agreement", "soft-agreement", "consensus"):
        for form in ("rows", "packed"):
            expected = accord.open(large / form).predict(rule)
            found = predict_remotely(large / form, rule, blocks=3)
            np.testing.assert_array_equal(found.labels, expected.labels)
            np.testing.assert_array_equal(found.scores, expected.scores)


ROOT = Path(__file__).parents[1]


BLOCK = re.compile(
    r"(?P<exempt><!-- not run: .+? -->\n)?^```(?P<kind>console|python)\n(?P<text>.*?)^```$",
    re.M | re.S,
)


def test_what_the_how_to_shows_runs(tmp_path):
    """All blocks, from top to bottom, but those that need several machines."""
    page = (ROOT / "docs/how-to/use-a-cluster.md").read_text()
    found = [one.groupdict("") for one in BLOCK.finditer(page)]
    shown = [one for one in found if not one["exempt"] or "test_ray.py runs it" in one["exempt"]]
    assert (len(found), len(shown)) == (8, 6)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for kind, text in ((one["kind"], one["text"]) for one in shown):
        commands = "\n".join(
            line[2:] for line in text.splitlines() if line.startswith(("$ ", "> "))
        )
        arguments = [sys.executable, "-c", text] if kind == "python" else ["bash", "-ec", commands]
        done = subprocess.run(
            arguments,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, text + done.stdout + done.stderr
