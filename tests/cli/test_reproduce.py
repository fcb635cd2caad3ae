"""`accord reproduce` lists, trains what is missing, and prints the paper's numbers beside ours."""

import json

import pytest
from one_thread import one_thread  # noqa: F401 -- for every test here

from accord.experiments.paper import SCALES, all_targets
from accord.experiments.paper.protocols import protocols


@pytest.fixture(autouse=True)
def small(monkeypatch):
    train = {"networks": 2, "network": "mlp", "epochs": 3, "batch": 64}
    monkeypatch.setitem(protocols()["scale"]["stand-in"], "train", train)


@pytest.fixture
def reproduce(accord):
    return lambda *arguments: accord("reproduce", *arguments)


def test_every_target_is_listed_with_a_status(reproduce, tmp_path):
    status, out, _ = reproduce("--list", "--json", "--out", tmp_path, "--data", tmp_path)
    items = json.loads(out)["items"]
    assert status == 0
    assert [item["name"] for item in items] == list(all_targets())
    assert {item["status"] for item in items} == {"not run", "data missing"}
    assert all(item["scales"].keys() == SCALES.keys() for item in items)


def test_a_list_can_be_of_some_targets_at_one_scale(reproduce, tmp_path):
    _, out, _ = reproduce(
        "table1/cifar100",
        "--list",
        "--scale",
        "quick",
        "--out",
        tmp_path,
        "--data",
        tmp_path,
    )
    assert len(out.splitlines()) == 6
    assert f"put it at {tmp_path / 'cifar-100-binary'}; it comes from https://" in out


def test_what_was_reproduced_is_printed_and_listed_as_done(reproduce, tmp_path):
    name = "table1/cifar10/sym/40"
    status, out, err = reproduce(name, "--scale", "stand-in", "--out", tmp_path)
    assert status == 0
    assert "| max-agreement       | 90.0 ± 0.1 |" in out
    assert "digits-sym40, seed 0: network 1, epoch 3 of 3" in err
    _, out, _ = reproduce(name, "--list", "--out", tmp_path)
    assert "done (stand-in)" in out
    status, out, err = reproduce(name, "--scale", "stand-in", "--out", tmp_path, "--json")
    (result,) = json.loads(out)["results"]
    assert (result["target"], result["repetitions"]) == (name, 1)
    assert err == ""
    assert "max-agreement" in (tmp_path / "results.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["table1/cifar10/sym/41"], "Did you mean 'table1/cifar10/sym/40'?"),
        (["theory", "--scale", "quik"], "no scale is called 'quik'. Did you mean 'quick'?"),
        ([], "name a target: accord reproduce table1/cifar10/sym/40, or --list them"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words, reproduce):
    status, out, err = reproduce(*arguments)
    assert (status, out) == (2, "")
    assert words in err


def test_missing_data_end_with_one(reproduce, tmp_path):
    status, _, err = reproduce(
        "table1/cifar100/sym/20", "--on-cpu", "--data", tmp_path, "--out", tmp_path
    )
    assert status == 1
    assert "CIFAR-100 is not there. It comes from" in err


def test_ray_is_asked_to_train(reproduce, tmp_path, monkeypatch):
    asked = []

    def train_with_ray(address):
        asked.append(address)
        from accord.experiments.paper.runs import train_here

        return train_here

    monkeypatch.setattr("accord.experiments.paper.runs.train_with_ray", train_with_ray)
    name = "table1/cifar10/sym/40"
    assert reproduce("--ray", name, "--scale", "stand-in", "--out", tmp_path)[0] == 0
    assert asked == ["local"]
