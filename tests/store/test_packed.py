"""Packing keeps everything, or writes nothing."""

import zipfile

import numpy as np
import pytest
import zarr
from recorded import CLASSES, SAMPLES, write_record

from accord._recorder import Recorder
from accord.errors import (
    ChoiceError,
    NotARecord,
    ProbabilitiesMissing,
    RecordExists,
    RecordMissing,
    StorageError,
    UnequalNetworks,
)
from accord.store import check_record, open_reader, pack_record, write_packed
from accord.store._record_reader import RecordReader

WHOLE = slice(None)


def everything(rows: RecordReader):
    chosen = range(rows.networks), range(rows.epochs), WHOLE
    values = [rows.read_labels(*chosen)]
    if rows.has_probabilities:
        values.append(rows.read_probabilities(*chosen))
    return values


@pytest.fixture
def full(path):
    tables = np.random.default_rng(0).dirichlet(np.ones(CLASSES), (2, 3, SAMPLES))
    for network in (4, 7):
        with Recorder(
            path,
            network=network,
            samples=SAMPLES,
            classes=CLASSES,
            truth=[0] * SAMPLES,
            given=[1] * SAMPLES,
            ids=np.arange(SAMPLES) * 10,
            class_names=list("abcde"),
            split="train",
            probabilities=True,
            metadata={"seed": network},
        ) as recorder:
            for epoch, table in enumerate(tables[network // 7]):
                recorder.record(table, progress=(epoch + 1) / 10, loss=0.5)
    return path


@pytest.mark.parametrize("name", ["packed", "packed.zip"])
def test_packing_keeps_everything(full, tmp_path, name):
    pack_record(full, tmp_path / name)
    before, after = open_reader(full), open_reader(tmp_path / name)
    for old, new in zip(everything(before), everything(after), strict=True):
        np.testing.assert_array_equal(old, new)
        assert old.dtype == new.dtype
    assert after.numbers == (4, 7)
    assert after.networks_info() == before.networks_info()
    for fact in ("truth", "given", "ids"):
        np.testing.assert_array_equal(
            getattr(before.sample_info, fact), getattr(after.sample_info, fact)
        )
    assert after.sample_info.class_names == ("a", "b", "c", "d", "e")
    assert after.sample_info.split == "train"


def test_probabilities_can_be_left_out(full, tmp_path):
    pack_record(full, tmp_path / "labels.zip", labels_only=True)
    before, after = open_reader(full), open_reader(tmp_path / "labels.zip")
    assert not after.has_probabilities
    np.testing.assert_array_equal(everything(after)[0], everything(before)[0])
    assert after.networks_info() == before.networks_info()


@pytest.mark.parametrize("epochs", [slice(None, None, 2), [0, -1]])
def test_packing_some_epochs_keeps_their_true_epochs(full, tmp_path, epochs):
    pack_record(full, tmp_path / "some.zip", epochs=epochs)
    before, after = open_reader(full), open_reader(tmp_path / "some.zip")
    for old, new in zip(everything(before), everything(after), strict=True):
        np.testing.assert_array_equal(old[:, [0, 2]], new)
    assert [one.progress for one in after.networks_info()] == [(0.1, 0.3)] * 2
    report = check_record(tmp_path / "some.zip")
    assert (report.rows, report.sound) == (4, True)


@pytest.mark.parametrize("epochs", [slice(None, None, -1), [2, 0], [1, 1]])
def test_epochs_out_of_order_are_not_packed(full, tmp_path, epochs):
    with pytest.raises(ChoiceError, match="the epochs of a packed record must ascend; got"):
        pack_record(full, tmp_path / "some", epochs=epochs)
    assert not (tmp_path / "some").exists()


@pytest.fixture
def mixed(path):
    """A record of three networks, the second of which has only labels."""
    table = np.full((SAMPLES, CLASSES), 1 / CLASSES)
    for network in range(3):
        with Recorder(
            path, network=network, samples=SAMPLES, classes=CLASSES, probabilities=network != 1
        ) as recorder:
            recorder.record(table)
    return path


def test_packing_some_networks_with_probabilities_requires_a_choice(mixed, tmp_path):
    words = r"some networks have probabilities \(0, 2\), others do not \(1\).*--labels-only"
    with pytest.raises(ProbabilitiesMissing, match=words):
        pack_record(mixed, tmp_path / "packed")
    with pytest.raises(ProbabilitiesMissing, match=r"probabilities \(2\), others do not \(1\)"):
        write_packed(open_reader(mixed).select([1, 2], samples=slice(1, 5)), tmp_path / "packed")
    assert [file.name for file in tmp_path.iterdir()] == ["record"]


def test_mixed_networks_are_packed_as_the_message_suggests(mixed, tmp_path):
    pack_record(mixed, tmp_path / "labels", labels_only=True)
    assert not open_reader(tmp_path / "labels").has_probabilities
    pack_record(mixed, tmp_path / "both", networks=[0, 2])
    assert open_reader(tmp_path / "both").with_probabilities == (0, 2)


def test_any_choice_of_rows_is_read_from_a_packed_record(full, tmp_path):
    pack_record(full, tmp_path / "packed")
    before, after = open_reader(full), open_reader(tmp_path / "packed")
    for chosen in (([1], [2], slice(3, 9)), ([1, 0], [2, 0], slice(0, 1))):
        np.testing.assert_array_equal(after.read_labels(*chosen), before.read_labels(*chosen))


def test_a_zip_deflates_what_is_not_compressed_yet(full, tmp_path):
    pack_record(full, tmp_path / "packed.zip")
    with zipfile.ZipFile(tmp_path / "packed.zip") as packed:
        deflated = {
            member.filename.endswith(".json"): member.compress_type for member in packed.infolist()
        }
        assert packed.namelist()[-1] == "zarr.json"
    assert deflated == {True: zipfile.ZIP_DEFLATED, False: zipfile.ZIP_STORED}


def test_large_records_are_cut_into_chunks(path, tmp_path, monkeypatch):
    monkeypatch.setattr("accord.store._packed.LABELS_PER_CHUNK", 64)
    monkeypatch.setattr("accord.store._packed.EPOCHS_PER_CHUNK", 4)
    write_record(path, epochs=10)
    pack_record(path, tmp_path / "packed")
    assert zarr.open_array(tmp_path / "packed/labels", mode="r").chunks == (1, 4, 16)
    np.testing.assert_array_equal(
        everything(open_reader(tmp_path / "packed"))[0], everything(open_reader(path))[0]
    )


def test_progress_reaches_the_end(record, tmp_path):
    seen = []
    pack_record(
        record, tmp_path / "packed", progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (SAMPLES, SAMPLES)


def test_nothing_is_overwritten(record, tmp_path):
    (tmp_path / "here").mkdir()
    with pytest.raises(RecordExists, match="exists; choose another name"):
        pack_record(record, tmp_path / "here")
    zipfile.ZipFile(tmp_path / "empty.zip", "w").close()
    with pytest.raises(RecordExists, match=r"empty\.zip: exists"):
        pack_record(record, tmp_path / "empty.zip")
    pack_record(record, "memory://taken")
    with pytest.raises(RecordExists, match="memory://taken: exists"):
        pack_record(record, "memory://taken")


def test_unequal_networks_are_packed_up_to_their_common_epochs(record, tmp_path):
    write_record(record, networks=1, epochs=5)
    with pytest.raises(UnequalNetworks, match="--common"):
        pack_record(record, tmp_path / "packed")
    pack_record(record, tmp_path / "packed", common=True)
    assert open_reader(tmp_path / "packed").epochs == 3


def test_a_failed_packing_leaves_nothing_behind(record, tmp_path):
    (record / "network-001/labels/c.2.0").unlink()
    with pytest.raises(ValueError, match="its labels are missing"):
        pack_record(record, tmp_path / "out" / "packed.zip")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_path_that_cannot_be_written_is_named(record, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        pack_record(record, tmp_path / "file" / "packed")


def test_missing_and_incomplete_records_are_not_packed(tmp_path, record):
    with pytest.raises(RecordMissing, match="no such file or folder"):
        pack_record(tmp_path / "nowhere", tmp_path / "packed")
    pack_record(record, tmp_path / "packed")
    (tmp_path / "packed/labels/zarr.json").unlink()
    with pytest.raises(NotARecord, match="record is incomplete: `labels` cannot be read"):
        open_reader(tmp_path / "packed")
