import csv
import json

import numpy as np
import pytest
from overfitting import draw_run, right_chances

from accord._record import open_record
from accord._recorder import Recorder
from accord.analysis import Overview, measure_trust
from accord.report._trust_text import trust_json, trust_text

SAMPLES, CLASSES, EPOCHS = 400, 5, 8


def write(path, *, truth=True, lengths=(EPOCHS,) * 4, spoilt=None, **sample_info):
    chances = right_chances(EPOCHS, end=0.5)
    rows = draw_run(chances, networks=len(lengths), samples=SAMPLES, classes=CLASSES)
    known = rows.sample_info.truth if truth else None
    for network, length in enumerate(lengths):
        with Recorder(
            path, network=network, samples=SAMPLES, classes=CLASSES, truth=known, **sample_info
        ) as recorder:
            for epoch in range(length):
                labels = rows.read_labels([network], [epoch], slice(None))[0, 0]
                recorder.record(np.zeros_like(labels) if network == spoilt else labels)
    return str(path)


@pytest.fixture
def record(tmp_path):
    return write(tmp_path / "record")


@pytest.fixture
def blind(tmp_path):
    return write(tmp_path / "blind", truth=False)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_text_and_json_are_what_was_measured(accord, record):
    opened = open_record(record)
    found = Overview.of(opened.reader), measure_trust(opened.reader, opened.recommend().rule)
    status, out, _ = accord("trust", record)
    assert (status, out) == (0, trust_text(*found) + "\n")
    status, out, _ = accord("trust", record, "--json")
    assert (status, json.loads(out)) == (0, trust_json(*found))
    assert json.loads(out)["answers"]["target"] == 0.05


def test_rule_risk_networks_and_epochs_are_taken(accord, record):
    chosen = ["--rule", "majority", "--risk", "0.3", "--networks", "2,0,1", "--epochs", ":5"]
    status, out, _ = accord("trust", record, "--json", *chosen)
    view = open_record(record).select(networks=[2, 0, 1], epochs=slice(5))
    assert status == 0
    assert json.loads(out) == trust_json(
        Overview.of(view.reader), measure_trust(view.reader, "majority", risk=0.3)
    )


def test_the_recommended_rule_is_named(accord, record):
    status, out, err = accord("trust", record, "--json")
    found = open_record(record).recommend()
    assert (status, json.loads(out)["rule"]) == (0, found.rule)
    assert f"recommended: {found.rule}, as {found.reason}" in err


def test_a_threshold_from_one_record_is_used_on_another(accord, record, blind, tmp_path):
    chosen = json.loads(accord("trust", record, "--risk", "0.3", "--json")[1])["answers"]
    path = tmp_path / "samples.csv"
    status, out, err = accord(
        "trust", blind, "--threshold", chosen["threshold"], "--json", "--out", path
    )
    expected = json.loads(out)["answers"]
    assert status == 0
    assert "samples.csv: 400 samples" in err
    assert (expected["target"], expected["risk"]) == (None, None)
    assert expected["coverage"] == pytest.approx(chosen["coverage"])  # the votes are the same
    assert sum(int(row["answers"]) for row in rows_of(path)) == 400 * expected["coverage"]


def test_a_risk_without_true_labels_has_no_effect(accord, record, blind):
    for options in ([blind], [record, "--risk", "0.3"]):
        assert "no effect" not in accord("trust", *options)[2]
    status, out, err = accord("trust", blind, "--risk", "0.3")
    assert (status, out) == (0, accord("trust", blind)[1])
    assert "accord: --risk 0.3 has no effect: choosing a threshold requires true labels" in err
    assert "--threshold T" in err


def test_networks_of_unequal_length_need_common(accord, tmp_path):
    path = write(tmp_path / "unequal", lengths=(8, 5, 6))
    assert accord("trust", path)[0] == 1
    status, out, _ = accord("trust", path, "--common", "--json")
    assert (status, json.loads(out)["epochs"]) == (0, 5)


def test_a_bad_network_is_named(accord, tmp_path):
    path = write(tmp_path / "spoilt", spoilt=2)
    assert "network 2 is constant. To leave out: --networks 0,1,3" in accord("trust", path)[1]


def test_training_samples_are_noted_on_standard_error(accord, tmp_path):
    path = write(tmp_path / "train", given=np.zeros(SAMPLES, int), split="train")
    status, out, err = accord("trust", path, "--json")
    assert status == 0
    assert "the networks were trained on these samples" in err
    assert json.loads(out)["notes"] != []


def test_verified_samples_estimate_the_accuracy(accord, record, blind, tmp_path):
    queue = tmp_path / "queue.csv"
    status, _, err = accord("trust", blind, "--verify", "100", "--out", queue)
    assert status == 0
    assert "queue.csv: 100 samples to verify: enter the class of each" in err
    assert f"Then: accord trust {blind} --verified {queue}" in err
    rows, truth = rows_of(queue), open_record(record).truth
    assert len(rows) == 100
    status, out, err = accord("trust", blind, "--verified", queue)
    assert (status, out) == (1, "")
    assert "it holds no decision" in err
    with queue.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row | {"decided": truth[int(row["sample"])]} for row in rows)
    chosen = "--verified", queue, "--rule", "max-agreement"
    status, out, _ = accord("trust", blind, *chosen, "--json")
    found = json.loads(out)["verified"]
    right = (open_record(record).predict().labels == truth).mean()
    assert status == 0
    assert found["low"] < found["value"] < found["high"]
    assert found["low"] <= right <= found["high"]
    assert "estimated from the verified samples, " in accord("trust", blind, "--verified", queue)[1]
    decided = queue.read_bytes()
    for options in (["--verify", "100"], ["--verified", queue], []):
        status, _, err = accord("trust", blind, *options, "--out", queue)
        assert status == 1
        assert "holds 100 decisions" in err
    assert queue.read_bytes() == decided


@pytest.mark.parametrize("options", [["--verify", "100"], []])
def test_decisions_that_a_spreadsheet_saved_with_semicolons_are_kept(
    accord, record, tmp_path, options
):
    queue = tmp_path / "queue.csv"
    queue.write_text("sample;decided\n3;1\n")
    status, _, err = accord("trust", record, *options, "--out", queue)
    assert (status, "Name another one" in err) == (1, True)
    assert queue.read_text() == "sample;decided\n3;1\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--risk", "0"], "--risk must lie between 0 and 1, such as 0.05; got 0"),
        (["--risk", "5"], "--risk must lie between 0 and 1, such as 0.05; got 5"),
        (["--risk", "0.1", "--threshold", "0.5"], "Leave one of them out"),
        (["--threshold", "nan"], "--threshold takes a number like 0.58; got nan"),
        (["--verify", "100"], "--verify requires a file to decide in: add --out queue.csv"),
        (["--verify", "100", "--verified", "q.csv", "--out", "o.csv"], "--verify comes first"),
        (["--out", "samples.npy"], "samples.npy: --out is written as .csv; got '.npy'"),
        (["--verify", "3", "--out", "q.csv"], "the budget must lie in"),
        (["--verified", "q.json"], "verified samples are read from .csv"),
        (["--rule", "majorty"], "Did you mean 'majority'?"),
        (["--networks", "x"], "--networks takes numbers"),
        (["--epochs", "x"], "--epochs takes"),
    ],
)
def test_bad_options_are_refused_with_the_cure(
    accord, record, tmp_path, monkeypatch, options, expected
):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    status, out, err = accord("trust", record, *options)
    assert (status, out) == (2, "")
    assert expected in err
    assert sorted(tmp_path.iterdir()) == before


def test_options_are_checked_before_the_record_is_read(accord, tmp_path):
    assert accord("trust", tmp_path / "nowhere", "--risk", "2")[0] == 2
    status, out, err = accord("trust", tmp_path / "nowhere")
    assert (status, out) == (1, "")
    assert "nowhere: no such file or folder" in err
