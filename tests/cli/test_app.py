import json
import re
import subprocess
import sys

import pytest

from accord.cli.app import GROUPS, app

COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]


def test_all_promised_commands_exist():
    assert set(COMMANDS) >= {
        "audit", "compare", "infer", "reproduce", "train", "trust", "watch",
        "demo", "import", "show", "predict", "score", "check", "pack", "report", "bench",
    }  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example_and_the_exit_statuses(accord, command):
    status, out, _ = accord(command, "--help")
    assert status == 0
    assert re.search(rf"Example:\n +accord {command}", out)
    assert "Exit status: 0" in out


def test_the_version_is_printed(accord):
    import accord as package

    assert accord("--version")[:2] == (0, f"accord {package.__version__}\n")


def test_the_installed_command_and_the_module_are_the_same(record):
    for command in (["-m", "accord"], ["-c", "from accord.cli import main; main()"]):
        done = subprocess.run(
            [sys.executable, *command, "show", record, "--json"],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        assert len(json.loads(done.stdout)["epochs"]) == 3
        assert done.stderr == ""


def test_a_closed_pipe_is_no_error(record):
    done = subprocess.run(
        f"{sys.executable} -m accord predict {record} | head -n 1; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_an_interrupt_exits_with_status_130(accord, record, monkeypatch):
    monkeypatch.setattr("accord.analysis.compare_rules", interrupt)
    assert accord("score", record) == (130, "", "accord: stopped\n")


def test_an_interrupted_comparison_names_the_command_that_resumes_it(accord, monkeypatch):
    monkeypatch.setattr("accord.experiments.comparison.compare", interrupt)
    status, out, err = accord("compare", "--method", "majority")
    assert (status, out) == (130, "")
    assert err == (
        "accord: stopped; what was recorded is safe. "
        "To resume: accord compare, with the same options\n"
    )


def test_every_summary_in_the_help_fits_on_one_line(accord, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = accord("--help")
    assert status == 0
    assert "..." not in out.replace("[ARGS]...", "")
    assert all(f"\n{group}:\n" in out for group in GROUPS)
