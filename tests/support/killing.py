"""Start a training in another process, and kill it once it has recorded a number of epochs."""

import contextlib
import os
import subprocess
import sys
import time

TIMEOUT = 300  # seconds; far more than a loaded machine needs
SCRIPT = """
import sys
from pathlib import Path
from accord.training import _network_run, parse_spec, train
_network_run.STATE_SECONDS = 0.0
text = sys.stdin.read()
train(parse_spec(text), Path(sys.argv[1]), source=text, processes=int(sys.argv[2]))
"""


def kill_run_after(epochs, text, out, *, processes=1, record="test"):
    """Train a spec into a folder, and kill the process once a record has these epochs."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, out, str(processes)],
        stdin=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:
        try:
            process.stdin.write(text.encode())
            process.stdin.close()
            wait_until(
                lambda: (
                    len(list(out.glob(f"{record}/network-*/commits/c.*"))) >= epochs
                    or process.poll() is not None
                )
            )
            assert process.poll() is None, "the training ended before it could be killed"
        finally:
            process.kill()


def wait_until(condition):
    """Wait for a condition to become true."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.002)


def is_alive(pid):
    """Return whether a process runs; a zombie does not."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2].split()[0] != "Z"
    return False
