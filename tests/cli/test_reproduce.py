"""`accord reproduce` lists targets, trains missing runs, and prints results."""

import json

import pytest
from one_thread import one_thread  # noqa: F401 -- for every test here

from accord.cli._progress import Bar
from accord.errors import ClusterError
from accord.experiments.paper import SCALES, all_targets
from accord.experiments.paper._protocols import protocols
from accord.training import train


@pytest.fixture(autouse=True)
def small(monkeypatch):
    train = {"networks": 2, "network": "mlp", "epochs": 3, "batch": 64}
    monkeypatch.setitem(protocols()["scale"]["stand-in"], "train", train)


@pytest.fixture
def reproduce(accord):
    return lambda *arguments: accord("reproduce", *arguments)


def test_list_shows_every_target_with_a_status(reproduce, tmp_path):
    status, out, _ = reproduce("--list", "--json", "--out", tmp_path, "--data", tmp_path)
    items = json.loads(out)["items"]
    assert status == 0
    assert [item["name"] for item in items] == list(all_targets())
    assert {item["status"] for item in items} == {"not run", "data missing"}
    assert all(item["scales"].keys() == SCALES.keys() for item in items)


def test_list_of_some_targets_at_one_scale(reproduce, tmp_path):
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
    assert all("not run" in line for line in listed)
    assert (empty, head) == ("", "data missing, for 6 of 6 targets:")
    assert where.endswith(" (6 targets)")
    assert where.startswith(f"  put CIFAR-100 at {tmp_path / 'cifar-100-binary'}; source: ")


def test_list_names_missing_data_once_and_the_stand_in(reproduce, tmp_path):
    _, out, _ = reproduce("--list", "--out", tmp_path, "--data", tmp_path)
    assert out.count("put CIFAR-100 at ") == out.count("data missing") == 1
    assert out.endswith(
        "to use the embedded digits instead (all but table6/transfer-learning and "
        "ours/cifar10/sym/40/transfer-learning): --scale stand-in\n"
    )
    _, out, _ = reproduce("table6/transfer-learning", "--list", "--data", tmp_path)
    assert "instead" not in out


def test_result_is_printed_and_listed_as_done(reproduce, tmp_path):
    name = "table1/cifar10/sym/40"
    status, out, err = reproduce(name, "--scale", "stand-in", "--out", tmp_path)
    assert status == 0
    assert "| max-agreement       | 90.0 ± 0.1 |" in out
    assert "digits-sym40, seed 0: network 1, epoch 3 of 3" in err
    _, out, _ = reproduce(name, "--list", "--out", tmp_path, "--data", tmp_path)
    assert "not run             CIFAR-10, 40 % symmetric noise; done with digits instead\n" in out
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
        ([], "name a target: accord reproduce table1/cifar10/sym/40, or use --list"),
    ],
)
def test_invalid_arguments_raise(arguments, words, reproduce):
    status, out, err = reproduce(*arguments)
    assert (status, out) == (2, "")
    assert words in err


def test_missing_data_exit_with_status_1(reproduce, tmp_path):
    status, _, err = reproduce(
        "table1/cifar100/sym/20", "--on-cpu", "--data", tmp_path, "--out", tmp_path
    )
    assert status == 1
    assert "CIFAR-100 is missing. Source: " in err


@pytest.fixture
def trained(monkeypatch):
    """Options of trainings on a cluster, which are done in this process."""
    found = []

    def train_remotely(spec, out, *, progress, **options):
        found.append(options)
        return train(spec, out, progress=progress)

    monkeypatch.setattr("accord.experiments.cluster.train_remotely", train_remotely)
    return found


@pytest.mark.parametrize(
    ("words", "call", "machine"),
    [
        (["--ray"], {"address": "local", "gpus": None}, "1 core, "),
        (
            ["--gpus", "0.5", "--ray", "a:1"],
            {"address": "a:1", "gpus": 0.5},
            "a Ray cluster at a:1",
        ),
    ],
)
def test_ray_option_trains_on_a_cluster(words, call, machine, reproduce, tmp_path, trained):
    name = "table1/cifar10/sym/40"
    assert reproduce(*words, name, "--scale", "stand-in", "--out", tmp_path)[0] == 0
    assert trained == [call]
    kept = json.loads((tmp_path / name / "stand-in.json").read_text("utf-8"))
    assert kept["machine"].startswith(machine)


GROUP = ["adversarial-network", "transfer-learning", "different-optimizer"]


@pytest.fixture
def group(reproduce, tmp_path):
    names = [f"table6/{one}" for one in GROUP]
    return lambda *more: reproduce(*names, "--scale", "stand-in", "--out", tmp_path, *more)


def test_group_lists_failures_last(group, tmp_path):
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
    assert last[1].endswith("not available at the scale stand-in")
    assert "table6/different-optimizer" in (tmp_path / "results.md").read_text("utf-8")


def test_json_of_a_group_lists_failures(group):
    status, out, _ = group("--json")
    found = json.loads(out)
    assert status == 1
    assert [one["target"] for one in found["results"]] == [
        f"table6/{GROUP[0]}",
        f"table6/{GROUP[2]}",
    ]
    (failed,) = found["failed"]
    assert failed["target"] == "table6/transfer-learning"
    assert "not available" in failed["why"]


def test_each_result_is_printed_as_soon_as_it_is_known(reproduce, tmp_path, monkeypatch, capsys):
    printed = []

    def train_remotely(spec, out, *, progress, **_):
        printed.append(capsys.readouterr().out)
        return train(spec, out, progress=progress)

    monkeypatch.setattr("accord.experiments.cluster.train_remotely", train_remotely)
    status, out, _ = reproduce(
        "--ray", "table1/cifar10/asym", "--scale", "stand-in", "--out", tmp_path
    )
    assert status == 0
    assert [text.count("scale stand-in") for text in (*printed, out)] == [0, 1, 1, 1]


def test_error_of_a_single_target_is_raised(reproduce, tmp_path):
    name = "table6/transfer-learning"
    status, out, err = reproduce(name, "--scale", "stand-in", "--out", tmp_path)
    assert (status, out) == (2, "")
    assert err.startswith("accord: CIFAR-100, 40 % symmetric noise, initialised with")
    assert err.count("\n") == 1


def test_prefix_of_one_target_is_a_group(reproduce, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    status, _, err = reproduce("setup", "--scale", "medium", "--out", tmp_path)
    assert status == 1
    assert err.startswith("accord: 1 of 1 targets could not be reproduced:\n  setup/webvision50: ")


def test_no_bar_is_shown_while_a_result_is_printed(reproduce, tmp_path, monkeypatch):
    shown, seen = [], []

    class Watched(Bar):
        def _open(self):
            shown[:] = [self]

        def close(self):
            shown.clear()

    monkeypatch.setattr("accord.cli.reproduce.Bar", Watched)
    monkeypatch.setattr(
        "accord.experiments.paper.result_text", lambda _: str(seen.append(len(shown)))
    )
    names = ["table1/cifar10/sym/20", "table1/cifar10/sym/40"]
    assert reproduce(*names, "--scale", "stand-in", "--out", tmp_path)[0] == 0
    assert (seen, shown) == ([0, 0], [])


def test_repeated_reason_is_printed_once(reproduce, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    status, _, err = reproduce("figure6", "--scale", "medium", "--out", tmp_path)
    assert status == 1
    assert err.count("requires a GPU") == 1
    assert err.endswith("  figure6/cifar100/sym/40: as above\n")


def test_damaged_result_is_reported_and_the_others_continue(reproduce, tmp_path):
    path = tmp_path / "theory/none.json"
    path.parent.mkdir()
    path.touch()
    name = "table1/cifar10/sym/40"
    status, out, err = reproduce("figure9", name, "--scale", "stand-in", "--out", tmp_path)
    assert status == 0
    assert "wrong in % of the plane" in out
    assert f"{name}: CIFAR-10" in out
    assert err.count("none.json: not a readable result") == 1
    status, out, _ = reproduce("--list", "--out", tmp_path, "--data", tmp_path)
    (line,) = (line for line in out.splitlines() if line.startswith("theory"))
    assert status == 0
    assert "partly" in line
    assert "none.json: not a readable result" in line
    assert reproduce("theory", "--out", tmp_path)[0] == 1


def test_repetitions_of_a_figure_print_a_warning(reproduce, tmp_path):
    name = "figure2/cifar10/asym/20"
    _, _, err = reproduce(name, "--scale", "stand-in", "--out", tmp_path, "--repetitions", "3")
    words = f"{name}: a figure shows one run; --repetitions 3 is for tables"
    assert words in err
    _, _, err = reproduce(name, "--scale", "stand-in", "--out", tmp_path, "--repetitions", "1")
    assert "one run" not in err


@pytest.mark.parametrize("more", [[], ["--list"]])
def test_url_is_refused_before_anything_is_written(more, reproduce, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, err = reproduce("figure9", "--out", "s3://bucket/x", *more)
    assert status == 2
    assert "--out takes a folder of this machine; got the URL s3://bucket/x." in err
    assert list(tmp_path.iterdir()) == []


def test_gpus_option_requires_ray(reproduce):
    status, _, err = reproduce("theory", "--gpus", "0.5")
    assert status == 2
    assert "--gpus requires --ray" in err


def test_list_shows_the_best_scale(reproduce, tmp_path):
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


def test_analytic_target_has_the_scale_none(reproduce, tmp_path):
    assert reproduce("figure9", "--out", tmp_path)[0] == 0
    _, out, _ = reproduce("figure9", "--list", "--out", tmp_path)
    assert out.startswith("figure9  done  ")
    _, out, _ = reproduce("figure9", "--list", "--json", "--out", tmp_path)
    assert json.loads(out)["items"][0]["scale"] == "none"


def test_json_of_a_single_failed_target(reproduce, tmp_path):
    name = "table6/transfer-learning"
    status, out, err = reproduce(name, "--scale", "stand-in", "--json", "--out", tmp_path)
    assert status == 2
    (failed,) = json.loads(out)["failed"]
    assert failed["target"] == name
    assert failed["why"] in err


@pytest.mark.parametrize(("there", "scale"), [(True, "quick"), (False, "stand-in")])
def test_gpus_of_the_cluster_decide(there, scale, reproduce, tmp_path, monkeypatch):
    specs, joined = [], []

    def train_remotely(spec, out, **_):
        specs.append(spec)
        raise ClusterError("enough")

    def has_gpus(address):
        joined.append(address)
        return there

    monkeypatch.setattr("torch.cuda.is_available", lambda: not there)
    monkeypatch.setattr("accord.experiments.cluster.train_remotely", train_remotely)
    monkeypatch.setattr("accord.experiments.cluster.has_gpus", has_gpus)
    monkeypatch.setattr("accord.experiments.paper._reproduce.check_data", lambda *_: None)
    monkeypatch.setattr("accord.experiments.paper._required_runs.check_data", lambda *_: None)
    names = ["table1/cifar10/sym/40", "table1/cifar10/sym/20"]
    assert reproduce("--ray", "a:1", *names, "--out", tmp_path)[0] == 1
    assert [spec.name.split("-")[0] for spec in specs] == [
        "cifar10" if scale == "quick" else "digits"
    ] * 2
    assert joined == ["a:1"]
