"""Run tasks on a Ray cluster."""

import contextlib
import logging
import math
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import accord
from accord.errors import AccordError, ChoiceError, ClusterError, NodeUnfit, missing_extra

GPU_UNITS: Final = 10_000  # Ray divides a GPU into this many parts


@dataclass(frozen=True)
class Node:
    name: str
    cpus: float
    gpus: float


@dataclass(frozen=True)
class Resources:
    cpus: float
    gpus: float


def allocate(
    tasks: int, nodes: Sequence[Node], *, cpus: float = 1.0, gpus: float | None = None
) -> Resources:
    """Allocate resources to equal tasks and check that the nodes can provide them.

    By default, GPUs are shared equally so that all tasks run at once.

    >>> allocate(5, [Node("a", cpus=8, gpus=2)])
    Resources(cpus=1.0, gpus=0.3333)
    """
    if gpus is None:
        total = sum(int(node.gpus) for node in nodes)
        # Rounded down: three thirds must fit on one GPU.
        gpus = GPU_UNITS // math.ceil(tasks / total) / GPU_UNITS if total else 0.0
    if not 0 <= cpus < math.inf:
        raise ChoiceError(f"cpus must be 0 or more per task; got {cpus:g}")
    if not 0 <= gpus < math.inf or (gpus > 1 and gpus != int(gpus)):
        raise ChoiceError(f"gpus must be a fraction, such as 0.25, or a whole number; got {gpus:g}")
    resources = Resources(float(cpus), float(gpus))
    _check_fits(resources, nodes)
    return resources


def units_text(number: float, unit: str) -> str:
    """Format a number of CPUs or GPUs as text.

    >>> units_text(2, "CPU"), units_text(1.0, "CPU"), units_text(0.5, "GPU"), units_text(0, "GPU")
    ('2 CPUs', '1 CPU', '0.5 GPU', '0 GPUs')
    """
    return f"{number:g} {unit if 0 < number <= 1 else f'{unit}s'}"


def _check_fits(resources: Resources, nodes: Sequence[Node]) -> None:
    if any(node.cpus >= resources.cpus and node.gpus >= resources.gpus for node in nodes):
        return
    there = "; ".join(
        f"{node.name}: {units_text(node.cpus, 'CPU')}, {units_text(node.gpus, 'GPU')}"
        for node in nodes
    )
    raise ClusterError(
        f"each task requires {units_text(resources.cpus, 'CPU')} and "
        f"{units_text(resources.gpus, 'GPU')} on one node, and no node has that "
        f"({there or 'the cluster has no nodes'}). Lower cpus or gpus, or add a node with "
        "`ray start --address=HOST:PORT`."
    )


def split_samples(samples: int, *, pieces: int, chunk: int = 1) -> list[slice]:
    """Split samples into at most `pieces` nearly equal ranges at chunk boundaries.

    A chunk that two ranges share would be read twice.

    >>> split_samples(10, pieces=2, chunk=4)
    [slice(0, 8, None), slice(8, 10, None)]
    """
    if pieces < 1:
        raise ChoiceError(f"blocks must be at least 1; got {pieces}")
    chunks = math.ceil(samples / chunk)
    step = math.ceil(chunks / pieces) * chunk
    return [slice(start, min(start + step, samples)) for start in range(0, samples, step)]


LOCAL: Final = "local"
CONNECT_SECONDS: Final = 10.0

Task = Any  # Ray's reference to the result of a task
Plain = dict[str, Any]  # numbers, text and arrays: read before Accord is known to be installed


class Cluster:
    """Context manager for a Ray cluster.

    Starts one on this machine, or joins the one at `address`. A program that is connected to a
    cluster already uses that one, and stays connected at the end.

    Args:
        address: None or "local" for this machine only; "auto", "HOST:PORT" or "ray://HOST:PORT"
            for a cluster.
        ship: send this version of Accord to the nodes, which need only its dependencies.
    """

    def __init__(self, address: str | None = None, *, ship: bool = False) -> None:
        self._ray = _import_ray()
        self._started = not self._ray.is_initialized()
        self._tasks: list[Task] = []
        if self._started:
            _join(self._ray, address or LOCAL, ship=ship)
        self._work = self._ray.remote(_remote_function())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._tasks:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.cancel(task, force=True)
        if self._started:
            self._ray.shutdown()

    def nodes(self) -> list[Node]:
        return [
            Node(
                name=node["NodeManagerHostname"],
                cpus=node["Resources"].get("CPU", 0.0),
                gpus=node["Resources"].get("GPU", 0.0),
            )
            for node in self._ray.nodes()
            if node["Alive"]
        ]

    def start(
        self,
        function: Callable[[Plain], Plain],
        argument: Plain,
        *,
        resources: Resources,
        retries: int,
    ) -> Task:
        """Start a function of Accord by name on a node with these resources.

        If its worker or node dies, it is started again, up to `retries` times.
        """
        options = {"num_cpus": resources.cpus, "num_gpus": resources.gpus, "max_retries": retries}
        task = self._work.options(**options).remote(
            accord.__version__, function.__module__, function.__name__, argument
        )
        self._tasks.append(task)
        return task

    def wait(self, tasks: Sequence[Task], *, seconds: float | None = None) -> list[Task]:
        """Wait for a task to finish, for at most `seconds`, and return all finished tasks."""
        done, _ = self._ray.wait(list(tasks), timeout=seconds, fetch_local=False)
        return list(done)

    def result(self, task: Task) -> Plain:
        self._tasks.remove(task)
        try:
            node, version, result = self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, AccordError):
                raise error.cause from error
            raise ClusterError(f"{type(error.cause).__name__}: {error.cause}") from error
        except self._ray.exceptions.RayError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise ClusterError(
                f"its worker or node died: {lines[0] if lines else error}"
            ) from error
        _check_version(node, version)
        return dict(result)


def has_gpus(address: str | None = None) -> bool:
    """Check whether a node of a cluster has a GPU.

    Raises:
        ExtraMissing: ray is not installed.
        ClusterError: the cluster cannot be reached.
    """
    with Cluster(address) as cluster:
        return any(node.gpus for node in cluster.nodes())


def _check_version(node: str, version: str | None) -> None:
    if version == accord.__version__:
        return
    found = "no accord" if version is None else f"accord {version}"
    raise NodeUnfit(
        f"{node}: has {found}; this is accord {accord.__version__}. Install it there: "
        f"pip install accord=={accord.__version__}, or send it with ship=True."
    )


def _remote_function() -> Callable[[str, str, str, Plain], tuple[str, str | None, Plain]]:
    # A nested function is pickled by value. One pickled by name could not be loaded on a node
    # without Accord, and would fail without a useful message.
    def work(
        version: str, module: str, name: str, argument: Plain
    ) -> tuple[str, str | None, Plain]:
        import importlib
        import platform

        node = platform.node()
        try:
            found = str(importlib.import_module("accord").__version__)
        except ImportError:
            return node, None, {}
        if found != version:
            return node, found, {}
        return node, found, getattr(importlib.import_module(module), name)(argument)

    return work


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # telemetry is opt-in
    try:
        import ray
    except ImportError as error:
        raise missing_extra("a cluster", "ray", extra="ray", cause=error) from error
    return ray


def _join(ray: Any, address: str, *, ship: bool) -> None:
    if address != LOCAL:
        _check_reachable(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        options["include_dashboard"] = False
    if ship:
        options["runtime_env"] = {"py_modules": [str(Path(accord.__file__).parent)]}
    try:
        ray.init(address=address, **options)
    except Exception as error:  # Ray raises a bare Exception if a node starts too slowly
        raise ClusterError(_join_error(address, error)) from error


def _join_error(address: str, error: Exception) -> str:
    if address == LOCAL:
        return (
            f"Ray could not be started on this machine: {error} "
            "Is it busy, or out of memory? On one machine, train without --ray."
        )
    if _needs_token(error):
        return (
            f"{address}: the cluster requires a token. Run `ray get-auth-token` on the machine "
            "that started the cluster, store the token in ~/.ray/auth_token on every other "
            "machine, and set RAY_AUTH_MODE=token on all."
        )
    return (
        f"{address}: the cluster cannot be joined: {error} "
        "Start one with `ray start --head` and give its HOST:PORT, or omit the address."
    )


def _needs_token(error: BaseException | None) -> bool:
    """Check whether Ray was refused for lack of a token."""
    while error is not None:
        if "AuthToken" in str(error) or type(error).__name__ == "AuthenticationError":
            return True
        error = error.__cause__
    return False


def _check_reachable(address: str) -> None:
    """Check that a server listens at an address. Ray itself would retry for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdecimal():  # "auto"
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"{address}: no cluster answers ({error}). Is it running, is this the address that "
            "`ray start --head` printed, and can this machine reach it?"
        ) from error
