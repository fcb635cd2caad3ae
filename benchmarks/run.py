"""Time everything at full size, and print it as JSON for docs/benchmarks.md.

python benchmarks/run.py
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import accord
from accord.experiments.bench import draw_votes, run_bench
from accord.store import describe

VOTERS, SAMPLES, CLASSES = 1000, 1_000_000, 100


def main() -> None:
    results = run_bench(full=True, progress=lambda done, total: print(done, total, file=sys.stderr))
    results["memory"] = [measure_predict(packed=packed) for packed in (False, True)]
    results["packing"] = measure_packing()
    print(json.dumps(results, indent=1))


def measure_predict(*, packed: bool) -> dict[str, Any]:
    """Predict a large record in a separate process and read its peak memory."""
    with tempfile.TemporaryDirectory(dir=".") as scratch:
        path = Path(scratch, "record")
        write_large_record(path)
        if packed:
            run_accord("pack", str(path), f"{scratch}/packed")
            path = Path(scratch, "packed")
        # Not ru_maxrss: it includes the memory of this process at the fork.
        script = (
            "import time; start = time.perf_counter(); "
            f"import accord; accord.open({str(path)!r}).predict(); "
            "print(time.perf_counter() - start); "
            "print(next(line for line in open('/proc/self/status') if 'VmHWM' in line).split()[1])"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        seconds, kilobytes = done.stdout.split()
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return {
        "record": f"{VOTERS} × {SAMPLES:,} × {CLASSES}, {'packed' if packed else 'as recorded'}",
        "seconds": float(seconds),
        "peak_megabytes": int(kilobytes) / 1000,
        "bytes": size,
    }


def write_large_record(path: Path) -> None:
    networks = 5
    for network in range(networks):
        with accord.Recorder(path, network=network, samples=SAMPLES, classes=CLASSES) as recorder:
            for row in draw_votes(VOTERS // networks, SAMPLES, CLASSES, seed=0):
                recorder.record(row)


def measure_packing() -> dict[str, Any]:
    """Return the size of the bundled record relative to its raw labels."""
    record = accord.open("example://cifar10-sym40")
    raw = np.asarray(record.labels).nbytes
    size = describe(record.path).size or 0
    return {"record": record.path, "raw": raw, "packed": size, "times_smaller": raw / size}


def run_accord(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "accord", *arguments], check=True)


if __name__ == "__main__":
    main()
