"""Clusters: resources, ranges of samples, tasks, and errors of Ray.

Clusters whose workers, nodes and drivers are killed: clients/test_ray.py.
"""

import contextlib
import math
import os
import platform
import signal
import socket
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_spec import SMALL

import accord
from accord.errors import (
    ChoiceError,
    ClusterError,
    ExtraMissing,
    NodeUnfit,
    RecordMissing,
)
from accord.experiments.cluster import _ray, train_remotely
from accord.experiments.cluster._ray import (
    GPU_UNITS,
    Cluster,
    Node,
    Resources,
    allocate,
    has_gpus,
    split_samples,
)
from accord.experiments.cluster._remote_predict import predict_range
from accord.training import parse_spec

ONE = Resources(cpus=1.0, gpus=0.0)
KILLED = f"__import__('os').kill(__import__('os').getpid(), {int(signal.SIGKILL)})"


class AuthenticationError(Exception):
    """Ray's exception of this name."""


@given(st.integers(1, 40), st.lists(st.integers(0, 8), min_size=1, max_size=4))
def test_gpus_are_shared_so_that_all_networks_run_at_once(tasks, gpus):
    nodes = [Node(f"n{number}", cpus=64, gpus=one) for number, one in enumerate(gpus)]
    parts = round(allocate(tasks, nodes).gpus * GPU_UNITS)  # as Ray counts
    if sum(gpus) == 0:
        assert parts == 0
        return
    on_one = GPU_UNITS // parts
    assert on_one * sum(gpus) >= tasks
    assert on_one == 1 or (on_one - 1) * sum(gpus) < tasks


def test_explicit_resources_are_used():
    nodes = [Node("a", cpus=4, gpus=2)]
    assert allocate(3, nodes, cpus=2, gpus=0.25) == Resources(2.0, 0.25)
    assert allocate(3, nodes, gpus=2) == Resources(1.0, 2.0)
    assert allocate(3, nodes, gpus=0) == Resources(1.0, 0.0)
    assert allocate(2, [Node("a", cpus=4, gpus=0)], cpus=4) == Resources(4.0, 0.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gpus": 1.5}, r"a fraction, such as 0\.25, or a whole number; got 1\.5"),
        ({"gpus": -1}, "or a whole number; got -1"),
        ({"gpus": float("nan")}, "or a whole number; got nan"),
        ({"gpus": float("inf")}, "or a whole number; got inf"),
        ({"cpus": -1}, "cpus must be 0 or more per task; got -1"),
        ({"cpus": float("nan")}, "cpus must be 0 or more"),
    ],
)
def test_invalid_resources_raise(options, words):
    with pytest.raises(ChoiceError, match=words):
        allocate(2, [Node("a", cpus=4, gpus=2)], **options)


@pytest.mark.parametrize("options", [{"gpus": 0.5}, {"cpus": 8}, {"cpus": 3, "gpus": 0}])
def test_tasks_that_fit_no_node_raise(options):
    nodes = [Node("a", cpus=2, gpus=0), Node("b", cpus=2, gpus=0)]
    with pytest.raises(ClusterError, match=r"no node has that \(a: 2 CPUs, 0 GPUs; b: .*Lower"):
        allocate(2, nodes, **options)
    with pytest.raises(ClusterError, match="the cluster has no nodes"):
        allocate(1, [])


def test_cpus_and_gpus_must_be_on_one_node():
    with pytest.raises(ClusterError, match="no node has that"):
        allocate(1, [Node("a", cpus=8, gpus=0), Node("b", cpus=1, gpus=1)], cpus=2, gpus=1)


@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 9))
def test_ranges_cover_every_sample_once_and_split_no_chunk(samples, pieces, chunk):
    cuts = split_samples(samples, pieces=pieces, chunk=chunk)
    assert [one for cut in cuts for one in range(samples)[cut]] == list(range(samples))
    assert len(cuts) <= pieces
    assert all(cut.start % chunk == 0 for cut in cuts)
    chunks = math.ceil(samples / chunk)
    assert math.ceil(cuts[0].stop / chunk) == math.ceil(chunks / pieces)


def test_zero_blocks_raise():
    with pytest.raises(ChoiceError, match="blocks must be at least 1; got 0"):
        split_samples(5, pieces=0)


def test_error_without_ray_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ExtraMissing, match=r"a cluster requires ray.*pip install 'accord\[ray\]'"):
        train_remotely(parse_spec(SMALL), tmp_path / "run", source=SMALL)
    assert not (tmp_path / "run").exists()


def test_remote_function_returns_the_version_before_loading_anything(monkeypatch):
    work = _ray._remote_function()
    node, version = platform.node(), accord.__version__
    assert work(version, "builtins", "dict", {"a": 1}) == (node, version, {"a": 1})
    assert work("0.0.1", "nowhere", "nothing", {}) == (node, version, {})
    monkeypatch.setitem(sys.modules, "accord", None)
    assert work(version, "nowhere", "nothing", {}) == (node, None, {})


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("0.0.1", r"b: has accord 0\.0\.1; this is accord .*send it with ship=True"),
        (None, r"b: has no accord; this is accord .*pip install accord=="),
    ],
)
def test_error_names_a_node_with_another_version(version, words):
    with pytest.raises(NodeUnfit, match=words):
        _ray._check_version("b", version)


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_unreachable_address_raises_at_once(form):
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))  # taken, and nobody listens
        address = form.format(door.getsockname()[1])
        with pytest.raises(ClusterError, match=rf"{address}: no cluster answers .*ray start"):
            _ray._check_reachable(address)
        door.listen()
        _ray._check_reachable(address)
    _ray._check_reachable("auto")


@pytest.mark.parametrize("gpus", [(0.0, 0.0), (0.0, 2.0)])
def test_cluster_has_gpus_if_a_node_has(gpus, monkeypatch):
    joined = []

    class Nodes(contextlib.nullcontext):
        def __init__(self, address):
            joined.append(address)
            super().__init__(self)

        def nodes(self):
            return [Node(name="a", cpus=1.0, gpus=some) for some in gpus]

    monkeypatch.setattr(_ray, "Cluster", Nodes)
    assert has_gpus("10.0.0.1:6379") == any(gpus)
    assert joined == ["10.0.0.1:6379"]


@pytest.mark.slow
def test_tasks_run_in_another_process_and_return_their_errors(joined):
    assert sum(node.cpus for node in joined.nodes()) >= 1
    task = joined.start(eval, "{'process': __import__('os').getpid()}", resources=ONE, retries=0)
    assert joined.wait([task]) == [task]
    assert joined.result(task)["process"] != os.getpid()
    task = joined.start(
        predict_range, {"path": "/nowhere", "networks": []}, resources=ONE, retries=0
    )
    with pytest.raises(RecordMissing, match="/nowhere: no such file"):
        joined.result(task)
    task = joined.start(eval, "1 / 0", resources=ONE, retries=0)
    with pytest.raises(ClusterError, match="ZeroDivisionError: division by zero"):
        joined.result(task)


@pytest.mark.slow
def test_task_whose_worker_dies_is_retried(joined, tmp_path):
    count = f"open({str(tmp_path / 'tries')!r}, 'a').write('x') and {KILLED}"
    task = joined.start(eval, count, resources=ONE, retries=2)
    with pytest.raises(ClusterError, match="its worker or node died: "):
        joined.result(task)
    assert (tmp_path / "tries").read_text() == "xxx"


@pytest.mark.slow
def test_wait_times_out_and_leaving_cancels_tasks(joined, tmp_path):
    import ray

    nap = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(__import__('os').getpid()))"
    with Cluster() as inner:  # joins the same one, and leaves it running
        task = inner.start(
            eval, f"{nap} and __import__('time').sleep(600)", resources=ONE, retries=3
        )
        while not (tmp_path / "pid").exists():
            assert inner.wait([task], seconds=0.1) == []
    assert ray.is_initialized()
    assert ray.wait([task], timeout=300)[0] == [task]
    with pytest.raises((ray.exceptions.TaskCancelledError, ray.exceptions.WorkerCrashedError)):
        ray.get(task)


@pytest.mark.slow
def test_error_if_there_is_no_cluster_to_join(monkeypatch):
    pytest.importorskip("ray", reason="ray is not installed; `make clients` installs it")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ray = sys.modules["ray"]
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def refuse(**options):
        assert options["address"] == "auto"
        raise ConnectionError("Could not find any running Ray instance.")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(ClusterError, match=r"auto: the cluster cannot be joined: Could not find"):
        Cluster("auto")


def test_error_if_ray_does_not_start(monkeypatch):
    """On a busy machine Ray gives up after 30 seconds and raises a bare Exception."""

    class TooSlow:
        @staticmethod
        def is_initialized():
            return False

        @staticmethod
        def init(**_):
            raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(_ray, "_import_ray", lambda: TooSlow)
    words = r"could not be started on this machine: The current node timed out.*without --ray"
    with pytest.raises(ClusterError, match=words):
        Cluster()


@pytest.mark.parametrize(
    "cause",
    [RuntimeError("Last connection error: RPC error: InvalidAuthToken"), AuthenticationError()],
)
def test_error_if_the_cluster_requires_a_token(monkeypatch, cause):
    class Refused:
        @staticmethod
        def is_initialized():
            return False

        @staticmethod
        def init(**_):
            raise ConnectionError("Failed to connect to Ray cluster") from cause

    monkeypatch.setattr(_ray, "_import_ray", lambda: Refused)
    words = r"auto: the cluster requires a token.*`ray get-auth-token`.*RAY_AUTH_MODE=token on all"
    with pytest.raises(ClusterError, match=words):
        Cluster("auto")
