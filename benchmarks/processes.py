"""Time a run of small networks on a CPU, in one process and in several.

python benchmarks/processes.py examples/digits.toml
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import accord


def main() -> None:
    spec = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        one, several = Path(folder) / "one", Path(folder) / "several"
        seconds = [train(spec, one, "--processes", "1"), train(spec, several)]
        first, second = (np.asarray(accord.open(out / "test").labels) for out in (one, several))
        found = {
            "machine": f"{os.cpu_count()} cores, {platform.machine()}",
            "one": seconds[0],
            "several": seconds[1],
            "ratio": seconds[0] / seconds[1],
            "same": bool(np.array_equal(first, second)),
        }
    print(json.dumps(found))


def train(spec: Path, out: Path, *options: str) -> float:
    command = [sys.executable, "-m", "accord", "train", str(spec), "--out", str(out), *options]
    begun = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    return time.monotonic() - begun


if __name__ == "__main__":
    main()
