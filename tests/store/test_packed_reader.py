"""Damaged and missing parts of a packed record raise; they are never read as zeros."""

import json
import shutil
import uuid
import zipfile

import numpy as np
import pytest

from accord._record import Record
from accord.errors import AccordError, NotARecord, RowDamaged, StorageError
from accord.store import check_record, open_reader, pack_record
from accord.store._storage import open_storage

FIRST, SECOND = "labels/c.0.0.0", "labels/c.1.0.0"
GONE = r"a chunk of the packed record is damaged \(labels/c\.[01]\.0\.0 is missing\)"
FORMS = ["packed", "packed.zip", "memory://"]


@pytest.fixture(params=FORMS)
def anywhere(request, record, tmp_path):
    """A packed record in a folder, a zip file and an object store."""
    form = request.param
    path = f"memory://{uuid.uuid4()}" if form == "memory://" else str(tmp_path / form)
    pack_record(record, path)
    return path


@pytest.fixture
def packed(record, tmp_path):
    pack_record(record, tmp_path / "packed")
    return tmp_path / "packed"


@pytest.fixture
def zipped(record, tmp_path):
    pack_record(record, tmp_path / "packed.zip")
    return tmp_path / "packed.zip"


def change(file, edit):
    root = json.loads(file.read_text())
    edit(root)
    file.write_text(json.dumps(root))


def rewrite_zip(path, names):
    """Rewrite a zip file with renamed entries."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(names.get(name, name), data)


def test_a_renamed_chunk_is_missing(packed):
    (packed / SECOND).rename(packed / "labels/c.1.0.0.bak")
    with pytest.raises(RowDamaged, match="1 of 2 chunks of labels are missing"):
        open_reader(packed)


def test_a_chunk_renamed_in_a_zip_file_is_missing(zipped):
    rewrite_zip(zipped, {SECOND: f"{SECOND}.bak"})
    with pytest.raises(RowDamaged, match="1 of 2 chunks of labels are missing"):
        open_reader(zipped)


@pytest.mark.parametrize("leave", [shutil.rmtree, lambda path: path.rename(f"{path}-moved")])
def test_a_deleted_folder_is_not_read_as_zeros(packed, leave):
    rows = open_reader(packed)
    leave(packed)
    with pytest.raises(RowDamaged, match=GONE):
        list(rows.blocks())


def test_a_deleted_chunk_in_an_object_store_is_not_read_as_zeros(record):
    import obstore

    url = f"memory://{uuid.uuid4()}"
    pack_record(record, url)
    rows = open_reader(url)
    obstore.delete(open_storage(url)._store, SECOND)
    with pytest.raises(RowDamaged, match=GONE):
        list(rows.blocks())


@pytest.mark.parametrize(
    "encoding", [{"name": "default"}, {"name": "default", "configuration": {"separator": "/"}}]
)
def test_chunks_under_unexpected_names_are_missing(packed, encoding):
    change(packed / "labels/zarr.json", lambda root: root.update(chunk_key_encoding=encoding))
    with pytest.raises(RowDamaged, match="2 of 2 chunks of labels are missing"):
        open_reader(packed)
    report = check_record(packed)
    assert not report.sound
    assert "network 0, epochs 0..2, samples 0..39: the labels are missing" in [
        finding.text for finding in report.findings
    ]


def test_an_empty_choice_gives_an_empty_array(anywhere, record):
    packed, plain = Record(open_reader(anywhere)).labels, Record(open_reader(record)).labels
    for key in (slice(0, 0), [], (0, []), (slice(None), slice(2, 1)), (..., slice(0, 0)), (0, 1)):
        found = packed[key]
        np.testing.assert_array_equal(found, plain[key])
        assert (found.shape, found.dtype) == (plain[key].shape, plain[key].dtype)


def spoil(zipped, member, *, byte):
    """Change one byte of the stored data of an entry."""
    with zipfile.ZipFile(zipped) as archive:
        info = archive.getinfo(member)
    data = bytearray(zipped.read_bytes())
    data[info.header_offset + 30 + len(member) + byte] ^= 0xFF
    zipped.write_bytes(data)


def test_damaged_labels_in_a_zip_file_are_named(zipped):
    spoil(zipped, SECOND, byte=10)
    with pytest.raises(RowDamaged, match=r"a chunk of the packed record is damaged \(Bad CRC-32"):
        list(open_reader(zipped).blocks())
    (finding,) = check_record(zipped).findings
    assert finding.text == "network 1, epochs 0..2, samples 0..39: the labels cannot be read back"


def test_damaged_truth_in_a_zip_file_is_named(zipped):
    spoil(zipped, "truth/c.0", byte=10)
    with pytest.raises(RowDamaged, match=r"packed\.zip: truth/c\.0 is damaged \(Bad CRC-32"):
        open_reader(zipped)
    (finding,) = check_record(zipped).findings
    assert finding.damage


@pytest.mark.parametrize("member", ["zarr.json", "labels/zarr.json"])
def test_damaged_metadata_in_a_zip_file_are_named(zipped, member):
    spoil(zipped, member, byte=0)  # zlib refuses even the first byte
    for read in (open_reader, check_record):
        with pytest.raises((RowDamaged, NotARecord), match=r"packed\.zip: "):
            read(zipped)


def test_any_damaged_byte_of_a_zip_file_raises_an_error_of_accord(zipped):
    sound = zipped.read_bytes()
    for position in range(0, len(sound), 7):
        data = bytearray(sound)
        data[position] ^= 0xFF
        zipped.write_bytes(data)
        for read in (read_all, check_record):
            try:
                read(zipped)
            except AccordError:
                continue


def read_all(path):
    rows = open_reader(path)
    rows.networks_info()
    return list(rows.blocks())


def test_a_deleted_zip_file_is_named(zipped):
    place = open_storage(zipped)
    zipped.unlink()
    with pytest.raises(StorageError, match=r"zarr\.json cannot be read"):
        place.get("zarr.json")


@pytest.mark.parametrize(
    "edit",
    [
        lambda root: root.update(shape=None),
        lambda root: root.update(shape="2"),
        lambda root: root["chunk_grid"]["configuration"].update(chunk_shape=[0, 3, 40]),
        lambda root: root["chunk_grid"]["configuration"].update(chunk_shape=None),
        lambda root: root["chunk_grid"].pop("configuration"),
        lambda root: root.update(codecs=None),
        lambda root: root.update(codecs=[{}]),
        lambda root: root.update(codecs=[{"name": "unheard-of"}]),
        lambda root: root.update(data_type="unheard-of"),
        lambda root: root.update(fill_value="a"),
        lambda root: root.pop("zarr_format"),
        lambda root: root.clear(),
    ],
)
def test_damaged_metadata_of_the_labels_are_named(packed, edit):
    change(packed / "labels/zarr.json", edit)
    for read in (open_reader, check_record):
        with pytest.raises(NotARecord, match=r"packed: .*`labels` cannot be read"):
            read(packed)


def test_a_removed_transpose_codec_is_damage(packed):
    change(packed / "labels/zarr.json", lambda root: root["codecs"].pop(0))
    with pytest.raises(RowDamaged, match=r"zarr\.json was changed: it does not match the encoding"):
        open_reader(packed)
    (finding,) = check_record(packed).findings
    assert finding.damage
    assert "labels/zarr.json was changed" in finding.text


def test_other_attributes_in_the_metadata_are_ignored(packed):
    change(packed / "labels/zarr.json", lambda root: root["attributes"].update(note="ours"))
    assert len(read_all(packed)) == 1
    assert check_record(packed).sound


@pytest.mark.parametrize("encoding", [None, 3, {}, {"labels": {}}])
def test_a_record_without_a_stored_encoding_is_read(packed, encoding):
    change(packed / "zarr.json", lambda root: root["attributes"]["accord"].update(arrays=encoding))
    assert len(read_all(packed)) == 1
    assert check_record(packed).sound


def networks_of(root):
    return root["attributes"]["accord"]["networks"]


@pytest.mark.parametrize(
    "edit",
    [
        lambda root: root["attributes"]["accord"].update(networks=3),
        lambda root: root["attributes"]["accord"].update(networks=[None, None]),
        lambda root: networks_of(root)[1].pop("network"),
        lambda root: networks_of(root)[1].pop("progress"),
        lambda root: networks_of(root)[1].pop("told"),
        lambda root: networks_of(root)[1].update(told=[]),
        lambda root: networks_of(root)[1].update(times=None),
        lambda root: networks_of(root)[1].update(times=["once"]),
        lambda root: networks_of(root)[1].update(progress=["a", "b", "c"]),
    ],
)
def test_damaged_metadata_of_the_networks_are_named(packed, edit):
    change(packed / "zarr.json", edit)
    for read in (open_reader, check_record):
        with pytest.raises(NotARecord, match=r"zarr\.json does not describe .* networks"):
            read(packed)


@pytest.mark.parametrize("what", ["samples", "classes"])
def test_sizes_that_are_not_numbers_are_named(packed, what):
    change(packed / "zarr.json", lambda root: root["attributes"]["accord"].update({what: "9"}))
    for read in (open_reader, check_record):
        with pytest.raises(NotARecord, match=f"{what} must be a whole number; got '9'"):
            read(packed)
