"""A full disk loses no recorded row."""

import contextlib
import subprocess

import numpy as np
import pytest
from recorded import labels_of

from accord._recorder import Recorder
from accord.errors import StorageError
from accord.store import check_record, open_reader, pack_record

SAMPLES = 50_000


@pytest.fixture
def small_disk(tmp_path):
    """A file system with one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(path):
    with Recorder(path, network=0, samples=SAMPLES, classes=200) as recorder:
        for epoch in range(recorder.epochs, 1000):
            recorder.record(labels_of(0, epoch, samples=SAMPLES, classes=200))


def test_a_full_disk_loses_no_row_and_recording_resumes(small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(300_000))
    with pytest.raises(
        StorageError, match=r"cannot write: the disk is full\. Rows recorded before"
    ):
        fill(small_disk / "record")
    before = open_reader(small_disk / "record").epochs
    assert before > 3
    assert check_record(small_disk / "record").sound
    ballast.unlink()
    with contextlib.suppress(StorageError):
        fill(small_disk / "record")
    rows = open_reader(small_disk / "record")
    assert rows.epochs > before
    for epoch in range(rows.epochs):
        np.testing.assert_array_equal(
            rows.read_labels([0], [epoch], slice(None))[0, 0],
            labels_of(0, epoch, samples=SAMPLES, classes=200),
        )


def test_a_recorder_resumes_after_a_full_disk_in_the_same_process(small_disk):
    ballast = small_disk / "ballast"
    with Recorder(small_disk / "record", network=0, samples=SAMPLES, classes=200) as recorder:
        recorder.record(labels_of(0, 0, samples=SAMPLES, classes=200))
        with contextlib.suppress(OSError):
            ballast.write_bytes(bytes(2_000_000))
        with pytest.raises(StorageError, match="the disk is full"):
            recorder.record(labels_of(0, 1, samples=SAMPLES, classes=200))
        ballast.unlink()
        recorder.record(labels_of(0, 1, samples=SAMPLES, classes=200))
    assert open_reader(small_disk / "record").epochs == 2


def test_packing_onto_a_full_disk_leaves_nothing_behind(small_disk, tmp_path):
    rows = np.random.default_rng(0).integers(0, 200, (30, SAMPLES))
    with Recorder(tmp_path / "record", network=0, samples=SAMPLES, classes=200) as recorder:
        for labels in rows:
            recorder.record(labels)
    with pytest.raises(StorageError, match="cannot write: the disk is full"):
        pack_record(tmp_path / "record", small_disk / "packed")
    assert list(small_disk.iterdir()) == []
