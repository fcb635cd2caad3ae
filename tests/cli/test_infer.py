"""`accord infer` predicts new samples with the checkpoints of a run."""

import csv
import json
import sys

import numpy as np
import pytest
from frames import deepest_chain
from one_thread import one_thread  # noqa: F401 -- for every test here

from accord._record import open_record
from accord.data import read_dataset
from accord.training import parse_spec, train

TEXT = """
name = "small"
data = { kind = "digits", per_class = 60 }
[train]
networks = 2
network = "small-cnn"
options = { width = 8 }
epochs = 4
batch = 64
optimizer = { lr = 0.1 }
[record]
checkpoints = "all"
"""
TEST = read_dataset("digits").test


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("infer") / "run"
    train(parse_spec(TEXT), out, source=TEXT)
    return out


@pytest.fixture(scope="module")
def data(run):
    path = run.parent / "new.npz"
    np.savez(path, images=TEST.inputs, labels=TEST.labels)
    return path


@pytest.fixture(scope="module")
def wanted(run):
    return open_record(run / "test").predict()


def labels_in(out):
    return [int(line) for line in out.splitlines()]


def test_labels_are_those_of_accord_predict_on_the_runs_record(accord, run, data):
    status, out, err = accord("infer", run, data)
    assert status == 0
    assert accord("predict", run / "test")[1] == out
    right = (np.array(labels_in(out)) == TEST.labels).mean()
    assert err.splitlines()[-1] == (
        "719 labels by max-agreement; 2 networks, 4 epochs; "
        f"{100 * right:.2f} % equal to the given labels"
    )


def test_an_early_exit_reports_the_votes_it_saved(accord, run, data, wanted):
    status, out, err = accord("infer", run, data, "--exit", "exact")
    assert status == 0
    assert labels_in(out) == wanted.labels.tolist()
    assert " % of the votes saved; " in err


def test_json_summarizes_the_result(accord, run, data, wanted):
    status, out, _ = accord("infer", run, data, "--exit", "exact", "--json")
    found = json.loads(out)
    assert status == 0
    assert found["labels"] == wanted.labels.tolist()
    assert found["accuracy"] == (wanted.labels == TEST.labels).mean()
    assert found["reference"] == "given"
    assert (found["networks"], found["epochs"]) == ([0, 1], [0, 1, 2, 3])
    assert (found["samples"], found["classes"], found["votes"]) == (719, 10, 8 * 719)
    assert found["class_names"] == [str(digit) for digit in range(10)]
    assert found["saved"] == pytest.approx(1 - found["asked"] / found["votes"])
    assert (found["rule"], found["exit"], found["notes"]) == ("max-agreement", "exact", [])


def test_a_csv_file_holds_labels_names_and_scores(accord, run, data, wanted, tmp_path):
    status, out, err = accord("infer", run, data, "--out", tmp_path / "labels.csv", "--json")
    assert status == 0
    assert "labels" not in json.loads(out)
    assert f"{tmp_path / 'labels.csv'}: 719 labels by max-agreement" in err
    with (tmp_path / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["label"]) for row in rows] == wanted.labels.tolist()
    assert list(rows[0]) == ["sample", "id", "label", "class", "score"]
    assert accord("infer", run, data, "--out", tmp_path / "labels.npy")[1] == ""
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), wanted.labels)


def test_votes_are_kept_as_a_record_that_other_commands_read(accord, run, data, tmp_path):
    votes = tmp_path / "votes"
    status, _, err = accord("infer", run, data, "--record", votes)
    assert status == 0
    assert f"{votes}: every vote. Next: accord show {votes}" in err
    np.testing.assert_array_equal(open_record(votes).labels[:], open_record(run / "test").labels[:])
    status, out, _ = accord("score", votes, "--json")
    assert status == 0
    assert json.loads(out)["samples"] == 719


def test_an_interrupted_record_names_the_command_that_resumes_it(
    accord, run, data, tmp_path, monkeypatch
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("accord.inference._infer.evaluate_checkpoints", interrupt)
    votes = tmp_path / "votes"
    status, _, err = accord("infer", run, data, "--record", votes)
    assert status == 130
    assert f"To resume: accord infer {run} {data} --record {votes}, with the same options" in err
    status, _, err = accord("infer", run, data)
    assert (status, err) == (130, "accord: stopped\n")


def test_rules_are_named_recommended_or_fitted(accord, run, data, tmp_path):
    assert "labels by soft-agreement" in accord("infer", run, data, "--rule", "soft-agreement")[2]
    status, _, err = accord("infer", run, data, "--rule", "recommended")
    assert status == 0
    assert "accord: recommended: " in err
    fitted = tmp_path / "rule.npz"
    assert accord("fit", run / "test", "--rule", "weighted-agreement", "--out", fitted)[0] == 0
    _, wanted, _ = accord("predict", run / "test", "--fitted", fitted)
    for limit in ("none", "exact"):
        status, out, err = accord("infer", run, data, "--fitted", fitted, "--exit", limit)
        assert (status, out) == (0, wanted)
        assert "labels by weighted-agreement" in err


def test_a_format_may_be_named(accord, run, data, tmp_path):
    (tmp_path / "new").write_bytes(data.read_bytes())
    assert accord("infer", run, tmp_path / "new")[0] == 2
    assert accord("infer", run, tmp_path / "new", "--format", "npz")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["RUN", "DATA", "--out", "x.txt"], 2, "x.txt: predictions can be written as .npy, .csv"),
        (["RUN", "DATA", "--exit", "2"], 2, "a risk must lie between 0 and 1"),
        (["RUN", "DATA", "--rule", "majority", "--exit", "0.1"], 2, "only counts votes"),
        (["RUN", "DATA", "--rule", "single", "--fitted", "x.npz"], 2, "both name a rule"),
        (["RUN", "DATA", "--fitted", "x.npz"], 1, "x.npz: not a readable .npz file"),
        (["RUN", "nowhere.npz"], 1, "nowhere.npz: no such file or folder"),
        (["nowhere", "DATA"], 1, "nowhere: no such folder"),
        (["RECORD", "DATA"], 1, "is a record of predictions, not a run"),
        (["RUN"], 2, "Missing argument 'DATA'"),
    ],
)
def test_faults_are_reported_with_their_status(accord, run, data, arguments, status, words):
    given = {"RUN": run, "DATA": data, "RECORD": run / "test"}
    found, out, err = accord("infer", *(given.get(one, one) for one in arguments))
    assert (found, out) == (status, "")
    assert words in err


def test_an_output_that_needs_a_missing_package_is_refused_first(accord, data, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    status, _, err = accord("infer", "nowhere", data, "--out", "labels.parquet")
    assert status == 1
    assert "accord[parquet]" in err  # rather than the missing run


def test_calls_nest_at_most_fifteen_frames_deep(accord, run, data, tmp_path):
    chain = deepest_chain(lambda: accord("infer", run, data, "--exit", "exact"))
    assert len(chain) <= 15, "\n".join(chain)
