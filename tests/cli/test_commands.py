import json
import re
import subprocess
import sys

import numpy as np
import pytest
from recorded import CLASSES, SAMPLES, labels_of, write_record

from accord._recorder import Recorder
from accord.cli.app import GROUPS, app

COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]


@pytest.fixture
def record(tmp_path):
    return str(write_record(tmp_path / "record", networks=3, epochs=4, truth=labels_of(9, 9)))


def votes_of(networks, epochs):
    return np.array([[labels_of(n, e) for e in epochs] for n in networks])


def winners_by_definition(labels):
    flat = labels.reshape(-1, labels.shape[-1])
    return [max(range(CLASSES), key=lambda c: (flat[:, s] == c).sum()) for s in range(SAMPLES)]


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


def test_show(accord, record):
    status, out, _ = accord("show", record)
    assert status == 0
    assert "3 networks, 4 epochs" in out
    assert "40 samples of the test split, 5 classes" in out
    shown = json.loads(accord("show", record, "--json")[1])
    assert shown["epochs"] == {"0": 4, "1": 4, "2": 4}
    assert shown["about"].keys() == shown["epochs"].keys()
    assert "metadata" not in shown


def test_predict_prints_one_class_per_line(accord, record):
    status, out, _ = accord("predict", record)
    assert status == 0
    assert [int(line) for line in out.splitlines()] == winners_by_definition(
        votes_of(range(3), range(4))
    )


def test_predict_takes_a_rule_networks_and_epochs(accord, record):
    _, out, _ = accord("predict", record, "--networks", "2,0", "--epochs", "1:3")
    expected = winners_by_definition(votes_of([2, 0], [1, 2]))
    assert [int(line) for line in out.splitlines()] == expected
    _, out, _ = accord("predict", record, "--rule", "majority", "--epochs", "2")
    assert [int(line) for line in out.splitlines()] == winners_by_definition(
        votes_of(range(3), [2])
    )


@pytest.mark.parametrize("suffix", ["npy", "csv", "parquet"])
def test_predict_writes_files(accord, record, tmp_path, suffix):
    out = tmp_path / f"labels.{suffix}"
    status, printed, err = accord("predict", record, "--out", out)
    assert (status, printed) == (0, "")
    assert "40 labels by max-agreement" in err
    assert out.stat().st_size > 40


def test_score_json_is_an_independent_count(accord, record):
    status, out, _ = accord("score", record, "--json")
    scored = json.loads(out)
    assert status == 0
    assert [scored[key] for key in ("networks", "epochs", "samples", "classes")] == [3, 4, 40, 5]
    assert scored["recommended"] == "weighted-agreement"  # the record holds three networks
    labels, truth = votes_of(range(3), range(4)), labels_of(9, 9)
    rules = scored["rules"]
    assert rules["max-agreement"]["accuracy"] == np.mean(winners_by_definition(labels) == truth)
    assert rules["majority"]["accuracy"] == np.mean(winners_by_definition(labels[:, -1:]) == truth)
    per_network = (labels[:, -1] == truth).mean(axis=1).tolist()
    assert rules["single"]["per_network"] == per_network
    assert rules["single"]["accuracy"] == pytest.approx(np.mean(per_network), abs=1e-15)
    by_epoch = [np.mean(winners_by_definition(labels[:, [e]]) == truth) for e in range(4)]
    assert rules["oracle-best-epoch"] | {"balanced_accuracy": 0} == {
        "accuracy": max(by_epoch),
        "epoch": int(np.argmax(by_epoch)),
        "progress": float(np.argmax(by_epoch) + 1),
        "oracle": True,
        "balanced_accuracy": 0,
    }
    assert "probability-average" not in rules


def test_score_takes_networks_and_epochs(accord, record):
    chosen = ["score", record, "--json", "--networks", "2,0", "--epochs", ":2"]
    scored = json.loads(accord(*chosen)[1])
    assert (scored["networks"], scored["epochs"]) == (2, 2)
    labels = votes_of([2, 0], range(2))
    expected = np.mean(winners_by_definition(labels) == labels_of(9, 9))
    assert scored["rules"]["max-agreement"]["accuracy"] == expected


def test_score_prints_a_table(accord, record):
    status, out, _ = accord("score", record, "--rule", "majority", "--rule", "max-agreement")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].endswith("3 networks, 4 epochs, 40 samples, 5 classes")
    assert lines[2].split() == ["rule", "accuracy", "balanced"]
    assert [line.split()[0] for line in lines[3:]] == ["majority", "max-agreement"]


def test_import_then_score(accord, tmp_path):
    np.savez(tmp_path / "logs.npz", labels=votes_of(range(3), range(4)), truth=labels_of(9, 9))
    status, out, err = accord("import", tmp_path / "logs.npz", tmp_path / "made")
    assert (status, out) == (0, "")
    assert "Next: accord score" in err
    scored = json.loads(accord("score", tmp_path / "made", "--json")[1])
    assert scored["rules"]["max-agreement"]["accuracy"] == np.mean(
        winners_by_definition(votes_of(range(3), range(4))) == labels_of(9, 9)
    )


def test_pack_and_check(accord, record, tmp_path):
    assert accord("pack", record, tmp_path / "packed.zip")[0] == 0
    status, out, _ = accord("check", tmp_path / "packed.zip")
    assert (status, out.strip()) == (0, f"{tmp_path}/packed.zip: 12 rows, all can be read")


def test_every_second_epoch_can_be_packed(accord, record, tmp_path):
    half = tmp_path / "half.zip"
    assert accord("pack", record, half, "--epochs", "1::2")[0] == 0
    selected = accord("predict", record, "--epochs", "1::2")
    assert accord("predict", half) == selected
    shown = json.loads(accord("show", half, "--json")[1])
    assert shown["epochs"] == {"0": 2, "1": 2, "2": 2}
    status, _, message = accord("pack", record, tmp_path / "back.zip", "--epochs", "::-1")
    assert (status, "must ascend" in message) == (2, True)
    assert accord("pack", record, tmp_path / "none.zip", "--epochs", "9:")[0] == 2


def test_networks_can_be_chosen_to_be_packed_and_reported(accord, record, tmp_path):
    one, page = tmp_path / "one.zip", tmp_path / "one.html"
    assert accord("pack", record, one, "--networks", "1")[0] == 0
    assert list(json.loads(accord("show", one, "--json")[1])["epochs"]) == ["1"]
    assert accord("report", record, "--networks", "1", "--out", page)[0] == 0
    assert "<dt>networks</dt><dd>1</dd>" in "".join(page.read_text().split())
    assert accord("pack", record, tmp_path / "none.zip", "--networks", "7")[0] == 2


def test_check_names_a_damaged_row(accord, record, tmp_path):
    (tmp_path / "record/network-001/labels/c.2.0").write_bytes(b"")
    status, out, _ = accord("check", record)
    assert status == 1
    assert "damaged: " in out
    assert "network 1, epoch 2" in out
    assert out.splitlines()[-1].endswith("12 rows, 1 damaged")


def test_unequal_networks(accord, record):
    write_record(record, networks=1, epochs=6, truth=labels_of(9, 9))
    for command in ("score", "predict"):
        status, out, err = accord(command, record)
        assert (status, out) == (1, "")
        assert "To use the epochs that all have: --common" in err
        assert accord(command, record, "--common")[0] == 0
    status, out, _ = accord("check", record)
    assert status == 0
    assert "note: the networks have different numbers of epochs" in out


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["score", "nowhere"], 1, "nowhere: no such file or folder"),
        (["score", "RECORD", "--rule", "majorty"], 2, "Did you mean 'majority'?"),
        (["predict", "RECORD", "--rule", "soft-agreement"], 1, "the record has labels only"),
        (["predict", "RECORD", "--epochs", "a:b"], 2, "--epochs takes A:B or A:B:STEP"),
        (["predict", "RECORD", "--epochs", "::0"], 2, "--epochs takes A:B or A:B:STEP"),
        (["predict", "RECORD", "--epochs", "9:"], 2, "no epoch is selected; there are 4"),
        (["predict", "RECORD", "--networks", "5"], 2, "no network 5; there are 0, 1, 2"),
        (["predict", "RECORD", "--networks", "x"], 2, "--networks takes numbers like 0,2"),
        (["predict", "RECORD", "--out", "labels.xls"], 2, "written as .npy, .csv, .parquet"),
        (["report", "RECORD", "--out", "report.pdf"], 2, "a report is an .html file"),
        (["import", "nothing.npz", "x"], 1, "nothing.npz: no such file"),
        (["import", "nothing.mat", "x"], 2, "no importer for 'mat'"),
        (["pack", "RECORD", "RECORD"], 1, "exists; choose another name"),
        (["predict"], 2, "Missing argument"),
        (["prdict"], 2, "No such command"),
        (["score", "RECORD", "--tale"], 2, "No such option"),
    ],
)
def test_mistakes_are_named_on_standard_error(accord, record, arguments, status, words):
    given = [record if argument == "RECORD" else argument for argument in arguments]
    found, out, err = accord(*given)
    assert (found, out) == (status, "")
    assert words in err


@pytest.mark.parametrize("command", [["watch"], ["audit"], ["fit", "--out", "rule.npz"]])
def test_one_network_is_the_fault_of_the_record_or_of_the_choice(accord, tmp_path, command):
    path = tmp_path / "given"
    for network in (0, 1):
        with Recorder(path, network=network, samples=2, classes=2, given=[0, 1]) as recorder:
            recorder.record([0, 1])
        if network == 0:
            status, out, err = accord(*command, path)
            assert (status, out) == (1, "")
            assert "there is one" in err
    assert accord(*command, path, "--networks", "1")[0] == 2
    assert accord(*command, path, "--networks=1")[0] == 2


def test_the_version_is_printed(accord):
    import accord as package

    assert accord("--version")[:2] == (0, f"accord {package.__version__}\n")


def test_the_installed_command_and_the_module_are_the_same(record):
    for command in (["-m", "accord"], ["-c", "from accord.cli import main; main()"]):
        done = subprocess.run(
            [sys.executable, *command, "score", record, "--json"],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        assert json.loads(done.stdout)["networks"] == 3
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


@pytest.mark.parametrize("arguments", [("train", "spec.toml"), ("compare", "spec.toml")])
def test_runs_are_kept_on_this_machine(accord, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, err = accord(*arguments, "--out", "s3://bucket/run")
    assert status == 2
    assert "--out takes a folder of this machine; got the URL s3://bucket/run." in err
    assert list(tmp_path.iterdir()) == []


def test_a_path_with_a_space_is_quoted_in_a_printed_command(accord, tmp_path):
    np.savez(tmp_path / "logs.npz", labels=np.zeros((1, 2, 3), np.uint8))
    place = tmp_path / "my record"
    status, _, err = accord("import", tmp_path / "logs.npz", place, "--classes", "2")
    assert status == 0
    assert err.endswith(f"Next: accord score '{place}'\n")


def test_a_prediction_for_a_url_is_refused_before_the_record_is_read(accord):
    status, _, err = accord("predict", "nowhere", "--out", "s3://bucket/labels.csv")
    assert status == 2
    assert "labels.csv: is a URL" in err


@pytest.mark.parametrize(
    "words",
    [
        ("report", "--out", "s3://bucket/page.html"),
        ("audit", "--out", "s3://bucket/audit.csv"),
        ("audit", "--queue", "s3://bucket/queue.csv"),
        ("trust", "--out", "s3://bucket/samples.csv"),
    ],
)
def test_no_file_is_written_to_a_url(accord, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, *options = words
    status, _, err = accord(command, "example://cifar10-sym40", *options)
    assert status == 2
    assert "is a URL, but this file can only be written locally" in err
    assert not list(tmp_path.iterdir())


def test_every_summary_in_the_help_fits_on_one_line(accord, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = accord("--help")
    assert status == 0
    assert "..." not in out.replace("[ARGS]...", "")
    assert all(f"\n{group}:\n" in out for group in GROUPS)


def test_a_run_folder_is_accepted_wherever_a_record_is(accord, tmp_path):
    run = tmp_path / "run"
    write_record(run / "test", truth=labels_of(9, 9))
    write_record(run / "train", split="train", given=labels_of(9, 9))
    assert "of the test split" in accord("show", run)[1]
    assert "of the train split" in accord("show", run, "--split", "train")[1]
    assert accord("score", run, "--json") == accord("score", run / "test", "--json")
    assert accord("audit", run, "--json") == accord("audit", run / "train", "--json")
    assert accord("watch", run, "--json") == accord("watch", run / "test", "--json")
    checked = accord("check", run)
    assert checked[0] == 0
    assert checked[1].splitlines() == [
        f"{run}/{split}: 6 rows, all can be read" for split in ("test", "train")
    ]
    status, _, err = accord("predict", run, "--split", "validation")
    assert status == 2
    assert "there is no validation: --split test" in err


def test_networks_are_removed_and_shown_no_more(accord, record):
    assert accord("remove", record, "--networks", "2,0")[::2] == (
        0,
        f"{record}: 2 networks removed\n",
    )
    assert json.loads(accord("show", record, "--json")[1])["epochs"] == {"1": 4}
    status, _, err = accord("remove", record, "--networks", "2")
    assert (status, "no network 2; there are 1" in err) == (2, True)
    assert accord("remove", record)[0] == 2


def test_a_network_without_epochs_is_named_and_blocks_nothing(accord, record, caplog):
    Recorder(record, network=3, samples=SAMPLES, classes=CLASSES).close(quiet=True)
    assert accord("score", record)[0] == 0
    assert f"{record}: network 3 has no epochs yet and is left out" in caplog.text
