"""Train a spec's networks on a cluster, one task for each."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from accord.errors import ChoiceError, ClusterError, NodeUnfit, NotARecord, counted
from accord.experiments.remote.cluster import Cluster, Plain, Task
from accord.experiments.remote.following import RunFollower
from accord.experiments.remote.shares import Node, Share, share_out, units
from accord.experiments.remote.work import Job, leave_word, log_of, train_one
from accord.store.rows import check_numbers

if TYPE_CHECKING:
    from accord.training.run import Progress, RunResult
    from accord.training.spec import Spec

LOOK_SECONDS: Final = 0.5  # between two looks at the growing record

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
        As `train_run` does. A network whose worker died too often is among the failed ones.

    Raises:
        ExtraMissing: ray is not installed.
        ClusterError: the cluster cannot be reached, or no node has the CPUs and GPUs.
        NodeUnfit: a node has no Accord, another one, or does not see `out`.
        SpecError: `out` holds a run of another spec.
        ChoiceError, SourceError: as `train_run` says; what cannot begin takes no folder.
        RecordBusy: another process goes on training one of the networks.
    """
    from accord.training.keeping import write_metrics
    from accord.training.run import RunResult, refuse_another
    from accord.training.spec import members_of

    _check_retries(retries)
    there = [member.number for member in members_of(spec)]
    chosen = list(there if networks is None else networks)
    check_numbers(spec.name, chosen, there)
    out = Path(out).absolute()
    refuse_another(spec, out)
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
        done = cluster.wait(list(waiting), seconds=LOOK_SECONDS)
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
