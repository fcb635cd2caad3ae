"""`benchmarks/reproduce_queue.py` keeps complete results only."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from recorded import write_record

import accord

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "reproduce_queue.py"
if not SCRIPT.exists():
    pytest.skip(
        "the folder benchmarks/ is missing; it is in the repository", allow_module_level=True
    )

SHARED = ("figure2/cifar10/asym/20", "table1/cifar10/asym/20")  # one run


def run_queue(folder, *options):
    command = [sys.executable, str(SCRIPT), *SHARED, "--scale", "stand-in", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_nothing_starts_if_too_little_time_is_left(tmp_path):
    done = run_queue(tmp_path, "--minutes", "1", "--expect", "2")
    assert done.returncode == 1
    assert "not started, too little time left" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_kept_runs_are_packed_and_name_no_folder(tmp_path):
    source, kept = tmp_path / "work", tmp_path / "kept"
    write_record(source / "test", epochs=6)
    (source / "spec.toml").write_text('name = "mine"\nroot = "/a/folder"\n')
    (source / "effort.json").write_text('{"machine": "one", "seconds": 1.0}')
    keep_run = runpy.run_path(str(SCRIPT))["keep_run"]
    keep_run(source, kept, 2)
    assert accord.open(str(kept / "test-every-2.zip")).progress == (2, 4, 6)
    assert (kept / "spec.toml").read_text() == 'name = "mine"\nroot = "data"\n'
    before = (kept / "test-every-2.zip").read_bytes()
    keep_run(source, kept, 2)
    assert (kept / "test-every-2.zip").read_bytes() == before


@pytest.mark.slow
def test_targets_that_share_a_run_are_trained_once_and_kept(tmp_path):
    done = run_queue(tmp_path, "--minutes", "60", "--every", "2")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("started") == 1
    (run,) = (tmp_path / "results" / "runs").iterdir()
    record = accord.open(str(run / "test-every-2.zip"))
    assert record.progress == tuple(range(2, 41, 2))
    for target in SHARED:
        result = json.loads((tmp_path / "results" / target / "stand-in.json").read_text())
        assert result["runs"] == {"noisy": [run.name]}
        assert target in (tmp_path / "results" / "results.md").read_text()
    assert run_queue(tmp_path).returncode == 0
