"""Processes that take the networks of a run off one another's hands, each on a core of its own."""

import contextlib
import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Final, Self, TypeAlias, TypeVar, cast

from accord import errors
from accord.errors import AccordError

# A process sees the very modules that this one does, wherever they come from.
BOOT: Final = (
    "import json, sys; job = json.loads(sys.stdin.readline()); sys.path[:] = job.pop('path'); "
    "from accord.training._workers import work; work(job)"
)
BEGIN_SECONDS: Final = 5.0  # that a process takes to begin, besides what it reads
WORTH: Final = 4.0  # how many times as long the rest has to take for processes to be worth it
KILLED: Final = 9  # the signal; Windows has no name for it
TAIL: Final = 2000  # characters of what a process said that are searched for its last words

Job: TypeAlias = dict[str, Any]  # what JSON can hold; `network` among it
Tell: TypeAlias = Callable[[float, float], None]  # progress, loss
T = TypeVar("T")


@dataclass(frozen=True)
class Word:
    """What a process tells of its network: how far it has come, or why it was stopped."""

    network: int
    progress: float = 0.0
    loss: float = 0.0
    stopped: str | None = None


class Crew:
    """Processes that do the jobs that wait, each one at a time; a context manager.

    The caller may do some of the jobs itself: whoever is free takes the next with `take`. Left
    early, all processes are killed; they die with this process, too, however it dies.

    Args:
        task: the function that does a job, as `module:name`. It takes what is in the job, and
            `tell`, to be called with the progress and the loss; it returns why its network was
            stopped, or None.
        jobs: what waits to be done.
    """

    def __init__(self, task: str, jobs: list[Job]) -> None:
        self._task, self._waiting = task, deque(jobs)
        self._news: queue.SimpleQueue[Word | AccordError] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._processes: list[subprocess.Popen[str]] = []
        self._lock = threading.Lock()  # no process is begun once all are being killed
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._closed = True
            for process in self._processes:
                process.kill()
        for thread in self._threads:
            thread.join()

    @property
    def waiting(self) -> tuple[Job, ...]:
        """What nobody has taken yet."""
        return tuple(self._waiting)

    @property
    def begun(self) -> bool:
        """Whether there are any processes."""
        return bool(self._threads)

    def take(self) -> Job | None:
        """Take a job off the list; None if there is none."""
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def begin(self, processes: int) -> None:
        """Start so many processes, each of which takes jobs until there are no more."""
        for _ in range(processes):
            thread = threading.Thread(target=self._serve, daemon=True)
            self._threads.append(thread)
            thread.start()

    def share(
        self, alone: Callable[[Job], Generator[T]], more: Callable[[T], int]
    ) -> Generator[tuple[int, T | Word]]:
        """Do what waits, here and in the processes; yield what is told of each network.

        Args:
            alone: does one job in this process, and yields what it reaches.
            more: asked after each of that, while there are no processes, how many to begin.

        Raises:
            AccordError: as of `news`.
        """
        while self._waiting or any(thread.is_alive() for thread in self._threads):
            while (job := self.take()) is not None:
                with contextlib.closing(alone(job)) as doing:
                    for reached in doing:
                        yield job["network"], reached
                        if not self.begun:
                            self.begin(more(reached))
                        for word in self.news():
                            yield word.network, word
            for word in self.rest():
                yield word.network, word
        for word in self.news():
            yield word.network, word

    def news(self) -> Iterator[Word]:
        """Yield what the processes have told since the last time.

        Raises:
            AccordError: what a process raised, which is for the caller to hear.
        """
        with contextlib.suppress(queue.Empty):
            while True:
                yield _heard(self._news.get_nowait())

    def rest(self) -> Iterator[Word]:
        """Yield all that the processes tell until they have ended."""
        for thread in self._threads:
            while thread.is_alive():
                with contextlib.suppress(queue.Empty):
                    yield _heard(self._news.get(timeout=0.1))
        yield from self.news()

    def _serve(self) -> None:
        while not self._closed and (job := self.take()) is not None:
            with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
                try:
                    process = self._start(said)
                except OSError:  # no memory, or too many processes: this one can do it
                    self._waiting.appendleft(job)
                    return
                if process is None:
                    return
                with contextlib.suppress(BrokenPipeError), process:  # closing its input flushes
                    self._follow(process, job, said)

    def _start(self, said: IO[str]) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._closed:
                return None
            process = subprocess.Popen(  # noqa: S603 -- this very Python
                [sys.executable, "-P", "-c", BOOT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                encoding="utf-8",
            )
            self._processes.append(process)
            return process

    def _follow(self, process: subprocess.Popen[str], job: Job, said: IO[str]) -> None:
        to, out_of = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
        with contextlib.suppress(BrokenPipeError):  # it has ended, and its end is told below
            to.write(json.dumps({"path": sys.path, "task": self._task, **job}) + "\n")
            to.flush()  # and left open: its end is what tells of this process's
        ended = False
        for line in out_of:
            told = json.loads(line)
            ended = told.pop("ended", False)
            if "error" in told:
                self._news.put(getattr(errors, told["error"])(told["message"]))
            elif not ended or told["stopped"] is not None:
                self._news.put(Word(job["network"], **told))
        code = process.wait()
        if not ended and not self._closed:
            self._news.put(Word(job["network"], stopped=_last_words(code, said)))


class Pace:
    """How fast a network trains here, seen between two moments.

    Args:
        epochs: that each network is trained for.
        seconds: that another process would take to read what it needs.
    """

    def __init__(self, epochs: int, *, seconds: float = 0.0) -> None:
        self._epochs, self._least = epochs, WORTH * (BEGIN_SECONDS + seconds)
        self._first: tuple[float, float] | None = None  # when, progress

    def pays(self, progress: float, *, waiting: int) -> bool:
        """Tell whether other processes pay, with so many networks to come after this one.

        A network that stands no further than it was last seen is another one.
        """
        now = time.monotonic()
        if self._first is None or progress <= self._first[1]:
            self._first = now, progress
            return False
        epoch = (now - self._first[0]) / (progress - self._first[1])
        return waiting > 0 and epoch * (self._epochs * (1 + waiting) - progress) > self._least


def _heard(word: Word | AccordError) -> Word:
    if isinstance(word, AccordError):
        raise word
    return word


def _last_words(code: int, said: IO[str]) -> str:
    said.seek(0)
    lines = said.read()[-TAIL:].strip().splitlines()
    how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
    memory = ", as it is where memory runs out" if code == -KILLED else ""
    last = f" ({lines[-1]})" if lines else ""
    return f"its process {how}{memory}{last}. Started again, the run goes on where it was."


def work(job: Job) -> None:
    """Do one job, as a process of a crew; tell of it on standard output, and of nothing else."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as channel:
        os.dup2(2, 1)  # what libraries print is no word of ours
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who began it will end it
        threading.Thread(target=_die_with_parent, daemon=True).start()

        def put(**told: Any) -> None:
            channel.write(json.dumps(told) + "\n")

        def tell(progress: float, loss: float) -> None:
            put(progress=progress, loss=loss)

        module, _, name = job.pop("task").partition(":")
        try:
            stopped = getattr(importlib.import_module(module), name)(**job, tell=tell)
            put(ended=True, stopped=stopped)
        except AccordError as error:
            put(ended=True, error=type(error).__name__, message=str(error))


def _die_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)
