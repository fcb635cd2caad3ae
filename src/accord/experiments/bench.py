"""Benchmark vote counting and recording against common alternatives."""

import contextlib
import functools
import importlib
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord import kernels
from accord._recorder import Recorder
from accord.errors import counted
from accord.store import CountProgress, made_with

QUICK_SHAPES: Final = ((1000, 10_000, 10),)  # voters, samples, classes
FULL_SHAPES: Final = (*QUICK_SHAPES, (1000, 50_000, 1000), (1000, 1_000_000, 100))
RUNNING_SHAPE: Final = (5, 200, 1_000_000, 100)  # networks, epochs, samples, classes


Timing = dict[str, Any]  # of a task and an alternative on the same data, as JSON


def _timing(what: str, ours: str, seconds: float, peer: str, peer_seconds: float) -> Timing:
    return {
        "what": what,
        "ours": ours,
        "seconds": seconds,
        "peer": peer,
        "peer_seconds": peer_seconds,
        "ratio": peer_seconds / seconds,
    }


def run_bench(*, full: bool = False, progress: CountProgress | None = None) -> dict[str, Any]:
    """Run all benchmarks and collect the results as JSON."""
    shapes = FULL_SHAPES if full else QUICK_SHAPES
    parts: list[Callable[[], list[Timing]]] = [
        *(functools.partial(time_winners, shape) for shape in shapes),
        *(functools.partial(time_row, samples) for samples in (10_000, 50_000)),
        time_help,
    ]
    if full:
        parts.append(functools.partial(time_running, RUNNING_SHAPE))
    timings: list[Timing] = []
    for done, part in enumerate(parts):
        if progress is not None:
            progress(done, len(parts))
        timings += part()
    return {"machine": machine(), "timings": timings}


def machine() -> dict[str, Any]:
    """Describe the system, cores and library versions."""
    return {"system": platform.platform(), "cores": os.cpu_count(), **made_with()}


def draw_votes(
    voters: int, samples: int, classes: int, *, leading: float = 0.75, seed: int = 0
) -> NDArray[Any]:
    """Generate random labels of shape (voter, sample) with a leading class for each sample."""
    generator = np.random.default_rng(seed)
    dtype = np.min_scalar_type(classes - 1)
    leader = generator.integers(0, classes, samples).astype(dtype)
    labels = np.empty((voters, samples), dtype)
    for row in labels:
        strays = np.flatnonzero(generator.random(samples, np.float32) >= leading)
        row[:] = leader
        row[strays] = generator.integers(0, classes, strays.size)
    return labels


def time_winners(shape: tuple[int, int, int]) -> list[Timing]:
    """Time majority voting with numpy and numba against scipy and torch."""
    voters, samples, classes = shape
    labels = draw_votes(*shape)
    what = f"winners of {voters} × {samples:,} × {classes}"
    peers = dict(_mode_peers(labels))
    timings = []
    for backend in _backends():
        with _forced(backend):
            ours = _best(lambda: kernels.winners(labels, classes=classes))
        timings += [_timing(what, backend, ours, peer, seconds) for peer, seconds in peers.items()]
    return timings


def _mode_peers(labels: NDArray[Any]) -> Iterator[tuple[str, float]]:
    for name, module in (("scipy.stats.mode", "scipy.stats"), ("torch.mode", "torch")):
        with contextlib.suppress(ImportError):
            peer = importlib.import_module(module)
            if module == "torch":
                # torch.mode does not support unsigned 16-bit labels.
                wide = labels if labels.dtype == np.uint8 else labels.astype(np.int16)
                tensor = peer.from_numpy(wide)
                yield name, _best(lambda: peer.mode(tensor, dim=0), times=2)  # noqa: B023
            else:
                yield name, _best(lambda: peer.mode(labels, axis=0), times=2)  # noqa: B023


def time_running(shape: tuple[int, int, int, int]) -> list[Timing]:
    """Time incremental voting after each epoch against recomputing the argmax."""
    networks, epochs, samples, classes = shape
    labels = draw_votes(networks * epochs, samples, classes).reshape(networks, epochs, samples)
    what = f"running winners of {networks} × {epochs} × {samples:,} × {classes}"
    anew = _best(lambda: _winners_anew(labels, classes), times=1)
    timings = []
    for backend in _backends():
        with _forced(backend):
            ours = _best(lambda: kernels.running_winners(labels, classes=classes))
        timings.append(_timing(what, backend, ours, "counting and argmax anew in numpy", anew))
    return timings


def _winners_anew(labels: NDArray[Any], classes: int) -> NDArray[Any]:
    _, epochs, samples = labels.shape
    table = np.zeros((samples, classes), np.uint16)
    every = np.arange(samples)
    found = np.empty((epochs, samples), labels.dtype)
    for epoch in range(epochs):
        for row in labels[:, epoch]:
            table[every, row] += 1
        found[epoch] = table.argmax(axis=1)
    return found


def time_row(samples: int) -> list[Timing]:
    """Time writing a durable row against `np.save`, fsync and rename."""
    saved, recorded = [], []
    with (
        tempfile.TemporaryDirectory(dir=".") as scratch,
        Recorder(f"{scratch}/record", network=0, samples=samples, classes=10) as recorder,
    ):
        # Alternating: the cost of a flush changes from second to second on many disks.
        for number, row in enumerate(draw_votes(100, samples, 10)):
            path = Path(scratch, f"{number}.npy")
            saved.append(_timed(functools.partial(_save, path, row)))
            recorded.append(_timed(functools.partial(recorder.record, row)))
    what = f"one durable row of {samples:,} labels"
    peer = "np.save, fsync, rename"
    median = statistics.median
    return [_timing(what, "Recorder.record", median(recorded), peer, median(saved))]


def _save(path: Path, row: NDArray[Any]) -> None:
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.save(file, row)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)


def time_help() -> list[Timing]:
    """Time `accord --help` against starting Python and importing numpy."""

    def start(*arguments: str) -> None:
        subprocess.run(  # noqa: S603
            [sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True
        )

    ours = _best(lambda: start("-m", "accord", "--help"), times=5)
    numpy = _best(lambda: start("-c", "import numpy"), times=5)
    return [_timing("start", "accord --help", ours, "import numpy", numpy)]


def _backends() -> list[str]:
    return ["numpy", "numba"] if importlib.util.find_spec("numba") else ["numpy"]


@contextlib.contextmanager
def _forced(backend: str) -> Iterator[None]:
    before = os.environ.get("ACCORD_KERNELS")
    os.environ["ACCORD_KERNELS"] = backend
    try:
        yield
    finally:
        if before is None:
            del os.environ["ACCORD_KERNELS"]
        else:
            os.environ["ACCORD_KERNELS"] = before


def _best(work: Callable[[], object], *, times: int = 3) -> float:
    """Measure the shortest of several runs after a warm-up."""
    if times > 1:
        work()
    return min(_timed(work) for _ in range(times))


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def bench_text(results: dict[str, Any]) -> str:
    """Format the results of `run_bench` as text."""
    found = results["machine"]
    head = f"{found['system']}, {counted(found['cores'], 'core')}, Python {found['python']}"
    lines = [head, ""]
    for one in results["timings"]:
        ratio = one["ratio"]
        verdict = f"{ratio:.1f} times as fast" if ratio >= 1 else f"{1 / ratio:.1f} times as long"
        lines.append(
            f"{one['what']}: {one['ours']} {one['seconds'] * 1e3:,.1f} ms, "
            f"{one['peer']} {one['peer_seconds'] * 1e3:,.1f} ms: {verdict}"
        )
    return "\n".join(lines)
