"""Train a spec's networks on a cluster, one task for each."""

import contextlib
import dataclasses
import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from accord._files import write_file
from accord.errors import (
    AccordError,
    ChoiceError,
    ClusterError,
    NodeUnfit,
    NotARecord,
    RecordBusy,
    RowDamaged,
    StorageError,
    counted,
)
from accord.experiments.cluster._cluster import Cluster, Node, Plain, Share, Task, share_out, units
from accord.store._layout import committed_epochs, now, read_commit
from accord.store._record_reader import check_numbers
from accord.store._storage import Folder

if TYPE_CHECKING:
    from accord.training.run import Progress, RunResult
    from accord.training.spec import Spec


class News(NamedTuple):
    """How far a network has come."""

    network: int
    progress: float
    loss: float


class RunFollower:
    """Tells what networks record, from the commits that appear in their record."""

    def __init__(self, record: Path, networks: Sequence[int]) -> None:
        self._place = Folder(record)
        self._seen = {network: self._epochs(network) or 0 for network in networks}

    def news(self) -> Iterator[News]:
        """Return the latest of each network that has recorded something new."""
        for network, seen in self._seen.items():
            epochs = self._epochs(network)
            if epochs is not None and epochs > seen:
                self._seen[network] = epochs
                facts = read_commit(self._place, network, epochs - 1)
                yield News(network, facts["progress"], facts["told"].get("loss", 0.0))

    def _epochs(self, network: int) -> int | None:
        try:
            return committed_epochs(self._place, network)
        except (RowDamaged, StorageError):  # listed while it grew: the next look will tell
            return None


LOGS: Final = "logs"
FILE_SYSTEM_SECONDS: Final = 5.0  # shared file systems show new files late
BUSY_SECONDS: Final = 60.0  # for a worker of a driver that was killed to die too
AGAIN_SECONDS: Final = 0.5


@dataclass(frozen=True)
class Job:
    """One network to be trained by a worker."""

    out: str  # the run's folder
    spec: str  # as JSON
    source: str
    network: int
    digest: str  # of the source
    folder: str  # where the paths in the spec start from
    patience: float = BUSY_SECONDS


def train_one(given: dict[str, Any]) -> dict[str, Any]:
    """Train one network, or go on with it; talk goes to its log in the run's folder.

    Raises:
        NodeUnfit: this node does not see the run's folder.
        RecordBusy: another process trains the network, and goes on doing so.
    """
    job = Job(**given)
    node, out = platform.node(), Path(job.out)
    if Path(job.folder).is_dir():
        os.chdir(job.folder)
    _check_seen(out, job.digest, node)
    with _log(log_of(out, job.network)) as log:
        try:
            return _train(job, log)
        except AccordError as error:
            raise type(error)(f"on {node}: {error}") from error


def log_of(out: Path, network: int) -> Path:
    """Return where the worker of a network writes what it does."""
    return out / LOGS / f"network-{network:03d}.log"


def leave_word(out: Path, source: str) -> str:
    """Leave a spec where workers that see the run's folder will find it; return its digest.

    It takes nothing: the folder is the run's once a worker has checked data and networks.
    """
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    word = _word_of(out, digest)
    write_file(word, source.encode())
    return digest


def _word_of(out: Path, digest: str) -> Path:
    return out / LOGS / f"asked-{digest}.toml"


def _check_seen(out: Path, digest: str, node: str, *, seconds: float = FILE_SYSTEM_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    word = _word_of(out, digest)
    while not word.exists():
        if time.monotonic() > deadline:
            raise NodeUnfit(
                f"{node}: does not see {word}. The run's folder must lie on a path that "
                "all nodes share, such as a network file system: name one with --out."
            )
        time.sleep(AGAIN_SECONDS)


class _Log:
    def __init__(self, file: Any) -> None:
        self._file = file

    def say(self, text: str) -> None:
        self._file.write(f"{now()} {text}\n")


@contextlib.contextmanager
def _log(path: Path) -> Iterator[_Log]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("a", encoding="utf-8", buffering=1) as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):
        log = _Log(file)
        try:
            yield log
        except BaseException as error:
            log.say(f"ended by {type(error).__name__}: {error}")
            raise


def _train(job: Job, log: _Log) -> dict[str, Any]:
    import torch

    from accord.training._settings import choose_device
    from accord.training.run import train
    from accord.training.spec import Spec

    def progress(_network: int, _networks: int, epoch: float, epochs: int, loss: float) -> None:
        log.say(f"epoch {epoch:g} of {epochs}, loss {loss:.4f}")

    log.say(
        f"on {platform.node()}, process {os.getpid()}, {choose_device()}, "
        f"{torch.get_num_threads()} threads"
    )
    spec, deadline = Spec.model_validate_json(job.spec), time.monotonic() + job.patience
    while True:
        try:
            result = train(
                spec, Path(job.out), source=job.source, networks=[job.network], progress=progress
            )
        except RecordBusy as error:
            if time.monotonic() > deadline:
                raise
            log.say(f"waiting: {error}")
            time.sleep(AGAIN_SECONDS)
        else:
            log.say(result.failed.get(job.network, "done"))
            return {"failed": result.failed, "notes": result.notes}


POLL_SECONDS: Final = 0.5  # between two looks at the growing record

Say = Callable[[str], None]


def train_remotely(
    spec: "Spec",
    out: Path,
    *,
    source: str,
    address: str | None = None,
    gpus: float | None = None,
    cpus: float = 1.0,
    retries: int = 3,
    networks: Sequence[int] | None = None,
    ship: bool = False,
    progress: "Progress | None" = None,
    say: Say | None = None,
) -> "RunResult":
    """Train a spec's networks into `out` on a Ray cluster, each as one task.

    What is already there is not done again. A task whose worker or node dies is started again
    and goes on from the network's last training state. If this process dies, so do its tasks;
    started again, it resumes. Each worker writes to `out`/logs/network-NNN.log.

    Args:
        spec: what to train.
        out: the run's folder, on a path that all nodes see.
        source: the spec's own text, kept with the run.
        address: None or "local" starts Ray on this machine; "auto", "HOST:PORT" or
            "ray://HOST:PORT" joins a cluster.
        gpus: for each network, a part of one or a whole number; by default as much as lets all
            networks train at once.
        cpus: for each network, and the threads that torch uses for it.
        retries: how often a network whose worker died is started again.
        networks: train these alone, by number.
        ship: send this Accord along to nodes that have its dependencies and not itself.
        progress: called when a network has recorded more, with what it recorded last.
        say: called with a line for people to read.

    Returns:
        As `train` does. A network whose worker died too often is among the failed ones.

    Raises:
        ExtraMissing: ray is not installed.
        ClusterError: the cluster cannot be reached, or no node has the CPUs and GPUs.
        NodeUnfit: a node has no Accord, another one, or does not see `out`.
        SpecError: `out` holds a run of another spec.
        ChoiceError, SourceError: as `train` says; what cannot begin takes no folder.
        RecordBusy: another process goes on training one of the networks.
    """
    from accord.training._network_run import write_metrics
    from accord.training.run import RunResult, check_same_spec
    from accord.training.spec import network_specs

    _check_retries(retries)
    there = [member.number for member in network_specs(spec)]
    chosen = list(there if networks is None else networks)
    check_numbers(spec.name, chosen, there)
    out = Path(out).absolute()
    check_same_spec(spec, out)
    record = out / spec.record.splits[0]
    with Cluster(address, ship=ship) as cluster:
        nodes = cluster.nodes()
        share = share_out(len(chosen), nodes, cpus=cpus, gpus=gpus)
        if say is not None:
            say(_plan_text(len(chosen), share, nodes))
        digest = leave_word(out, source)
        jobs = [_job(spec, out, source, digest, number) for number in chosen]
        follower = RunFollower(record, chosen)
        look = partial(_look, follower, progress, networks=len(chosen), epochs=spec.train.epochs)
        failed, notes = _run(cluster, jobs, share, retries=retries, look=look)
    with contextlib.suppress(NotARecord):  # no worker came far enough to begin one
        write_metrics(record, out / "metrics.csv")
    return RunResult(out, failed, notes)


def _look(
    follower: RunFollower, progress: "Progress | None", *, networks: int, epochs: int
) -> None:
    if progress is not None:
        for news in follower.news():
            progress(news.network, networks, news.progress, epochs, news.loss)


def _check_retries(retries: int) -> None:
    if retries < 0:
        raise ChoiceError(f"retries must be 0 or more; got {retries}")


def _plan_text(networks: int, share: Share, nodes: Sequence[Node]) -> str:
    of_gpu = f" and {units(share.gpus, 'GPU')}" if share.gpus else ""
    return (
        f"{counted(networks, 'network')}, each with {units(share.cpus, 'CPU')}{of_gpu}, on a "
        f"cluster of {counted(len(nodes), 'node')}: "
        f"{units(sum(node.cpus for node in nodes), 'CPU')}, "
        f"{units(sum(node.gpus for node in nodes), 'GPU')}"
    )


def _job(spec: "Spec", out: Path, source: str, digest: str, network: int) -> Plain:
    return dataclasses.asdict(
        Job(
            out=str(out),
            spec=spec.model_dump_json(),
            source=source,
            network=network,
            digest=digest,
            folder=os.getcwd(),  # noqa: PTH109 -- text, for another machine
        )
    )


def _run(
    cluster: Cluster, jobs: Sequence[Plain], share: Share, *, retries: int, look: Callable[[], None]
) -> tuple[dict[int, str], tuple[str, ...]]:
    """Run the jobs until all have ended; return which networks failed and why, and notes."""
    waiting: dict[Task, Plain] = {
        cluster.start(train_one, job, share=share, retries=retries): job for job in jobs
    }
    failed: dict[int, str] = {}
    notes: list[str] = []
    while waiting:
        done = cluster.wait(list(waiting), seconds=POLL_SECONDS)
        look()
        for task in done:
            job = waiting.pop(task)
            try:
                result = cluster.result(task)
            except NodeUnfit:
                raise
            except ClusterError as error:
                failed[job["network"]] = f"{error}; see {log_of(Path(job['out']), job['network'])}"
            else:
                failed.update(result["failed"])
                notes += [note for note in result["notes"] if note not in notes]
    return dict(sorted(failed.items())), tuple(notes)
