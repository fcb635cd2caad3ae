"""`accord compare` prints a table or JSON, and its failures."""

import json
from dataclasses import replace

from compared import TEXT
from one_thread import one_thread  # noqa: F401 -- for every test here

from accord import training
from accord.cli.app import run as run_command
from accord.experiments.comparison import METHODS


def test_notes_from_training_are_printed_once(tmp_path, monkeypatch, capsys):
    def note(spec, out, **more):
        return replace(real(spec, out, **more), notes=("no sample of class 3",))

    real = training.train
    monkeypatch.setattr(training, "train", note)
    (tmp_path / "spec.toml").write_text(TEXT)
    arguments = ["--method", "majority", "--method", "elr", "--repetitions", "2", "--json"]
    assert (
        run_command(["compare", f"{tmp_path}/spec.toml", "--out", f"{tmp_path}/a", *arguments]) == 0
    )
    shown = capsys.readouterr()
    assert shown.err.count("accord: no sample of class 3\n") == 1
    assert json.loads(shown.out)["notes"] == ["no sample of class 3"]


def test_command_fails_after_printing_if_a_network_was_stopped(tmp_path, capsys):
    wild = "networks = [{}, { lr = 1e30 }]"
    (tmp_path / "spec.toml").write_text(TEXT.replace("networks = 3", wild))
    arguments = [
        "compare",
        f"{tmp_path}/spec.toml",
        "--out",
        f"{tmp_path}/out",
        "--method",
        "majority",
    ]
    arguments += ["--method", "snapshot"]
    assert run_command(arguments) == 1
    shown = capsys.readouterr()
    reason = "network 1 was stopped: the loss became"
    assert f": {reason}" in shown.err
    table = {line.split()[0]: line for line in shown.out.splitlines() if line}
    assert reason in table["majority"]
    assert "failed" not in table["snapshot"]
    assert run_command([*arguments, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (stopped,) = found["stopped"]
    assert reason in stopped
    assert found["methods"]["majority"]["failures"] == [stopped]
    assert found["methods"]["snapshot"]["accuracy"] > 0


def test_command_prints_a_table_or_json(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(TEXT)
    arguments = ["compare", "spec.toml", "--method", "majority", "--out", "runs"]
    assert run_command(arguments) == 0
    shown = capsys.readouterr()
    assert "majority" in shown.out
    assert "shared run, seed 0: network" in shown.err
    assert run_command([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["methods"]["majority"]) >= {"accuracy", "passes", "training", "disk"}
    assert run_command(["compare", "--list", "--json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert [one["name"] for one in items] == list(METHODS)
    assert run_command(["compare", "spec.toml", "--method", "nothing"]) == 2
