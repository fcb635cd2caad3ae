"""Train the networks of a run in parallel worker processes.

`train_in_workers` starts `python -m accord.training._workers` once per network, with a limited
number at a time. A worker reads one line of JSON from its standard input and writes one line for
each event to its standard output. Plain processes, and not an executor of the standard library:
there, one killed process fails all networks that are still waiting.
"""

import contextlib
import dataclasses
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import IO, Any, Final, TypeAlias, cast

import torch

from accord import errors
from accord.errors import AccordError
from accord.training._network_run import Progress, train_network
from accord.training._run_folder import Run
from accord.training._spec import NetworkSpec, Spec

# -P: the working directory comes first only if it does in this process; see PYTHONPATH below.
COMMAND: Final = (sys.executable, "-P", "-m", "accord.training._workers")
KILLED: Final = 9  # the signal; Windows has no name for it
TAIL: Final = 2000  # characters of a worker's standard error in which its last line is looked for

Event: TypeAlias = Progress | AccordError | None  # None: the worker of a network has ended


def train_in_workers(
    run: Run, networks: Sequence[NetworkSpec], processes: int
) -> Generator[Progress]:
    """Train each network in a worker process and yield progress events.

    If the iterator is closed early, all workers are killed. They also die with this process.
    A network whose worker could not be started for lack of memory is trained in this process.
    """
    waiting = deque(networks)
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    running: list[_Worker] = []
    ended = 0
    try:
        while waiting or ended < len(running):
            while waiting and len(running) - ended < processes:
                try:
                    running.append(_Worker(run, waiting[0], events))
                except OSError:  # no memory, or too many processes
                    break
                waiting.popleft()
            if ended == len(running):  # not one worker can be started
                yield from train_network(run, waiting.popleft())
                continue
            event = events.get()
            if event is None:
                ended += 1
            elif isinstance(event, AccordError):
                raise event
            else:
                yield event
    finally:
        for worker in running:
            worker.kill()


class _Worker:
    """Worker process with a thread that reads its events."""

    def __init__(self, run: Run, network: NetworkSpec, events: "queue.SimpleQueue[Event]") -> None:
        self._network, self._epochs, self._events = network.number, run.spec.train.epochs, events
        self._killed = False
        self._stderr: IO[str] = tempfile.TemporaryFile(  # noqa: SIM115 -- the thread closes it
            "w+", encoding="utf-8", errors="replace"
        )
        try:
            self._process = subprocess.Popen(  # noqa: S603 -- the same interpreter
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                encoding="utf-8",
                # The worker finds the modules that this process finds, wherever they come from.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        except OSError:
            self._stderr.close()
            raise
        job = {
            "run": str(run.path),
            "spec": run.spec.model_dump_json(),
            "network": network.number,
            "threads": torch.get_num_threads(),
        }
        self._thread = threading.Thread(target=self._follow, args=(json.dumps(job),), daemon=True)
        self._thread.start()

    def kill(self) -> None:
        self._killed = True
        self._process.kill()
        self._thread.join()

    def _follow(self, job: str) -> None:
        try:
            with contextlib.suppress(BrokenPipeError), self._stderr, self._process:
                finished = self._read_events(job)
                status = self._process.wait()
                if not finished and not self._killed:
                    why = _describe_end(status, self._stderr)
                    self._events.put(Progress(self._network, 0.0, self._epochs, 0.0, error=why))
        finally:
            self._events.put(None)

    def _read_events(self, job: str) -> bool:
        """Queue the events of the worker and check that it reported its end."""
        stdin, stdout = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        with contextlib.suppress(BrokenPipeError):  # it was killed, which its status will show
            stdin.write(f"{job}\n")
            stdin.flush()  # and left open: a worker exits when this end of the pipe closes
        for line in stdout:
            if not line.endswith("\n"):  # cut off by a kill
                return False
            event: dict[str, Any] = json.loads(line)
            if "raised" in event:
                self._events.put(getattr(errors, event["raised"])(event["message"]))
                return True
            if not event:
                return True
            self._events.put(Progress(**event))
        return False


def _describe_end(status: int, stderr: IO[str]) -> str:
    stderr.seek(0)
    lines = stderr.read()[-TAIL:].strip().splitlines()
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    memory = ", as happens when memory runs out" if status == -KILLED else ""
    last = f" ({lines[-1]})" if lines else ""
    return f"its worker process {how}{memory}{last}. Start the run again to resume it."


def main() -> None:
    """Train the network given on standard input and write events to standard output."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as channel:
        os.dup2(2, 1)  # libraries may print; that must not reach the channel
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends this one
        job = json.loads(sys.stdin.readline())
        threading.Thread(target=_die_with_parent, daemon=True).start()

        def send(event: dict[str, Any]) -> None:
            channel.write(json.dumps(event) + "\n")

        try:
            train_job(job, send)
            send({})  # the end
        except AccordError as error:
            send({"raised": type(error).__name__, "message": str(error)})


def train_job(job: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    torch.set_num_threads(job["threads"])
    run = Run(job["run"], Spec.model_validate_json(job["spec"]))
    (network,) = (one for one in run.networks if one.number == job["network"])
    for event in train_network(run, network):
        send(dataclasses.asdict(event))


def _die_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
