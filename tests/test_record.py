import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from memorised import memorised_rows
from recorded import CLASSES, SAMPLES, labels_of, write_record
from voting import draw_rows

import accord
from accord import analysis
from accord._record import Record
from accord.errors import ChoiceError, ExtraMissing, PredictionError, StorageError, TruthMissing
from accord.rules import find_rule
from accord.rules.dawid_skene import DawidSkene
from accord.rules.weighted_agreement import WeightedAgreement

NAMES = ["ant", "bee", "cat", "dog", "eel"]


@pytest.fixture
def record(tmp_path):
    path = write_record(
        tmp_path / "record",
        networks=3,
        epochs=4,
        truth=labels_of(9, 9),
        class_names=NAMES,
        ids=[f"image-{sample}" for sample in range(SAMPLES)],
    )
    return accord.open(path)


@pytest.fixture
def labels():
    return np.array([[labels_of(n, e) for e in range(4)] for n in range(3)])


def test_sizes_and_facts(record):
    assert (record.networks, record.epochs, record.samples, record.classes) == (3, 4, 40, 5)
    assert record.class_names == tuple(NAMES)
    assert record.progress == (1.0, 2.0, 3.0, 4.0)
    assert record.given is None
    assert record.ids[3] == "image-3"
    assert record.split == "test"
    assert record.networks_info[1].metrics[0] == {"loss": 1.0}
    assert "3 networks, 4 epochs, 40 samples, 5 classes" in repr(record)
    chosen = record.select(networks=[0], epochs=[0])
    assert "1 network, 1 epoch, 40 samples, 5 classes" in repr(chosen)


@pytest.mark.parametrize(
    "key",
    [
        slice(None),
        0,
        -1,
        (slice(None), -1),
        (1, 2, 3),
        (..., 5),
        (slice(None), slice(1, 3), slice(4, 9)),
        (slice(None), slice(None), slice(None, None, 3)),
        ([2, 0],),
        (slice(None), [3, 1], 7),
        (0, slice(None), [1, 5, 2]),
        (np.array([True, False, True]),),
        (slice(None), slice(None, None, -1)),
        (0, [1, 2], [3, 4]),
        (slice(None), [1, 2], [3, 4]),
        ([2, 0], [1, 3]),
        ([2, 0], [1, 3], [5, 6]),
        ([2, 0], slice(None), [5, 6]),
        ([2, 0], 1),
        ([], slice(None)),
    ],
)
def test_stored_labels_are_indexed_as_an_array_is(record, labels, key):
    np.testing.assert_array_equal(record.labels[key], labels[key])


def test_stored_labels_become_an_array(record, labels):
    np.testing.assert_array_equal(np.asarray(record.labels), labels)
    assert np.asarray(record.labels, dtype=np.int64).dtype == np.int64
    assert record.labels.shape == labels.shape
    assert (len(record.labels), record.labels.ndim) == (3, 3)
    assert "shape (3, 4, 40), uint8" in repr(record.labels)
    with pytest.raises(IndexError):
        record.labels[5]
    with pytest.raises(IndexError, match="3 axes, 4 indices"):
        record.labels[0, 0, 0, 0]
    with pytest.raises(ValueError, match="can only be read into a copy"):
        np.array(record.labels, copy=False)


def test_stored_labels_compute_as_an_array_does(record, labels):
    np.testing.assert_array_equal(record.labels == record.truth, labels == record.truth)
    np.testing.assert_array_equal(record.truth != record.labels, labels != record.truth)
    np.testing.assert_array_equal(record.labels.astype(int) + 1, labels + 1)
    np.testing.assert_array_equal(np.unique(record.labels), np.unique(labels))
    assert (record.labels == record.labels).all()
    assert record.labels.mean() == np.mean(record.labels) == labels.mean()
    assert (record.labels.max(), record.labels.size) == (labels.max(), labels.size)
    with pytest.raises(AttributeError, match="a stored array has no attribute 'meen'"):
        _ = record.labels.meen


def test_stored_labels_are_read_when_they_are_used(record):
    def read(*_):
        raise AssertionError("was read")

    stored = record.labels
    stored._read = read
    assert repr(stored), stored.shape
    with pytest.raises(AssertionError, match="was read"):
        _ = stored == 0


def test_predictions_from_record_and_from_arrays_are_the_same(record, labels):
    predicted = record.predict()
    np.testing.assert_array_equal(predicted.labels, accord.max_agreement(labels, classes=CLASSES))
    agreement = accord.agreement(labels, classes=CLASSES)
    np.testing.assert_array_equal(record.agreement(), agreement)
    np.testing.assert_array_equal(predicted.scores, agreement.max(axis=1))
    top = np.sort(agreement, axis=1)
    np.testing.assert_allclose(record.margin(), top[:, -1] - top[:, -2])


def test_a_rule_of_ones_own_is_taken(record):
    class First(accord.Rule):
        name = "first"
        reads = "all"

        def __call__(self, rows):
            return accord.Prediction(np.zeros(rows.samples, int), np.ones(rows.samples))

    assert record.predict(First()).labels.sum() == 0
    expected = (record.truth == 0).mean()
    assert record.score([First()])[0].accuracy == expected
    assert record.curve(First()).accuracy[-1] == expected
    assert record.by_networks(First()).rule == "first"
    assert record.by_epochs(First()).mean[-1] == expected
    assert record.changes(First(), First()).difference == 0
    with pytest.raises(ChoiceError, match="no rule is called 3"):
        record.predict(3)


def test_a_selection_is_by_network_number_and_epoch(record, labels):
    chosen = record.select(networks=[2, 0], epochs=slice(1, None))
    np.testing.assert_array_equal(chosen.labels[:], labels[[2, 0], 1:])
    with pytest.raises(ChoiceError, match="no network 7"):
        record.select(networks=[7])


def test_the_analysis_is_at_hand(record):
    assert {one.rule for one in record.score()} >= {"single", "majority", "max-agreement"}
    assert len(record.curve().accuracy) == 4
    assert record.by_networks("majority").sizes == (1, 2, 3)
    assert record.by_epochs(counts=[2, 4]).sizes == (2, 4)
    assert record.changes("majority", "max-agreement").samples == SAMPLES
    assert record.persistence().right_onsets.shape == (4,)
    assert record.final_margin().shape == (SAMPLES,)


def test_one_rule_is_scored_by_name(record):
    assert record.score("max-agreement") == record.score(["max-agreement"])
    assert record.score(find_rule("majority"))[0].rule == "majority"


def test_scores_and_curves_name_the_labels_and_log_what_limits_them(tmp_path, caplog):
    path = write_record(tmp_path / "record", networks=2, given=labels_of(9, 9))
    record = accord.open(path)
    assert {one.reference for one in record.score()} == {record.curve().reference} == {"given"}
    (estimate,) = [text for text in caplog.messages if "cannot be estimated" in text]
    assert estimate.startswith(f"{record.path}: the accuracy cannot be estimated from the given")
    caplog.clear()
    record.score("majority")
    assert not caplog.messages


def test_the_recommended_rule_has_curves_and_changes(record):
    name = record.recommend().rule
    np.testing.assert_array_equal(record.curve("recommended").accuracy, record.curve(name).accuracy)
    assert record.by_networks("recommended").rule == record.by_epochs("recommended").rule == name
    assert record.changes("recommended", name).turned_right == 0
    assert record.forgetting("recommended") is not None


def test_probabilities_that_were_not_recorded_raise(record):
    with pytest.raises(ValueError, match="the record has labels only"):
        _ = record.probabilities


def test_arrays_without_three_axes_are_refused():
    with pytest.raises(PredictionError, match=r"axes \(network, epoch, sample\).*labels\[None\]"):
        accord.max_agreement(np.zeros((2, 3), int), classes=2)
    with pytest.raises(PredictionError, match="list whose parts differ in shape"):
        accord.agreement([[[0, 1], [0]]], classes=2)


def test_masked_labels_are_refused():
    labels = np.ma.masked_equal(np.tile([0, 1, 1, 0], (2, 3, 1)), 1)
    with pytest.raises(PredictionError, match="masked array with 12 masked"):
        accord.max_agreement(labels, classes=2)


def test_an_agreement_table_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "wide"
    with accord.Recorder(path, network=0, samples=600_000, classes=100_000) as recorder:
        recorder.record(np.zeros(600_000, int))
    with pytest.raises(PredictionError, match="the largest is 4 GiB"):
        accord.open(path).agreement()


def test_predictions_are_saved_for_other_tools(record, tmp_path):
    predicted = record.predict()
    record.save(predicted, tmp_path / "labels.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), predicted.labels)
    record.save(predicted, tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [int(line["label"]) for line in lines] == predicted.labels.tolist()
    assert lines[3]["id"] == "image-3"
    assert lines[3]["class"] == NAMES[predicted.labels[3]]
    assert float(lines[3]["score"]) == predicted.scores[3]
    record.save(predicted, tmp_path / "labels.parquet")
    table = pq.read_table(tmp_path / "labels.parquet")
    assert table.column_names == ["sample", "id", "label", "class", "score"]
    assert table["label"].to_pylist() == predicted.labels.tolist()


def test_line_breaks_in_an_id_or_a_class_name_break_no_line_of_csv(tmp_path):
    ids, names = ["a\rb", "c\nd", "e\r\nf"], ["no\r", "\nyes"]
    sample_info = {"samples": 3, "classes": 2, "ids": ids, "class_names": names}
    with accord.Recorder(tmp_path / "broken", network=0, **sample_info) as recorder:
        recorder.record([0, 1, 1])
    record = accord.open(tmp_path / "broken")
    record.save(record.predict(), tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["id"] for line in lines] == ids
    assert [line["class"] for line in lines] == ["no\r", "\nyes", "\nyes"]


def test_an_abstention_has_no_class_name(record, tmp_path):
    unsure = accord.Prediction(np.full(SAMPLES, -1), np.zeros(SAMPLES))
    record.save(unsure, tmp_path / "labels.csv")
    assert (tmp_path / "labels.csv").read_text().splitlines()[1] == "0,image-0,-1,,0.0"


def test_a_file_that_cannot_be_written_is_refused(record, tmp_path, monkeypatch):
    with pytest.raises(ChoiceError, match=r"written as \.npy, \.csv, \.parquet; got '\.xls'"):
        record.save(record.predict(), tmp_path / "labels.xls")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        record.save(record.predict(), tmp_path / "file" / "labels.csv")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ExtraMissing, match=r"accord\[parquet\]"):
        record.save(record.predict(), tmp_path / "labels.parquet")


def test_scores_need_truth(tmp_path):
    record = accord.open(write_record(tmp_path / "record"))
    assert record.truth is None
    with pytest.raises(TruthMissing, match="no true labels"):
        record.score()


def test_a_rule_is_recommended_from_the_votes_alone():
    record = accord.open("example://cifar10-sym40")
    found = record.recommend()
    assert found.rule == "leave-one-out"
    assert found.reason


def test_a_rule_is_fitted_on_one_record_and_predicts_another():
    first, second = Record(draw_rows()), Record(draw_rows(samples=50, seed=1))
    fitted = first.fit()
    assert fitted.name == "dawid-skene"
    expected = DawidSkene().fit(first.reader)(second.reader)
    np.testing.assert_array_equal(second.predict(fitted).scores, expected.scores)
    weighted = first.fit("weighted-agreement")
    np.testing.assert_array_equal(weighted.weights, WeightedAgreement().fit(first.reader).weights)
    again = second.fit(weighted)  # a rule itself is as good as its name
    np.testing.assert_array_equal(again.weights, WeightedAgreement().fit(second.reader).weights)


def test_a_rule_that_learns_nothing_cannot_be_fitted():
    with pytest.raises(
        ChoiceError, match=r"max-agreement has no parameters.*be fitted: before-overfit, dawid-sk"
    ):
        Record(draw_rows()).fit("max-agreement")
    with pytest.raises(ChoiceError, match="Did you mean 'dawid-skene'"):
        Record(draw_rows()).fit("dawid-skeen")


def test_methods_return_what_analysis_does():
    record = accord.open("example://cifar10-sym40")
    assert record.watch().epoch == analysis.watch(record.reader).epoch
    assert record.watch(least_fall=0.5).alarm is False
    assert record.network_health() == analysis.network_health(record.reader)
    assert record.good_networks() == [0, 1, 2, 3, 4]
    predicted = record.predict("majority")
    measured = record.calibration("majority", bins=5)
    expected = analysis.calibration_of(predicted, record.truth, bins=5)
    np.testing.assert_array_equal(measured.accuracy, expected.accuracy)
    right = record.predict().labels == record.truth
    assert record.risk_coverage().area == analysis.risk_coverage(record.margin(), right).area
    found = record.forgetting("max-agreement")
    assert found.judged_by == "max-agreement"
    assert found.share == analysis.forgetting(record.reader, judge="max-agreement").share


def test_a_training_record_is_audited():
    rows = memorised_rows()
    assert Record(rows).audit().ranking.tolist() == analysis.audit(rows).ranking.tolist()


def test_the_recommended_rule_predicts_with_a_note():
    record = Record(draw_rows(turns=0.8, accuracies=(0.4, 0.8, 0.9, 0.5)))
    found = record.recommend()
    predicted = record.predict("recommended")
    expected = record.predict(found.rule)
    assert found.rule != "max-agreement"
    np.testing.assert_array_equal(predicted.labels, expected.labels)
    np.testing.assert_array_equal(predicted.scores, expected.scores)
    assert predicted.note == f"recommended: {found.rule}, as {found.reason}"


def test_the_recommended_rule_keeps_its_own_note(monkeypatch):
    record = Record(draw_rows(networks=3))
    found = record.recommend()
    notes = replace(record.predict(found.rule), note="of its own")
    monkeypatch.setattr(type(find_rule(found.rule)), "__call__", lambda self, rows: notes)
    assert record.predict("recommended").note.endswith(f"{found.reason}; of its own")


@pytest.mark.parametrize("url", ["s3://bucket/labels.csv", "file:///tmp/labels.csv"])
def test_a_prediction_is_not_saved_to_a_url(record, tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)
    for path in (url, Path(url)):
        with pytest.raises(ChoiceError, match=r"labels\.csv: is a URL.*only be written locally"):
            record.save(record.predict(), path)
    assert not list(tmp_path.glob("*:"))


def test_a_prediction_is_saved_in_the_home_folder(record, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    record.save(record.predict(), "~/labels.npy")
    assert (tmp_path / "labels.npy").is_file()
    assert not (tmp_path / "~").exists()
