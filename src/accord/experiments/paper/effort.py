"""Who trained a run and for how long, kept beside it from its first moment on."""

import json
import platform
import time
from pathlib import Path
from typing import Any, Final, TypedDict

import torch

from accord.errors import SourceError, counted
from accord.store.places import Folder
from accord.training.run import Progress

EFFORT: Final = "effort.json"


class Effort(TypedDict):
    """What a run has cost."""

    machine: str
    seconds: float


class Stopwatch:
    """Adds the time of a training to what the run has cost before.

    Nothing is written before some training is recorded: what cannot begin leaves nothing. From
    then on it is written at every moment, so that a process that dies loses little.

    Args:
        folder: the run's.
        machine: who trains.
        progress: told of each moment too.

    Raises:
        SourceError: what is kept of earlier training cannot be read.
    """

    def __init__(self, folder: Path, machine: str, progress: Progress | None = None) -> None:
        self._folder, self._progress = folder, progress
        before = effort_of(folder)
        self._machine = _together(before["machine"], machine) if before else machine
        self._seconds = before["seconds"] if before else 0.0
        self._start = time.monotonic()

    def moment(
        self, network: int, networks: int, progress: float, epochs: int, loss: float
    ) -> None:
        """Keep the time until this moment of training."""
        seconds = self._seconds + time.monotonic() - self._start
        effort = Effort(machine=self._machine, seconds=seconds)
        Folder(self._folder).put(EFFORT, json.dumps(effort).encode(), flush=False)
        if self._progress is not None:
            self._progress(network, networks, progress, epochs, loss)


def _together(before: str, machine: str) -> str:
    known = machine in before.split(", then ")
    return before if known else f"{before}, then {machine}"


def effort_of(folder: Path) -> Effort | None:
    """Return what a run has cost, or None if that is not known.

    Raises:
        SourceError: the file is damaged.
    """
    data = Folder(folder).get(EFFORT)
    if data is None:
        return None
    try:
        facts: dict[str, Any] = json.loads(data)
        return Effort(machine=str(facts["machine"]), seconds=float(facts["seconds"]))
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(
            f"{folder / EFFORT}: does not say who trained the run and for how long "
            f"({type(error).__name__}: {error}). Remove it; the run itself is not affected."
        ) from error


def machine_name() -> str:
    """Return the GPU's name, or the processor's kind."""
    if torch.cuda.is_available():
        return f"one {torch.cuda.get_device_name()}"
    cores = torch.get_num_threads()
    return f"{counted(cores, 'core')}, {platform.machine()}"
