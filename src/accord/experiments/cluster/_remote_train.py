"""Train networks on a cluster with one task per network."""

import contextlib
import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from accord._files import write_file
from accord.errors import (
    AccordError,
    ChoiceError,
    ClusterError,
    NodeUnfit,
    RecordBusy,
    RowDamaged,
    StorageError,
    counted,
)
from accord.experiments.cluster._ray import (
    Cluster,
    Node,
    Plain,
    Resources,
    Task,
    allocate,
    units_text,
)
from accord.store import Folder, check_numbers
from accord.store._record_format import committed_epochs, now, read_commit

if TYPE_CHECKING:
    from accord.training import OnProgress, Progress, RunResult, Spec

LOGS: Final = "logs"
FILE_SYSTEM_SECONDS: Final = 5.0  # shared file systems show new files late
BUSY_SECONDS: Final = 60.0  # until the workers of a killed driver have died too
RETRY_SECONDS: Final = 0.5
POLL_SECONDS: Final = 0.5  # between two looks at the growing record


def train_one(task: Plain) -> Plain:
    """Train or resume a network in a worker and write its output to a log file."""
    node, out = platform.node(), Path(task["out"])
    if Path(task["folder"]).is_dir():  # the driver's working directory, for relative paths
        os.chdir(task["folder"])
    _wait_for_spec(out, task["digest"], node)
    with _open_log(log_path(out, task["network"])) as log:
        try:
            return _train_network(task, log)
        except AccordError as error:
            raise type(error)(f"on {node}: {error}") from error


def log_path(out: Path, network: int) -> Path:
    return out / LOGS / f"network-{network:03d}.log"


def publish_spec(out: Path, source: str) -> str:
    """Write a spec to the shared run folder and return its digest.

    This does not claim the folder: a worker does, once it has checked the data and the networks.
    """
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    write_file(_published_spec(out, digest), source.encode())
    return digest


def _published_spec(out: Path, digest: str) -> Path:
    return out / LOGS / f"spec-{digest}.toml"


def _wait_for_spec(
    out: Path, digest: str, node: str, *, seconds: float = FILE_SYSTEM_SECONDS
) -> None:
    deadline = time.monotonic() + seconds
    path = _published_spec(out, digest)
    while not path.exists():
        if time.monotonic() > deadline:
            raise NodeUnfit(
                f"{node}: does not see {path}. The run's folder must be on a path that all nodes "
                "share, such as a network file system. Choose one with --out."
            )
        time.sleep(RETRY_SECONDS)


@contextlib.contextmanager
def _open_log(path: Path) -> Iterator[Callable[[str], None]]:
    """Redirect output to a log file and yield a function that writes timestamped lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("a", encoding="utf-8", buffering=1) as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):

        def log(text: str) -> None:
            file.write(f"{now()} {text}\n")

        try:
            yield log
        except BaseException as error:
            log(f"stopped by {type(error).__name__}: {error}")
            raise


def _train_network(task: Plain, log: Callable[[str], None]) -> Plain:
    import torch

    from accord.training import Progress, Spec, train
    from accord.training._hardware import choose_device

    def progress(event: Progress) -> None:
        log(f"epoch {event.epoch:g} of {event.epochs}, loss {event.loss:.4f}")

    log(
        f"on {platform.node()}, process {os.getpid()}, {choose_device()}, "
        f"{torch.get_num_threads()} threads"
    )
    spec, deadline = Spec.model_validate_json(task["spec"]), time.monotonic() + task["patience"]
    out, network = Path(task["out"]), task["network"]
    while True:
        try:
            source = task["source"]
            result = train(spec, out, source=source, networks=[network], progress=progress)
        except RecordBusy as error:
            if time.monotonic() > deadline:
                raise
            log(f"waiting: {error}")
            time.sleep(RETRY_SECONDS)
        else:
            log(result.failed.get(network, "done"))
            return {"failed": result.failed, "notes": result.notes}


class RecordWatcher:
    def __init__(self, record: Path, networks: Sequence[int], *, epochs: int) -> None:
        self._folder, self._epochs = Folder(record), epochs
        self._seen = {network: self._recorded(network) or 0 for network in networks}

    def new_epochs(self) -> "Iterator[Progress]":
        """Yield the latest epoch of each network with new epochs since the last call."""
        from accord.training import Progress

        for network, seen in self._seen.items():
            recorded = self._recorded(network)
            if recorded is not None and recorded > seen:
                self._seen[network] = recorded
                commit = read_commit(self._folder, network, recorded - 1)
                loss, networks = commit["told"].get("loss", 0.0), len(self._seen)
                yield Progress(network, commit["progress"], self._epochs, loss, networks)

    def _recorded(self, network: int) -> int | None:
        try:
            return committed_epochs(self._folder, network)
        except (RowDamaged, StorageError):  # listed while it grew: complete at the next call
            return None


def train_remotely(
    spec: "Spec",
    out: Path,
    *,
    source: str | None = None,
    address: str | None = None,
    gpus: float | None = None,
    cpus: float = 1.0,
    retries: int = 3,
    networks: Sequence[int] | None = None,
    ship: bool = False,
    progress: "OnProgress | None" = None,
    notify: Callable[[str], None] | None = None,
) -> "RunResult":
    """Train the networks of a spec on a Ray cluster with one task per network.

    Recorded epochs are not trained again. A task whose worker or node dies is started again and
    resumes from the network's last training state. If this process dies, so do its tasks; started
    again, it resumes. Each worker writes to `out`/logs/network-NNN.log.

    Args:
        spec: what to train.
        out: the run's folder, on a path that all nodes share.
        source: the spec's text, stored with the run; by default written anew.
        address: None or "local" starts Ray on this machine; "auto", "HOST:PORT" or
            "ray://HOST:PORT" joins a cluster.
        gpus: per network, a fraction or an integer; by default as much as lets all networks
            train at once.
        cpus: per network; also its number of torch threads.
        retries: restarts of a network whose worker died.
        networks: train only these, by number.
        ship: send this version of Accord to the nodes, which need only its dependencies.
        progress: called when a network has recorded more, with its latest epoch.
        notify: called with messages for the user.

    Returns:
        As `train`. A network whose worker died too often is among the failed ones.

    Raises:
        ExtraMissing: ray is not installed.
        ClusterError: the cluster cannot be reached, or no node has the CPUs and GPUs.
        NodeUnfit: a node has no Accord, another version, or does not see `out`.
        SpecError: `out` holds a run of another spec.
        ChoiceError, SourceError: as `train`; `out` is not claimed.
        RecordBusy: another process keeps training one of the networks.
    """
    from accord.training import Run, RunResult, dump_spec, network_specs
    from accord.training._cross_fit import train_folds

    if retries < 0:
        raise ChoiceError(f"retries must be 0 or more; got {retries}")
    known = [network.number for network in network_specs(spec)]
    chosen = list(known if networks is None else networks)
    check_numbers(spec.name, chosen, known)
    out = Path(out).absolute()
    if spec.is_cross_fit:
        return train_folds(
            train_remotely,
            spec,
            out,
            source=source,
            networks=networks,
            progress=progress,
            address=address,
            gpus=gpus,
            cpus=cpus,
            retries=retries,
            ship=ship,
            notify=notify,
        )
    run = Run(out, spec)
    run.check_spec()
    with Cluster(address, ship=ship) as cluster:
        nodes = cluster.nodes()
        resources = allocate(len(chosen), nodes, cpus=cpus, gpus=gpus)
        if notify is not None:
            notify(_resources_text(len(chosen), resources, nodes))
        source = dump_spec(spec) if source is None else source
        task = {
            "out": str(out),
            "spec": spec.model_dump_json(),
            "source": source,
            "digest": publish_spec(out, source),
            "folder": os.getcwd(),  # noqa: PTH109 -- text, for another machine
            "patience": BUSY_SECONDS,
        }
        tasks = [{**task, "network": number} for number in chosen]
        watcher = RecordWatcher(out / spec.record.splits[0], chosen, epochs=spec.train.epochs)

        def poll() -> None:
            for event in watcher.new_epochs():
                if progress is not None:
                    progress(event)

        failed, notes = _run_tasks(cluster, tasks, resources, retries=retries, poll=poll)
    run.write_metrics()
    return RunResult(out, failed, notes)


def _resources_text(networks: int, resources: Resources, nodes: Sequence[Node]) -> str:
    gpus = f" and {units_text(resources.gpus, 'GPU')}" if resources.gpus else ""
    return (
        f"{counted(networks, 'network')}, each with {units_text(resources.cpus, 'CPU')}{gpus}, "
        f"on a cluster of {counted(len(nodes), 'node')}: "
        f"{units_text(sum(node.cpus for node in nodes), 'CPU')}, "
        f"{units_text(sum(node.gpus for node in nodes), 'GPU')}"
    )


def _run_tasks(
    cluster: Cluster,
    tasks: Sequence[Plain],
    resources: Resources,
    *,
    retries: int,
    poll: Callable[[], None],
) -> tuple[dict[int, str], tuple[str, ...]]:
    waiting: dict[Task, Plain] = {
        cluster.start(train_one, task, resources=resources, retries=retries): task for task in tasks
    }
    failed: dict[int, str] = {}
    notes: dict[str, None] = {}  # in order, without duplicates
    while waiting:
        finished = cluster.wait(list(waiting), seconds=POLL_SECONDS)
        poll()
        for handle in finished:
            task = waiting.pop(handle)
            try:
                result = cluster.result(handle)
            except NodeUnfit:
                raise
            except ClusterError as error:
                log = log_path(Path(task["out"]), task["network"])
                failed[task["network"]] = f"{error}; see {log}"
            else:
                failed.update(result["failed"])
                notes |= dict.fromkeys(result["notes"])
    return dict(sorted(failed.items())), tuple(notes)
