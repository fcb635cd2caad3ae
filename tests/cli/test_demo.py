import csv
import functools
import signal
import subprocess
import sys
import time

import pytest

from accord.cli.app import run
from accord.experiments import demo
from accord.store import check_record, describe


@pytest.fixture
def small_demo(monkeypatch):
    spec = demo.SPEC.replace("networks = 5", "networks = 2").replace("epochs = 40", "epochs = 3")
    monkeypatch.setattr(demo, "SPEC", spec)


def test_demo_writes_its_files_and_suggests_working_commands(small_demo, tmp_path, capsys):
    out = tmp_path / "demo"
    assert run(["demo", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "2 small networks, 3 epochs" in printed.out
    for rule in ("single", "majority", "probability-average", "max-agreement", "soft-agreement"):
        assert f"\n{rule} " in printed.out
    assert "training network 1, epoch 3 of 3, loss" in printed.err
    with (out / "predictions.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 719
    assert (out / "report.html").read_text().lower().startswith("<!doctype html>")
    commands = printed.out.partition("Try next:\n")[2].splitlines()
    assert len(commands) == 3
    for command in commands:
        name, *arguments = command.replace("labels.csv", str(tmp_path / "labels.csv")).split()
        assert name == "accord"
        if "--epochs" in arguments:
            assert run(arguments) == 0
            assert (tmp_path / "labels.csv").is_file()
        else:
            assert run(arguments) == 0


def test_demo_refuses_a_url(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--out", "s3://bucket/demo"]) == 2
    assert "s3:" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_second_demo_in_a_folder_trains_nothing(small_demo, tmp_path, capsys):
    assert run(["demo", "--out", str(tmp_path)]) == 0
    first = capsys.readouterr()
    assert run(["demo", "--out", str(tmp_path)]) == 0
    second = capsys.readouterr()
    assert second.out == first.out
    assert "training" not in second.err


@pytest.mark.slow
def test_interrupted_demo_keeps_its_record_and_prints_the_command_to_resume(tmp_path):
    out = tmp_path / "demo"
    process = subprocess.Popen(
        [sys.executable, "-m", "accord", "demo", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What runs in the background of a shell ignores the keyboard; this must not.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 300
        while not list(out.glob("demo-run/test/network-000/commits/c.*")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=300)
    finally:
        process.kill()
    assert (process.returncode, stdout) == (130, "")
    assert f"what was recorded is safe. To resume: accord demo --out {out}" in stderr
    assert "Traceback" not in stderr
    assert describe(out / "demo-run/test").epochs[0] >= 1
    assert check_record(out / "demo-run/test").sound


def test_error_names_a_folder_that_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run(["demo", "--out", str(tmp_path / "file")]) == 1
    assert "a part of the path is a file" in capsys.readouterr().err
