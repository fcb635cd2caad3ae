"""Progress on standard error: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from accord.training import Progress as TrainingProgress

SECONDS_BETWEEN_LINES: Final = 10.0


class Stopped(Exception):
    """Raised when work is interrupted; the message names the command that resumes it."""


@contextmanager
def resumable(command: str) -> Iterator[None]:
    """Turn a keyboard interrupt into `Stopped` with the command that resumes the work."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(f"stopped; what was recorded is safe. To resume: {command}") from None


class Bar:
    """A progress bar; a context manager."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._bar: Any = None
        self._task: Any = None
        self._last_line = time.monotonic()
        self._reached: dict[int, float] = {}  # network -> epochs of training

    def __enter__(self) -> Self:
        self._open()
        return self

    def _open(self) -> None:
        if self._bar is None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._description, total=None)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the bar; it returns when there is more progress."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def begin(self, description: str) -> None:
        """Start the next part of the work."""
        self._description = description
        self._reached = {}
        self._open()

    @property
    def idle(self) -> bool:
        """Whether no network has trained."""
        return not self._reached

    def training(self, event: "TrainingProgress") -> None:
        """Show how far the training of one network is."""
        text = (
            f"{self._description} network {event.network}, epoch {event.epoch:g} of "
            f"{event.epochs}, loss {event.loss:.2f}"
        )
        self._reached[event.network] = event.epoch  # networks may train in parallel
        done = round(100 * sum(self._reached.values()) / (event.networks * event.epochs))
        self._show(text, done, 100, line=event.epoch == event.epochs)

    def samples(self, done: int, total: int) -> None:
        """Show how much of the work is done."""
        self._show(self._description, done, total, line=False)

    def _show(self, text: str, done: int, total: int, *, line: bool) -> None:
        self._open()
        if self._bar is not None:
            self._bar.update(self._task, description=text, completed=done, total=total)
        elif line or time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            sys.stderr.write(f"{text}: {done} of {total}\n")
            sys.stderr.flush()
