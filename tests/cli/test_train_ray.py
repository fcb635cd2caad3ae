"""`accord train --ray`: an address or none, wherever it stands."""

import re

import pytest

from accord.cli.app import run
from accord.cli.train import complete_ray
from accord.errors import ClusterError
from accord.experiments import cluster as remote
from accord.training import Progress, RunResult

TEXT = """
name = "small"
[data]
kind = "digits"
[train]
network = "mlp"
networks = 2
epochs = 2
"""


@pytest.fixture
def requested(tmp_path, monkeypatch):
    """The calls of the library, which trains nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(TEXT)
    calls = []

    def train_remotely(spec, out, **options):
        calls.append({"spec": spec.name, "out": str(out), **options})
        options["notify"]("2 networks on a cluster")
        options["progress"](Progress(1, 2.0, 2, 0.5, networks=2))
        failed = {1: "bang"} if options["networks"] == [1] else {}
        return RunResult(out, failed, ("a note",))

    monkeypatch.setattr(remote, "train_remotely", train_remotely)
    return calls


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        (["--ray"], "local"),
        (["--ray", "--out", "mine"], "local"),
        (["--ray", "auto", "--out", "mine"], "auto"),
        (["--ray", "10.0.0.1:6379"], "10.0.0.1:6379"),
        (["--ray", "[::1]:6379"], "[::1]:6379"),
        (["--ray=head:6379", "--out", "mine"], "head:6379"),
        (["--out", "mine", "--ray", "ray://head:10001"], "ray://head:10001"),
    ],
)
def test_the_address_may_be_left_out_wherever_it_stands(requested, capsys, arguments, address):
    assert run(["train", "spec.toml", *arguments]) == 0
    assert run(["train", *arguments, "spec.toml"]) == 0
    for call in requested:
        assert (call["spec"], call["address"], call["gpus"]) == ("small", address, None)
        assert call["source"] == TEXT
        assert call["out"] == "mine" or ("mine" not in arguments and call["out"][:5] == "runs/")
    stderr = capsys.readouterr().err
    assert stderr.startswith("accord: 2 networks on a cluster\n")
    assert "training network 1, epoch 2 of 2, loss 0.50" in stderr
    assert re.search(r"accord: a note\n.*: trained\. Next: accord score ", stderr)


def test_networks_and_gpus_are_passed_on_and_failures_reported(requested, capsys):
    assert run(["train", "spec.toml", "--ray", "--gpus", "0.25", "--networks", "1"]) == 1
    assert (requested[0]["gpus"], requested[0]["networks"]) == (0.25, [1])
    assert "accord: network 1 failed: bang" in capsys.readouterr().err


def test_gpus_without_a_cluster_are_refused(requested, capsys):
    assert run(["train", "spec.toml", "--gpus", "1"]) == 2
    assert "--gpus requires --ray" in capsys.readouterr().err
    assert requested == []


def test_an_unreachable_cluster_is_reported(requested, capsys, monkeypatch):
    def unreachable(*_, **__):
        raise ClusterError("head:1: no cluster answers there")

    monkeypatch.setattr(remote, "train_remotely", unreachable)
    assert run(["train", "spec.toml", "--ray", "head:1"]) == 1
    assert capsys.readouterr().err == "accord: head:1: no cluster answers there\n"


@pytest.mark.parametrize(
    ("arguments", "again"),
    [
        (["--ray"], " --ray"),
        (["--ray", "auto", "--out", "mine"], " --out mine --ray auto"),
        (["--ray", "--gpus", "0.5", "--networks", "1"], " --networks 1 --ray --gpus 0.5"),
    ],
)
def test_an_interrupted_command_prints_how_to_resume(
    requested, capsys, monkeypatch, arguments, again
):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(remote, "train_remotely", stop)
    assert run(["train", "spec.toml", *arguments]) == 130
    assert capsys.readouterr().err.endswith(f"To resume: accord train spec.toml{again}\n")


def test_other_arguments_are_left_alone():
    arguments = ["spec.toml", "--out", "a:1", "--networks", "0,1"]
    assert complete_ray(arguments) == arguments
    assert complete_ray(["--ray", "--ray", "auto"]) == ["--ray=local", "--ray=auto"]
