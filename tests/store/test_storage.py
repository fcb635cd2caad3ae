"""Folders and object stores fulfil the contract of storage."""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
from recorded import write_record

from accord.errors import StorageError
from accord.store import check_record, describe, open_reader, pack_record
from accord.store._storage import Folder, open_storage
from accord.testing import StorageContract


class TestFolder(StorageContract):
    @pytest.fixture(autouse=True)
    def _fresh(self, tmp_path):
        self.path = tmp_path

    def make_storage(self):
        return Folder(self.path / "place")


def test_a_file_url_is_a_folder(tmp_path):
    assert open_storage(f"file://{tmp_path}").name == str(tmp_path)


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    place = Folder(tmp_path)
    place.put("a", b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(
        StorageError, match=r"cannot write: the disk is full\. Rows recorded before"
    ):
        place.put("a", b"new")
    assert place.get("a") == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_create_does_not_overwrite_without_hard_links(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(1, "no")))
    place = Folder(tmp_path)
    assert place.create("a", b"first")
    assert not place.create("a", b"second")
    assert place.get("a") == b"first"


@pytest.fixture
def readable_folder():
    with tempfile.TemporaryDirectory() as folder:  # other users cannot read pytest's folders
        Path(folder).chmod(0o755)
        yield folder


LONG = "x" * 300


@pytest.mark.parametrize(
    "look",
    [open_reader, check_record, describe, write_record, lambda path: pack_record(path, "out")],
)
@pytest.mark.parametrize("name", [LONG, f"{LONG}.zip", f"{LONG}/record"])
def test_a_name_that_is_too_long_is_refused_with_the_cure(tmp_path, look, name):
    with pytest.raises(StorageError, match=rf"^{tmp_path}/x{{300}}.*: cannot read: .*shorten it"):
        look(tmp_path / name)


@pytest.mark.parametrize("name", [LONG, f"{LONG}.zip"])
def test_nothing_is_packed_under_a_name_that_is_too_long(record, tmp_path, name):
    with pytest.raises(StorageError, match=r"x{300}.*: cannot .*a name in it is too long"):
        pack_record(record, tmp_path / name)
    assert list(tmp_path.iterdir()) == [record]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a\0b", r"'a\\x00b': not a valid file name: it contains a null byte"),
        ("a\ud800", r"'a\\ud800': not a valid file name: .*surrogates not allowed"),
        ("~nobody-at-all/record", "~nobody-at-all/record: no such user has a home folder"),
    ],
)
def test_invalid_file_names_are_refused(name, words):
    for look in (open_reader, write_record):
        with pytest.raises(StorageError, match=f"^{words}"):
            look(name)


def deny(monkeypatch, owner, verb, name):
    """Deny one operation on files with this ending, as the system does except for root."""
    allowed = getattr(owner, verb)

    def tried(path, *arguments, **options):
        if str(path).endswith(name):
            raise PermissionError(13, "Permission denied", str(path))
        return allowed(path, *arguments, **options)

    monkeypatch.setattr(owner, verb, tried)


@pytest.mark.parametrize("look", [open_reader, check_record, describe, write_record])
@pytest.mark.parametrize("name", ["record", "record.zip"])
def test_a_folder_without_search_permission_is_named(tmp_path, monkeypatch, look, name):
    deny(monkeypatch, Path, "stat", name)
    deny(monkeypatch, Path, "open", "zarr.json")
    words = rf"{name}.*: cannot .*: permission denied\. Change the permissions"
    with pytest.raises(StorageError, match=words):
        look(tmp_path / name)


def test_a_network_that_another_user_records_is_named(record, monkeypatch):
    deny(monkeypatch, Path, "open", "zarr.json")
    with pytest.raises(StorageError, match=r"network-000/zarr\.json: cannot write: permission"):
        Folder(record).hold("network-000/zarr.json").__enter__()


def test_a_partially_written_file_of_another_user_is_named(record, monkeypatch):
    (record / "network-000/.c.0.part").touch()
    deny(monkeypatch, Path, "unlink", ".c.0.part")
    with pytest.raises(StorageError, match=r"\.c\.0\.part: cannot remove: permission denied"):
        write_record(record)


def test_a_file_without_permission_to_stat_is_named(record, monkeypatch):
    deny(monkeypatch, Path, "stat", "c.2.0")
    with pytest.raises(StorageError, match=r"labels/c\.2\.0: cannot read: permission denied"):
        describe(record)


@pytest.mark.parametrize("name", ["labels/zarr.json", "labels/c.1.0.0"])
def test_missing_read_permission_is_not_damage(record, tmp_path, monkeypatch, name):
    pack_record(record, tmp_path / "packed")
    rows = open_reader(tmp_path / "packed")
    deny(monkeypatch, Path, "open", name)
    with pytest.raises(StorageError, match=rf"{name}: cannot read: permission denied"):
        check_record(tmp_path / "packed")
    if name != "labels/zarr.json":
        with pytest.raises(StorageError, match=rf"{name}: cannot read: permission denied"):
            rows.read_labels([1], [0], slice(None))


def test_an_unreadable_zip_file_is_named(record, tmp_path, monkeypatch):
    pack_record(record, tmp_path / "packed.zip")
    deny(monkeypatch, zipfile, "ZipFile", "packed.zip")
    with pytest.raises(StorageError, match=r"packed\.zip: cannot read: permission denied"):
        open_reader(tmp_path / "packed.zip")


def test_an_unwritable_folder_is_refused(readable_folder):
    """Root can write anywhere, so the writer changes its user first."""
    script = f"""
import os
from accord import Recorder
size = dict(samples=1, classes=2)
Recorder({readable_folder + "/first"!r}, network=0, **size).close()  # imports everything it needs
if os.geteuid() == 0:
    os.setuid(65534)
else:
    os.chmod({readable_folder!r}, 0o500)
try:
    Recorder({readable_folder + "/record"!r}, network=0, **size)
except OSError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    assert "StorageError" in done.stdout, done.stderr
    assert "cannot write: permission denied" in done.stdout
