"""A Ray cluster, to run tasks on; the only file that imports ray."""

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

FINEST: Final = 10_000  # Ray counts in such parts of a GPU


@dataclass(frozen=True)
class Node:
    """One machine of a cluster, and how much it lends."""

    name: str
    cpus: float
    gpus: float


@dataclass(frozen=True)
class Share:
    """What one task takes of the machine it runs on."""

    cpus: float
    gpus: float


def share_out(
    tasks: int, nodes: Sequence[Node], *, cpus: float = 1.0, gpus: float | None = None
) -> Share:
    """Say how much each of so many equal tasks takes.

    Unless told, a task takes as much of a GPU as lets all of them run at once, and none where
    the cluster has none.

    Raises:
        ChoiceError: `cpus` or `gpus` cannot be.
        ClusterError: no node is large enough, so that a task would wait for ever.

    >>> share_out(5, [Node("a", cpus=8, gpus=2)])
    Share(cpus=1.0, gpus=0.3333)
    """
    if gpus is None:
        gpus = _equal_part(tasks, nodes)
    share = Share(float(cpus), float(gpus))
    _check_share(share)
    _check_room(share, nodes)
    return share


def units(number: float, what: str) -> str:
    """Return how many units there are, or what part of one.

    >>> units(2, "CPU"), units(1.0, "CPU"), units(0.5, "GPU"), units(0, "GPU")
    ('2 CPUs', '1 CPU', '0.5 GPU', '0 GPUs')
    """
    return f"{number:g} {what if 0 < number <= 1 else f'{what}s'}"


def _equal_part(tasks: int, nodes: Sequence[Node]) -> float:
    total = sum(int(node.gpus) for node in nodes)
    if total == 0:
        return 0.0
    on_one = math.ceil(tasks / total)
    return (FINEST // on_one) / FINEST  # rounded down: three thirds must fit


def _check_share(share: Share) -> None:
    if not 0 <= share.cpus < math.inf:
        raise ChoiceError(f"cpus must be 0 or more for each network; got {share.cpus:g}")
    whole = share.gpus == int(share.gpus) if math.isfinite(share.gpus) else False
    if share.gpus < 0 or not (share.gpus <= 1 or whole):
        raise ChoiceError(
            f"gpus must be a part of one, such as 0.25, or a whole number; got {share.gpus:g}"
        )


def _check_room(share: Share, nodes: Sequence[Node]) -> None:
    if any(node.cpus >= share.cpus and node.gpus >= share.gpus for node in nodes):
        return
    there = "; ".join(
        f"{node.name}: {units(node.cpus, 'CPU')}, {units(node.gpus, 'GPU')}" for node in nodes
    )
    raise ClusterError(
        f"each task wants {units(share.cpus, 'CPU')} and {units(share.gpus, 'GPU')} of one node, "
        f"and no node has that ({there or 'there are no nodes'}). Ask for less, or add a node with "
        "`ray start --address=HOST:PORT`."
    )


def cut_samples(samples: int, *, pieces: int, chunk: int = 1) -> list[slice]:
    """Cut samples into at most so many ranges of nearly equal size, at the bounds of chunks.

    A chunk that two ranges shared would be read twice.

    >>> cut_samples(10, pieces=2, chunk=4)
    [slice(0, 8, None), slice(8, 10, None)]
    """
    if pieces < 1:
        raise ChoiceError(f"at least 1 block of samples is wanted; got {pieces}")
    chunks = math.ceil(samples / chunk)
    step = math.ceil(chunks / pieces) * chunk
    return [slice(start, min(start + step, samples)) for start in range(0, samples, step)]


LOCAL: Final = "local"
REACH_SECONDS: Final = 10.0  # for an answer from a cluster's door

Task = Any  # Ray's reference to what a task will return
Plain = dict[str, Any]  # numbers, text and arrays alone: read before Accord is known to be there


class Cluster:
    """A Ray cluster; a context manager.

    Starts one on this machine alone, or joins the one at `address`. If the calling program is
    connected to one already, that one is used and left as it is.

    Args:
        address: None or "local" for this machine alone; "auto", "HOST:PORT" or "ray://HOST:PORT"
            for a cluster.
        ship: send this Accord along, for nodes that have its dependencies and not itself.

    Raises:
        ExtraMissing: ray is not installed.
        ClusterError: nothing answers at the address.
    """

    def __init__(self, address: str | None = None, *, ship: bool = False) -> None:
        self._ray = _import_ray()
        self._mine = not self._ray.is_initialized()
        self._tasks: list[Task] = []
        if self._mine:
            _join(self._ray, address or LOCAL, ship=ship)
        self._work = self._ray.remote(_envelope())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._tasks:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.cancel(task, force=True)
        if self._mine:
            self._ray.shutdown()

    def nodes(self) -> list[Node]:
        """Return the nodes that are alive."""
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
        self, function: Callable[[Plain], Plain], given: Plain, *, share: Share, retries: int
    ) -> Task:
        """Start a function of Accord's, by its name, somewhere on the cluster.

        If its worker or node dies it is started again, up to so many times.
        """
        options = {"num_cpus": share.cpus, "num_gpus": share.gpus, "max_retries": retries}
        task = self._work.options(**options).remote(
            accord.__version__, function.__module__, function.__name__, given
        )
        self._tasks.append(task)
        return task

    def wait(self, tasks: Sequence[Task], *, seconds: float | None = None) -> list[Task]:
        """Return the tasks that have ended, as soon as one has or the time is over."""
        done, _ = self._ray.wait(list(tasks), timeout=seconds, fetch_local=False)
        return list(done)

    def result(self, task: Task) -> Plain:
        """Return what a task returned, or raise what it raised.

        Raises:
            AccordError: the task did.
            NodeUnfit: the node has no Accord, or another one.
            ClusterError: the task failed in a way not foreseen, or its worker died too often.
        """
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
    """Tell whether a node of a cluster has a GPU.

    Raises:
        ExtraMissing, ClusterError: as of `Cluster`.
    """
    with Cluster(address) as cluster:
        return any(node.gpus for node in cluster.nodes())


def _check_version(node: str, version: str | None) -> None:
    if version == accord.__version__:
        return
    has = "no accord" if version is None else f"accord {version}"
    raise NodeUnfit(
        f"{node}: has {has}; this is accord {accord.__version__}. Install it there: "
        f"pip install accord=={accord.__version__}, or send it along with ship=True."
    )


def _envelope() -> Callable[[str, str, str, Plain], tuple[str, str | None, Plain]]:
    # A nested function travels by value: on a node without Accord, one that is loaded by its
    # name would fail before it could say so.
    def work(version: str, home: str, name: str, given: Plain) -> tuple[str, str | None, Plain]:
        import importlib
        import platform

        node = platform.node()
        try:
            there = str(importlib.import_module("accord").__version__)
        except ImportError:
            return node, None, {}
        if there != version:
            return node, there, {}
        return node, there, getattr(importlib.import_module(home), name)(given)

    return work


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported unless asked for
    try:
        import ray
    except ImportError as error:
        raise missing_extra("a cluster", "ray", extra="ray", cause=error) from error
    return ray


def _join(ray: Any, address: str, *, ship: bool) -> None:
    if address != LOCAL:
        _check_door(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        options["include_dashboard"] = False
    if ship:
        options["runtime_env"] = {"py_modules": [str(Path(accord.__file__).parent)]}
    try:
        ray.init(address=address, **options)
    except Exception as error:  # what a node that starts too slowly makes Ray raise, itself
        raise ClusterError(_why_not(address, error)) from error


def _why_not(address: str, error: Exception) -> str:
    if address == LOCAL:
        return (
            f"Ray could not be started on this machine: {error} "
            "Is it busy, or out of memory? Training needs no Ray here: leave --ray out."
        )
    if _asks_for_token(error):
        return (
            f"{address}: the cluster admits only those who know its token. `ray get-auth-token` "
            "prints it on the machine that the cluster was started on: put it into "
            "~/.ray/auth_token on every other, and set RAY_AUTH_MODE=token on all."
        )
    return (
        f"{address}: the cluster cannot be joined: {error} "
        "Start one with `ray start --head` and name its HOST:PORT, or leave the address out."
    )


def _asks_for_token(error: BaseException | None) -> bool:
    """Tell whether Ray was refused; it says so in what caused its error."""
    while error is not None:
        if "AuthToken" in str(error) or type(error).__name__ == "AuthenticationError":
            return True
        error = error.__cause__
    return False


def _check_door(address: str) -> None:
    """Refuse an address that nothing listens at; Ray itself tries for many minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdecimal():  # "auto"
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"{address}: no cluster answers there ({error}). Is it running, is it the address that "
            "`ray start --head` printed, and may this machine reach it?"
        ) from error
