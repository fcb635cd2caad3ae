"""Records are described, and every damaged row is found by its checksum."""

import re
from pathlib import Path

import numpy as np
import pytest
from recorded import labels_of, write_record

from accord.errors import RowDamaged
from accord.store import check_record, describe, import_arrays, open_reader, pack_record


def texts(report):
    return [finding.text for finding in report.findings]


def test_a_sound_record(record):
    report = check_record(record)
    assert (report.rows, report.findings, report.sound) == (6, (), True)


def test_leftovers_and_unequal_lengths_are_reported_but_sound(record):
    write_record(record, networks=1, epochs=4)
    (record / "network-001/labels/c.3.0").write_bytes(b"torn")
    report = check_record(record)
    assert report.sound
    assert "network 1, epoch 3: labels without a commit" in texts(report)[0]
    assert "different numbers of epochs (network 0: 4, network 1: 3)" in texts(report)[1]


def test_partially_written_files_are_reported_but_sound(record):
    (record / "network-001/labels/.c.3.0.abc.part").write_bytes(b"to")
    report = check_record(record)
    assert report.sound
    assert texts(report)[0].startswith("network-001/labels/.c.3.0.abc.part: partially written")


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_text("{")])
def test_rows_of_a_network_without_metadata_are_damage(record, spoil):
    spoil(record / "network-001/zarr.json")
    words = r"network 1 has rows, but network-001/zarr\.json is missing or cannot be read"
    report = check_record(record)
    assert not report.sound
    assert re.search(words, texts(report)[0])
    with pytest.raises(RowDamaged, match=words):
        open_reader(record)
    with pytest.raises(RowDamaged, match=words):
        describe(record)
    assert open_reader(record, networks=[0]).numbers == (0,)


def test_an_empty_record_is_reported(record):
    for network in (0, 1):
        for commit in (record / f"network-00{network}/commits").glob("c.*"):
            commit.unlink()
    assert "the record has no epochs yet" in texts(check_record(record))


def test_every_damaged_row_is_named(record):
    (record / "network-000/labels/c.1.0").write_bytes(b"")
    (record / "network-001/labels/c.0.0").unlink()
    (record / "network-001/commits/c.2").write_text("no json")
    report = check_record(record)
    assert not report.sound
    first, second, third = texts(report)
    assert "network 0, epoch 1 is damaged" in first
    assert "network 1, epoch 0 is damaged: its labels are missing" in second
    assert "network 1, epoch 2: its commit cannot be read" in third


def test_a_missing_commit_between_others_is_damage(record):
    (record / "network-000/commits/c.1").unlink()
    report = check_record(record)
    assert not report.sound
    assert "network 0, epoch 1 is missing, but later ones exist" in texts(report)[0]


def test_a_damaged_truth_is_damage_and_hides_no_other(record):
    (record / "truth/c.0").write_bytes(b"x")
    (record / "network-000/labels/c.1.0").write_bytes(b"")
    report = check_record(record)
    assert (report.rows, report.sound) == (6, False)
    first, second = texts(report)
    assert "truth is damaged: it does not match its checksum" in first
    assert "network 0, epoch 1 is damaged" in second


@pytest.fixture
def packed(record, tmp_path):
    pack_record(record, tmp_path / "packed")
    return tmp_path / "packed"


def test_a_sound_packed_record(packed):
    report = check_record(packed)
    assert (report.rows, report.findings) == (6, ())


def test_a_damaged_chunk_of_a_packed_record_is_named(packed):
    chunk = packed / "labels/c.1.0.0"
    data = bytearray(chunk.read_bytes())
    data[-6] ^= 0xFF
    chunk.write_bytes(data)
    report = check_record(packed)
    assert not report.sound
    assert texts(report) == [
        "network 1, epochs 0..2, samples 0..39: the labels cannot be read back"
    ]
    with pytest.raises(RowDamaged, match="a chunk of the packed record is damaged"):
        list(open_reader(packed).blocks())


def test_a_missing_chunk_is_never_read_as_zeros(packed):
    (packed / "labels/c.1.0.0").unlink()
    assert texts(check_record(packed)) == [
        "network 1, epochs 0..2, samples 0..39: the labels are missing"
    ]
    with pytest.raises(RowDamaged, match="1 of 2 chunks of labels are missing"):
        open_reader(packed)


def test_no_damage_of_a_packed_record_hides_another(tmp_path):
    tables = np.full((3, 2, 40, 4), 0.25)
    import_arrays(tmp_path / "packed", tables, truth=np.zeros(40, int))
    (tmp_path / "packed/truth/c.0").write_bytes(b"x")
    (tmp_path / "packed/labels/c.0.0.0").unlink()
    (tmp_path / "packed/labels/c.1.0.0").write_bytes(b"x")
    (tmp_path / "packed/probabilities/c.2.0.0.0").unlink()
    report = check_record(tmp_path / "packed")
    assert (report.rows, report.sound) == (6, False)
    truth, *others = texts(report)
    assert "truth is damaged: it does not match its checksum" in truth
    assert others == [
        "network 0, epochs 0..1, samples 0..39: the labels are missing",
        "network 1, epochs 0..1, samples 0..39: the labels cannot be read back",
        "network 2, epochs 0..1, samples 0..39: the probabilities are missing",
    ]


def test_a_label_outside_the_classes_is_damage(packed):
    import zarr

    labels = zarr.open_array(packed / "labels", mode="r+")
    labels[0, 0, 0] = 200
    assert "a label is not one of the classes" in texts(check_record(packed))[0]


def test_a_check_changes_nothing(record):
    check_record(record)
    labels = open_reader(record).read_labels([0], [0], slice(None))
    np.testing.assert_array_equal(labels[0, 0], labels_of(0, 0))


def size_of(path):
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def test_the_size_is_that_of_all_files(record):
    assert describe(record).size == size_of(record) > 0


def test_the_size_of_a_zip_file_is_that_of_the_file(record, tmp_path):
    pack_record(record, tmp_path / "packed.zip")
    assert describe(tmp_path / "packed.zip").size == (tmp_path / "packed.zip").stat().st_size


@pytest.mark.parametrize("unlinked", ["before", "after"])
def test_a_file_that_a_writer_renames_meanwhile_is_ignored(record, monkeypatch, unlinked):
    before = size_of(record)
    part = record / "row.part"
    part.write_bytes(b"12345")

    def listed(self, pattern, *, rglob=Path.rglob):
        for file in list(rglob(self, pattern)):
            if file == part and unlinked == "before":
                part.unlink()
            yield file
            if file == part:
                part.unlink(missing_ok=True)

    monkeypatch.setattr(Path, "rglob", listed)
    assert describe(record).size == before + (5 if unlinked == "after" else 0)
