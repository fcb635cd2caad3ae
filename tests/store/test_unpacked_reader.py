"""Records are opened whole, in part, and while they grow; damage is named."""

import json

import numpy as np
import pytest
from recorded import CLASSES, SAMPLES, labels_of, write_record

from accord._recorder import Recorder
from accord.errors import (
    ChoiceError,
    NotARecord,
    ProbabilitiesMissing,
    RecordMissing,
    RowDamaged,
    StorageError,
    TruthMissing,
    UnequalNetworks,
    VersionError,
)
from accord.store import _record_reader as rows_module
from accord.store import describe, open_reader


def test_a_missing_record(tmp_path):
    with pytest.raises(RecordMissing, match=r"no such file or folder.*accord import"):
        open_reader(tmp_path / "nowhere")


def test_not_a_record(tmp_path):
    with pytest.raises(NotARecord, match=r"it has no zarr\.json"):
        open_reader(tmp_path)
    (tmp_path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    with pytest.raises(NotARecord, match="was not written by Accord"):
        open_reader(tmp_path)


def test_an_incomplete_record(record):
    root = json.loads((record / "zarr.json").read_text())
    del root["attributes"]["accord"]["classes"]
    (record / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(NotARecord, match="lacks classes"):
        open_reader(record)
    (record / "zarr.json").write_text("")
    with pytest.raises(NotARecord, match="was not written by Accord"):
        open_reader(record)


def test_a_record_of_another_version(record):
    root = json.loads((record / "zarr.json").read_text())
    root["attributes"]["accord"]["format"] = 99
    (record / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(VersionError, match=r"format 99; this .* reads format 1.*--upgrade"):
        open_reader(record)


def test_a_record_without_epochs(path):
    Recorder(path, network=0, samples=SAMPLES, classes=CLASSES).close()
    with pytest.raises(NotARecord, match="has no epochs yet"):
        open_reader(path)
    assert describe(path).epochs == {0: 0}


def test_unequal_networks_are_refused_without_common(record):
    write_record(record, networks=1, epochs=5)
    with pytest.raises(UnequalNetworks, match=r"network 0: 5, network 1: 3.*--common"):
        open_reader(record)
    rows = open_reader(record, common=True)
    assert (rows.networks, rows.epochs) == (2, 3)
    np.testing.assert_array_equal(rows.read_labels([0], [2], slice(None))[0, 0], labels_of(0, 2))


def test_a_network_without_epochs_is_left_out_with_a_warning(record, caplog):
    Recorder(record, network=2, samples=SAMPLES, classes=CLASSES).close(quiet=True)
    assert open_reader(record).numbers == (0, 1)
    assert open_reader(record, networks=[2, 1]).numbers == (1,)
    warned = f"{record}: network 2 has no epochs yet and is left out"
    assert [warned in message for message in caplog.messages] == [True, True]
    assert f"accord remove {record} --networks 2" in caplog.text
    open_reader(record, quiet=True)
    assert len(caplog.messages) == 2
    with pytest.raises(NotARecord, match="has no epochs yet"):
        open_reader(record, networks=[2])


def test_networks_that_are_not_selected_may_be_damaged(record):
    Recorder(record, network=2, samples=SAMPLES, classes=CLASSES).close()
    assert open_reader(record, networks=[1, 0]).numbers == (1, 0)
    with pytest.raises(ChoiceError, match="no network 7; there are 0, 1, 2"):
        open_reader(record, networks=[7])
    with pytest.raises(ChoiceError, match="a network is selected twice"):
        open_reader(record, networks=[1, 1])
    with pytest.raises(ChoiceError, match="no network is selected; there are 3"):
        open_reader(record, networks=[])
    with pytest.raises(ChoiceError, match="networks must be a list of whole numbers; got 1"):
        open_reader(record, networks=1)


def test_negative_epochs_count_from_the_end(record):
    labels = open_reader(record).select(epochs=[-1, 0]).read_labels([0], [0, 1], slice(None))[0]
    np.testing.assert_array_equal(labels, [labels_of(0, 2), labels_of(0, 0)])


def test_a_reader_sees_the_record_as_it_was_when_opened(record):
    rows = open_reader(record)
    write_record(record, epochs=4)
    assert rows.epochs == 3
    assert open_reader(record).epochs == 4


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda file: file.unlink(), "its labels are missing"),
        (lambda file: file.write_bytes(b""), "do not match the checksum"),
        (lambda file: file.write_bytes(file.read_bytes()[:-1]), "do not match the checksum"),
    ],
)
def test_a_damaged_row_is_named(record, damage, words):
    damage(record / "network-001/labels/c.2.0")
    with pytest.raises(
        RowDamaged, match=rf"network 1, epoch 2 is damaged: .*{words}.*accord check"
    ):
        list(open_reader(record).blocks())


def test_a_damaged_commit_is_named(record):
    (record / "network-001/commits/c.2").write_text("{}")
    with pytest.raises(RowDamaged, match="network 1, epoch 2: its commit cannot be read"):
        open_reader(record).networks_info()


def test_a_damaged_sample_array_is_named(record):
    (record / "truth/c.0").write_bytes(b"x")
    with pytest.raises(RowDamaged, match="truth is damaged: it does not match its checksum"):
        open_reader(record)


def test_a_file_that_is_not_a_zip(tmp_path):
    (tmp_path / "record.zip").write_bytes(b"PK")
    with pytest.raises(StorageError, match="not a readable zip file"):
        open_reader(tmp_path / "record.zip")


def test_blocks_together_are_the_whole(record, monkeypatch):
    whole = next(open_reader(record).blocks()).values
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 1)
    monkeypatch.setattr(rows_module, "LEAST_BLOCK", 7)
    blocks = list(open_reader(record).blocks())
    assert [block.start for block in blocks] == [0, 7, 14, 21, 28, 35]
    np.testing.assert_array_equal(np.concatenate([b.values for b in blocks], axis=2), whole)


def test_a_view_of_a_view_reads_the_right_rows(record):
    write_record(record, networks=3, epochs=5)
    view = open_reader(record).select(networks=[2, 0], epochs=slice(1, 5)).select(epochs=[3, 1])
    assert view.numbers == (2, 0)
    assert view.networks_info()[0].progress == (5.0, 3.0)
    labels = view.read_labels([0, 1], [0, 1], slice(None))
    np.testing.assert_array_equal(labels[0], [labels_of(2, 4), labels_of(2, 2)])
    np.testing.assert_array_equal(labels[1], [labels_of(0, 4), labels_of(0, 2)])


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"epochs": slice(9, 12)}, "no epoch is selected; there are 3"),
        ({"networks": []}, "no network is selected; there are 2"),
        ({"networks": [0, 0]}, "a network is selected twice"),
        ({"epochs": [0, 0]}, "the same epoch is selected twice"),
        ({"epochs": [3]}, r"epochs must lie in 0\.\.2; got 3\.\.3"),
        ({"epochs": -1}, r"must be a list of whole numbers; got -1\. For a single one: \[3\]"),
        ({"epochs": "::2"}, "must be a list of whole numbers; got '::2'"),
        ({"epochs": np.array([True])}, "must be a list of whole numbers; got array"),
    ],
)
def test_an_invalid_selection_is_refused(record, choice, words):
    with pytest.raises(ChoiceError, match=words):
        open_reader(record).select(**choice)


def test_networks_are_found_by_their_numbers(path):
    for network in (3, 7):
        with Recorder(path, network=network, samples=SAMPLES, classes=CLASSES) as recorder:
            recorder.record(labels_of(network, 0))
    rows = open_reader(path)
    assert rows.numbered([7]) == [1]
    with pytest.raises(ChoiceError, match="no network 0; there are 3, 7"):
        rows.numbered([0])
    with pytest.raises(ChoiceError, match="networks must be a list of whole numbers; got 7"):
        rows.numbered(7)


def test_missing_truth_and_probabilities_are_named(path):
    rows = open_reader(write_record(path))
    with pytest.raises(TruthMissing, match=r"no true labels.*truth=labels"):
        rows.truth()
    with pytest.raises(
        ProbabilitiesMissing, match=r"the record has labels only.*probabilities=True"
    ):
        next(rows.probability_blocks())


def test_the_description_lists_the_contents(record):
    info = describe(record)
    assert info.epochs == {0: 3, 1: 3}
    assert (info.samples, info.classes, info.split) == (SAMPLES, CLASSES, "test")
    assert info.has == ("truth",)
    assert not info.packed
    assert info.size == sum(f.stat().st_size for f in record.rglob("*") if f.is_file())
    assert {"accord", "numpy", "zarr", "python"} <= info.made_with.keys()
