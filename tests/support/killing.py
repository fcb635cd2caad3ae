"""Kill what trains, at a moment of one's choice."""

import os
import signal
import subprocess
import sys
import time

from accord.training._workers import Crew

SCRIPT = """
import sys
from pathlib import Path
from accord.training import keeping, run
from accord.training.spec import parse_spec
keeping.STATE_SECONDS = 0.0
text = sys.stdin.read()
run.train(parse_spec(text), Path(sys.argv[1]), source=text, processes=int(sys.argv[2]))
"""


def kill_run_after(rows, text, out, *, processes=1):
    """Train a spec's text into a folder, and kill that once so many rows of it are recorded."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, out, str(processes)],
        stdin=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    process.stdin.write(text.encode())
    process.stdin.close()
    deadline = time.monotonic() + 60
    while len(list(out.glob("test/network-*/commits/c.*"))) < rows:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=20)


def kill_crews(monkeypatch):
    """Kill every process of a crew before it has its job."""
    real = Crew._start

    def start(crew, said):
        process = real(crew, said)
        process.kill()
        process.wait()
        return process

    monkeypatch.setattr(Crew, "_start", start)
