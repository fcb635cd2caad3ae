import pytest
from recorded import CLASSES, SAMPLES, labels_of, write_record

from accord._recorder import Recorder


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


@pytest.mark.parametrize("arguments", [("train", "spec.toml"), ("compare", "spec.toml")])
def test_runs_are_kept_on_this_machine(accord, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, err = accord(*arguments, "--out", "s3://bucket/run")
    assert status == 2
    assert "--out takes a folder of this machine; got the URL s3://bucket/run." in err
    assert list(tmp_path.iterdir()) == []


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


def test_a_network_without_epochs_is_named_and_blocks_nothing(accord, record, caplog):
    Recorder(record, network=3, samples=SAMPLES, classes=CLASSES).close(quiet=True)
    assert accord("score", record)[0] == 0
    assert f"{record}: network 3 has no epochs yet and is left out" in caplog.text
