import csv
import json

import numpy as np
import pytest
from memorised import NAMES, memorised_rows

from accord._recorder import Recorder
from accord.store import ArrayReader
from accord.training import parse_spec


def write_rows(rows, path, **sample_info):
    labels = rows.read_labels(range(rows.networks), range(rows.epochs), slice(None))
    known = {
        "truth": rows.sample_info.truth,
        "given": rows.sample_info.given,
        "split": "train",
    } | sample_info
    for number, err in enumerate(labels):
        with Recorder(path, network=number, samples=600, classes=5, **known) as recorder:
            for row in err:
                recorder.record(row)
    return str(path)


@pytest.fixture(scope="module")
def rows():
    return memorised_rows()


@pytest.fixture(scope="module")
def record(rows, tmp_path_factory):
    return write_rows(rows, tmp_path_factory.mktemp("audit") / "train", class_names=list(NAMES))


def test_audit_prints_json_and_nothing_else(accord, record, rows):
    status, out, err = accord("audit", record, "--json")
    document = json.loads(out)
    assert (status, err) == (0, "")
    assert document["samples"] == 600
    assert sorted(document["ranking"]) == list(range(600))
    wrong = rows.sample_info.given != rows.truth()
    assert document["noise_rate"] == pytest.approx(wrong.mean(), abs=0.02)
    ranks = np.empty(600)
    ranks[document["ranking"]] = np.arange(600)
    duels = ranks[wrong][:, np.newaxis] < ranks[~wrong]
    assert document["auroc"] == pytest.approx(duels.mean(), abs=1e-3)


def test_audit_prints_text(accord, record):
    status, out, err = accord("audit", record)
    assert (status, err) == (0, "")
    assert "600 samples, 5 classes" in out
    assert "labels are probably wrong" in out


def test_audit_writes_its_files(accord, record, tmp_path):
    out, table = tmp_path / "audit.csv", tmp_path / "table.npy"
    status, _, _ = accord("audit", record, "--out", out, "--probabilities", table)
    assert status == 0
    assert len(out.read_text().splitlines()) == 601
    np.testing.assert_allclose(np.load(table).sum(axis=1), 1)


def test_audit_takes_networks_and_epochs(accord, record):
    chosen = ("--networks", "3,0", "--epochs", "1:7")
    document = json.loads(accord("audit", record, "--json", *chosen)[1])
    assert (document["networks"], document["epochs"]) == (2, 6)


def test_a_review_goes_round(accord, record, rows, tmp_path):
    queue, labels = tmp_path / "queue.csv", tmp_path / "labels.npz"
    status, _, err = accord("audit", record, "--queue", queue, "--most", 40)
    assert status == 0
    assert f"{queue}: 40 labels to review; 9" in err
    with queue.open(newline="") as file:
        decided = list(csv.DictReader(file))
    for row in decided:
        row["decided"] = NAMES[rows.truth()[int(row["sample"])]]
    with queue.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(decided[0]))
        writer.writeheader()
        writer.writerows(decided)
    status, out, err = accord("audit", record, "--decisions", queue, "--corrected", labels)
    assert status == 0
    assert "40 labels reviewed, 40 changed" in out
    assert f'noise = {{ kind = "file", path = "{labels}" }}' in err
    found = np.load(labels)["labels"]
    changed = np.array([int(row["sample"]) for row in decided])
    np.testing.assert_array_equal(found[changed], rows.truth()[changed])
    assert (found != rows.sample_info.given).sum() == 40
    document = json.loads(accord("audit", record, "--decisions", queue, "--json")[1])
    assert document["review"]["actual"] == 1.0


def test_the_printed_noise_setting_is_valid_in_a_spec(accord, record, tmp_path):
    labels = tmp_path / "labels.npy"
    _, _, err = accord("audit", record, "--corrected", labels, "--proposals")
    noise = err.split("in a spec: ")[1].strip()
    spec = parse_spec(
        f'name = "again"\n{noise}\ndata = {{ kind = "digits" }}\ntrain = {{ epochs = 1 }}'
    )
    assert (spec.noise.kind, spec.noise.path) == ("file", str(labels))
    assert np.load(labels).shape == (600,)


def test_unseen_proposals_of_an_audit_with_notes_are_doubted(accord, record, rows, tmp_path):
    labels = rows.read_labels([0, 1, 1], range(12), slice(None))
    doubtful = write_rows(ArrayReader(labels, rows.sample_info), tmp_path / "copies")
    for path, noted in ((record, False), (doubtful, True)):
        status, _, err = accord("audit", path, "--corrected", tmp_path / "new.npy", "--proposals")
        assert status == 0
        assert ("accord: proposals that nobody has reviewed are used" in err) is noted
        assert ("accord: networks 1 and 2 predict the same classes" in err) is noted


def test_a_queue_for_label_studio(accord, record, tmp_path):
    queue = tmp_path / "queue.json"
    status, _, _ = accord("audit", record, "--queue", queue, "--link", "https://host/{sample}.png")
    assert status == 0
    assert json.loads(queue.read_text())[0]["data"]["image"].startswith("https://host/")


def test_an_unpredicted_class_is_noted_on_standard_error(accord, rows, tmp_path):
    labels = rows.read_labels(range(4), range(12), slice(None))
    mute = type(rows)(np.where(labels == 4, 0, labels), rows.sample_info)
    status, out, err = accord("audit", write_rows(mute, tmp_path / "mute"), "--json")
    assert (status, json.loads(out)["unpredicted"]) == (0, [4])
    assert "no network ever predicts 4" in err


def test_a_test_record_is_at_fault(accord, rows, tmp_path):
    path = write_rows(rows, tmp_path / "test", given=None, split="test")
    status, out, err = accord("audit", path, "--json")
    assert (status, out) == (1, "")
    assert "record of the test split holds none" in err


def test_a_record_of_late_epochs_is_at_fault(accord, record):
    status, _, err = accord("audit", record, "--epochs", "-1")
    assert status == 1
    assert "wrong labels cannot be found" in err


def test_decisions_about_other_samples_are_at_fault(accord, record, tmp_path):
    (tmp_path / "decided.csv").write_text("sample,decided\n9999,bee\n")
    status, out, err = accord("audit", record, "--decisions", tmp_path / "decided.csv", "--json")
    assert (status, out) == (1, "")
    assert "belong to another record?" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--most", "5"], "--most requires a queue"),
        (["--link", "{id}"], "--link requires a queue"),
        (["--corrected", "labels.npz"], "--corrected requires --decisions, or --proposals"),
        (["--proposals"], "--proposals requires a file of corrected labels"),
        (["--out", "audit.txt"], "an audit is written as .csv"),
        (["--queue", "queue.csv", "--most", "0"], "--most must be at least 1; got 0"),
        (["--queue", "queue.csv", "--link", "x/{sample.__class__}"], "{id} and {sample}"),
        (["--queue", "queue.csv", "--link", "{sample:>999999999999}"], "{id} and {sample}"),
        (["--out", "same.csv", "--queue", "same.csv"], "two options name the same file"),
        (["--networks", "0"], "there is one"),
    ],
)
def test_wrong_arguments(accord, record, options, words):
    status, _, err = accord("audit", record, *options)
    assert status == 2
    assert words in err


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--queue", "a queue is written as .csv or .json"),
        ("--probabilities", "probabilities are written as .npy"),
        ("--corrected", "labels are written as .npz or .npy or .csv"),
        ("--decisions", "decisions are read from .csv or .json"),
    ],
)
def test_endings_are_checked_before_anything_is_read_or_written(accord, tmp_path, option, words):
    out = tmp_path / "audit.csv"
    more = ["--proposals"] if option == "--corrected" else []
    status, _, err = accord("audit", tmp_path / "none", "--out", out, option, "file.txt", *more)
    assert (status, words in err) == (2, True)
    assert not out.exists()


def test_decisions_are_read_before_anything_is_written(accord, record, tmp_path):
    out, decided = tmp_path / "audit.csv", tmp_path / "decided.csv"
    decided.write_text("sample,decided\n3,wasp\n")
    status, _, err = accord("audit", record, "--out", out, "--decisions", decided)
    assert (status, "'wasp' is none of the 5 classes" in err) == (1, True)
    assert not out.exists()


def test_a_second_queue_leaves_decisions_alone(accord, record, tmp_path):
    queue, out = tmp_path / "queue.csv", tmp_path / "audit.csv"
    assert accord("audit", record, "--queue", queue, "--most", 3)[0] == 0
    text = queue.read_text().replace(",\n", ",bee\n")
    queue.write_text(text)
    status, _, err = accord("audit", record, "--queue", queue, "--most", 3, "--out", out)
    assert (status, "holds 3 decisions" in err) == (1, True)
    assert queue.read_text() == text
    assert not out.exists()


def test_decisions_are_left_alone_by_whatever_option(accord, record, tmp_path):
    decided = tmp_path / "decided.csv"
    decided.write_text("sample;decided\n3;bee\n")
    for options in (["--out", decided], ["--corrected", decided, "--proposals"]):
        status, _, err = accord("audit", record, *options)
        assert (status, "Name another one" in err) == (1, True)
    assert decided.read_text() == "sample;decided\n3;bee\n"


def test_one_file_is_found_out_under_two_names(accord, record, tmp_path):
    decided, link = tmp_path / "decided.csv", tmp_path / "link.csv"
    decided.write_text("sample,decided\n3,bee\n")
    link.symlink_to(decided)
    (tmp_path / "folder").mkdir()
    for other in (link, tmp_path / "folder" / ".." / "decided.csv"):
        status, _, err = accord("audit", record, "--decisions", decided, "--out", other)
        assert (status, "two options name the same file" in err) == (2, True)


def test_notes_are_in_the_json_too(accord, record):
    status, out, err = accord("audit", record, "--epochs", "4:", "--json")
    (note,) = json.loads(out)["notes"]
    assert (status, err) == (0, f"accord: {note}\n")
    assert note.startswith("recording began at epoch 5: wrong labels memorised before then")
