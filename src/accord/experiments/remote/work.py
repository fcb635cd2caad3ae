"""What a worker of a cluster does: train one network of a run."""

import contextlib
import hashlib
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from accord.errors import AccordError, NodeUnfit, RecordBusy
from accord.store.places import Folder
from accord.store.versions import now

LOGS: Final = "logs"
LOOK_SECONDS: Final = 5.0  # shared file systems show new files late
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
    Folder(word.parent).put(word.name, source.encode())
    return digest


def _word_of(out: Path, digest: str) -> Path:
    return out / LOGS / f"asked-{digest}.toml"


def _check_seen(out: Path, digest: str, node: str, *, seconds: float = LOOK_SECONDS) -> None:
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

    from accord.training.run import train_run
    from accord.training.settings import choose_device
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
            result = train_run(
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
