"""`accord reproduce` lists, trains what is missing, and prints the paper's numbers beside ours."""

import json

import pytest
from one_thread import one_thread  # noqa: F401 -- for every test here

from accord.cli._progress import Bar
from accord.errors import ClusterError
from accord.experiments.comparison._runs import train_here
from accord.experiments.paper import SCALES, all_targets
from accord.experiments.paper._protocols import protocols


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
    *listed, empty, head, where = out.splitlines()
    assert len(listed) == 6
    assert (empty, head) == ("", "data missing:")
    assert where.startswith(f"  put CIFAR-100 at {tmp_path / 'cifar-100-binary'}; it comes from ")


def test_where_data_go_is_told_once_and_what_can_be_run_without(reproduce, tmp_path):
    _, out, _ = reproduce("--list", "--out", tmp_path, "--data", tmp_path)
    assert out.count("put CIFAR-100 at ") == 1
    assert out.endswith(
        "without them, digits can stand in, for all but table6/transfer-learning and "
        "ours/cifar10/sym/40/transfer-learning: --scale stand-in\n"
    )
    _, out, _ = reproduce("table6/transfer-learning", "--list", "--data", tmp_path)
    assert "stand in" not in out


def test_what_was_reproduced_is_printed_and_listed_as_done(reproduce, tmp_path):
    name = "table1/cifar10/sym/40"
    status, out, err = reproduce(name, "--scale", "stand-in", "--out", tmp_path)
    assert status == 0
    assert "| max-agreement       | 90.0 ± 0.1 |" in out
    assert "digits-sym40, seed 0: network 1, epoch 3 of 3" in err
    _, out, _ = reproduce(name, "--list", "--out", tmp_path, "--data", tmp_path)
    assert "data missing        CIFAR-10, 40 % symmetric noise; digits have stood in\n" in out
    _, out, _ = reproduce(name, "--list", "--scale", "stand-in", "--out", tmp_path)
    assert out == f"{name}  done (stand-in)     CIFAR-10, 40 % symmetric noise\n"
    status, out, err = reproduce(name, "--scale", "stand-in", "--out", tmp_path, "--json")
    (result,) = json.loads(out)["results"]
    assert (result["target"], result["repetitions"]) == (name, 1)
    assert err == ""
    assert "max-agreement" in (tmp_path / "results.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tabel1"], "no target is called 'tabel1'. Did you mean 'table1'?"),
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


@pytest.fixture
def asked(monkeypatch):
    """What Ray was asked for; the training is done here."""
    found = []

    def train_with_ray(address, **more):
        found.append((address, more))
        return train_here

    monkeypatch.setattr("accord.experiments.paper._required_runs.train_with_ray", train_with_ray)
    return found


@pytest.mark.parametrize(
    ("words", "call", "machine"),
    [
        (["--ray"], ("local", {"gpus": None}), "1 core, "),
        (["--gpus", "0.5", "--ray", "a:1"], ("a:1", {"gpus": 0.5}), "a Ray cluster at a:1"),
    ],
)
def test_ray_is_asked_to_train(words, call, machine, reproduce, tmp_path, asked):
    name = "table1/cifar10/sym/40"
    assert reproduce(*words, name, "--scale", "stand-in", "--out", tmp_path)[0] == 0
    assert asked == [call]
    kept = json.loads((tmp_path / name / "stand-in.json").read_text("utf-8"))
    assert kept["machine"].startswith(machine)


GROUP = ["adversarial-network", "transfer-learning", "different-optimizer"]


@pytest.fixture
def group(reproduce, tmp_path):
    names = [f"table6/{one}" for one in GROUP]
    return lambda *more: reproduce(*names, "--scale", "stand-in", "--out", tmp_path, *more)


def test_of_a_group_what_can_run_does_and_the_rest_is_named(group, tmp_path):
    status, out, err = group()
    assert status == 1
    assert [line.partition(":")[0] for line in out.splitlines() if line.startswith("table6")] == [
        "table6/adversarial-network",
        "table6/different-optimizer",
    ]
    assert "|\n\ntable6/different-optimizer: " in out
    last = err.rpartition("accord: ")[2].splitlines()
    assert last[0] == "1 of 3 targets could not be reproduced:"
    assert last[1].startswith("  table6/transfer-learning: CIFAR-100, 40 % symmetric noise, ")
    assert last[1].endswith("there is no stand-in for that")
    assert "table6/different-optimizer" in (tmp_path / "results.md").read_text("utf-8")


def test_a_group_in_json_names_the_rest_too(group):
    status, out, _ = group("--json")
    found = json.loads(out)
    assert status == 1
    assert [one["target"] for one in found["results"]] == [
        f"table6/{GROUP[0]}",
        f"table6/{GROUP[2]}",
    ]
    (failed,) = found["failed"]
    assert failed["target"] == "table6/transfer-learning"
    assert "no stand-in" in failed["why"]


def test_each_is_printed_as_it_ends(reproduce, tmp_path, monkeypatch, capsys):
    printed = []

    def train(spec, out, progress):
        printed.append(capsys.readouterr().out)
        return train_here(spec, out, progress)

    monkeypatch.setattr(
        "accord.experiments.paper._required_runs.train_with_ray", lambda *_, **__: train
    )
    status, out, _ = reproduce(
        "--ray", "table1/cifar10/asym", "--scale", "stand-in", "--out", tmp_path
    )
    assert status == 0
    assert [text.count("scale stand-in") for text in (*printed, out)] == [0, 1, 1, 1]


def test_one_target_by_its_full_name_errs_as_it_is(reproduce, tmp_path):
    name = "table6/transfer-learning"
    status, out, err = reproduce(name, "--scale", "stand-in", "--out", tmp_path)
    assert (status, out) == (2, "")
    assert err.startswith("accord: CIFAR-100, 40 % symmetric noise, started from")
    assert err.count("\n") == 1


def test_a_group_of_one_is_a_group(reproduce, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    status, _, err = reproduce("setup", "--scale", "medium", "--out", tmp_path)
    assert status == 1
    assert err.startswith("accord: 1 of 1 targets could not be reproduced:\n  setup/webvision50: ")


def test_no_bar_stands_where_a_result_is_printed(reproduce, tmp_path, monkeypatch):
    """A bar on a terminal takes standard output with it."""
    standing, seen = [], []

    class Watched(Bar):
        def __enter__(self):
            standing.append(self)
            return self

        def __exit__(self, *_):
            standing.remove(self)

    monkeypatch.setattr("accord.cli.reproduce.Bar", Watched)
    monkeypatch.setattr("accord.cli.reproduce._print", lambda *_, **__: seen.append(len(standing)))
    names = ["table1/cifar10/sym/20", "table1/cifar10/sym/40"]
    assert reproduce(*names, "--scale", "stand-in", "--out", tmp_path)[0] == 0
    assert (seen, standing) == ([0, 0], [])


def test_the_same_reason_is_told_once(reproduce, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    status, _, err = reproduce("figure6", "--scale", "medium", "--out", tmp_path)
    assert status == 1
    assert err.count("wants a GPU") == 1
    assert err.endswith("  figure6/cifar100/sym/40: the same\n")


def test_a_damaged_result_is_named_and_the_rest_goes_on(reproduce, tmp_path):
    path = tmp_path / "theory/thought.json"
    path.parent.mkdir()
    path.touch()
    name = "table1/cifar10/sym/40"
    status, out, err = reproduce("figure9", name, "--scale", "stand-in", "--out", tmp_path)
    assert status == 0
    assert "wrong in % of the plane" in out
    assert f"{name}: CIFAR-10" in out
    assert err.count("thought.json: not a result that can be read") == 1
    status, out, _ = reproduce("--list", "--out", tmp_path, "--data", tmp_path)
    (line,) = (line for line in out.splitlines() if line.startswith("theory"))
    assert status == 0
    assert "partly" in line
    assert "thought.json: not a result that can be read" in line
    assert reproduce("theory", "--out", tmp_path)[0] == 1


def test_repetitions_of_a_figure_are_not_taken_in_silence(reproduce, tmp_path):
    name = "figure2/cifar10/asym/20"
    _, _, err = reproduce(name, "--scale", "stand-in", "--out", tmp_path, "--repetitions", "3")
    words = f"{name}: a figure shows one run; --repetitions 3 is for tables"
    assert words in err
    _, _, err = reproduce(name, "--scale", "stand-in", "--out", tmp_path, "--repetitions", "1")
    assert "one run" not in err


@pytest.mark.parametrize("more", [[], ["--list"]])
def test_a_url_is_refused_before_anything_is_written(more, reproduce, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, err = reproduce("figure9", "--out", "s3://bucket/x", *more)
    assert status == 2
    assert "--out takes a folder of this machine; got the URL s3://bucket/x." in err
    assert list(tmp_path.iterdir()) == []


def test_a_share_of_a_gpu_is_for_a_cluster(reproduce):
    status, _, err = reproduce("theory", "--gpus", "0.5")
    assert status == 2
    assert "--gpus shares out a cluster: give --ray too" in err


def test_of_several_scales_one_that_can_run_is_listed(reproduce, tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    names = [f"data_batch_{number}.bin" for number in range(1, 6)]
    for name in [*(f"{folder.name}/{one}" for one in [*names, "test_batch.bin"])]:
        (tmp_path / name).touch()
    (tmp_path / "mobilenetv2-imagenet.pth").touch()
    name = "ours/cifar10/sym/40/transfer-learning"
    _, out, _ = reproduce(name, "--list", "--json", "--out", tmp_path, "--data", tmp_path)
    (item,) = json.loads(out)["items"]
    assert (item["status"], item["scale"]) == ("not run", "quick")
    assert item["scales"]["paper"] == "data missing"


def test_what_trains_no_network_has_no_scale_of_the_papers(reproduce, tmp_path):
    assert reproduce("figure9", "--out", tmp_path)[0] == 0
    _, out, _ = reproduce("figure9", "--list", "--out", tmp_path)
    assert out.startswith("figure9  done  ")
    _, out, _ = reproduce("figure9", "--list", "--json", "--out", tmp_path)
    assert json.loads(out)["items"][0]["scale"] == "thought"


def test_one_target_that_fails_is_named_in_json_too(reproduce, tmp_path):
    name = "table6/transfer-learning"
    status, out, err = reproduce(name, "--scale", "stand-in", "--json", "--out", tmp_path)
    assert status == 2
    (failed,) = json.loads(out)["failed"]
    assert failed["target"] == name
    assert failed["why"] in err


@pytest.mark.parametrize(("there", "scale"), [(True, "quick"), (False, "stand-in")])
def test_the_gpus_of_a_cluster_count_not_this_machines(
    there, scale, reproduce, tmp_path, monkeypatch
):
    specs, joined = [], []

    def train_with_ray(address, **_):
        def train(spec, out, progress):
            specs.append(spec)
            raise ClusterError("enough")

        return train

    def has_gpus(address):
        joined.append(address)
        return there

    monkeypatch.setattr("torch.cuda.is_available", lambda: not there)
    monkeypatch.setattr("accord.experiments.paper._required_runs.train_with_ray", train_with_ray)
    monkeypatch.setattr("accord.experiments.cluster.has_gpus", has_gpus)
    monkeypatch.setattr("accord.experiments.paper._reproduce.check_data", lambda *_: None)
    monkeypatch.setattr("accord.experiments.paper._required_runs.check_data", lambda *_: None)
    names = ["table1/cifar10/sym/40", "table1/cifar10/sym/20"]
    assert reproduce("--ray", "a:1", *names, "--out", tmp_path)[0] == 1
    assert [spec.name.split("-")[0] for spec in specs] == [
        "cifar10" if scale == "quick" else "digits"
    ] * 2
    assert joined == ["a:1"]  # asked once
