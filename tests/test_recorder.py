"""A recorder reports what it was opened with, and whether it is open."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import accord
from accord import Recorder
from accord._recorder import record_missing
from accord.errors import PredictionError, RecordBusy, RecordClosed, RecordMismatch


def test_a_recorder_has_its_path_and_sample_info(tmp_path):
    with Recorder(tmp_path / "mine", network=3, samples=2, classes=2) as recorder:
        assert (recorder.path, recorder.network) == (str(tmp_path / "mine"), 3)
        assert (recorder.sample_info.samples, recorder.keeps_probabilities) == (2, False)
        recorder.check_open()
    with pytest.raises(RecordClosed, match="recorder of network 3 is closed"):
        recorder.check_open()


def test_only_recorders_that_lack_an_epoch_record_it(tmp_path):
    calls = []

    def predict():
        calls.append(1)
        return [[0, 1], [1, 1]]

    size = {"samples": 2, "classes": 2}
    with (
        Recorder(tmp_path, network=0, **size) as first,
        Recorder(tmp_path, network=1, **size) as second,
    ):
        first.record([0, 0])
        record_missing([first, second], predict, epoch=0, progress=0.5, loss=0.1)
        record_missing([first, second], predict, epoch=0)
        assert (first.epochs, second.epochs, len(calls)) == (1, 1, 1)
    record = accord.open(tmp_path)
    assert record.labels[:, 0].tolist() == [[0, 0], [1, 1]]
    assert record.networks_info[1].metrics == ({"loss": 0.1},)


def test_progress_is_that_of_the_last_epoch(tmp_path):
    with Recorder(tmp_path, network=0, samples=2, classes=2) as recorder:
        assert recorder.progress == 0
        recorder.record([0, 1], progress=0.25)
        assert recorder.progress == 0.25
    with Recorder(tmp_path, network=0, samples=2, classes=2) as recorder:
        assert recorder.progress == 0.25


def rerun(path, **options):
    with Recorder(path, network=0, samples=2, classes=2, **options) as recorder:
        for _ in range(recorder.epochs, 2):
            recorder.record([0, 1])


def test_a_rerun_that_records_nothing_is_logged_with_the_cure(tmp_path, caplog):
    rerun(tmp_path)
    assert not caplog.messages
    rerun(tmp_path)
    (message,) = caplog.messages
    assert f"{tmp_path}: network 0: nothing was recorded, as it already holds 2 epochs" in message
    assert "overwrite=True" in message
    rerun(tmp_path, overwrite=True)
    assert len(caplog.messages) == 1


def test_a_recorder_without_an_epoch_is_logged_once_and_not_after_an_error(tmp_path, caplog):
    with pytest.raises(KeyError), Recorder(tmp_path, network=0, samples=2, classes=2):
        raise KeyError
    Recorder(tmp_path, network=0, samples=2, classes=2).close(quiet=True)
    assert not caplog.messages
    recorder = Recorder(tmp_path, network=0, samples=2, classes=2)
    recorder.close()
    recorder.close()
    assert caplog.messages == [f"{tmp_path}: network 0: no epoch was recorded"]


def test_a_dropped_recorder_is_reported_and_releases_the_network(tmp_path, caplog):
    Recorder(tmp_path, network=0, samples=2, classes=2)
    gc.collect()
    assert "network 0: no epoch was recorded" in caplog.text
    Recorder(tmp_path, network=0, samples=2, classes=2).close(quiet=True)


def test_a_recorder_that_is_still_open_at_the_end_of_the_process_is_reported(tmp_path):
    script = (
        f"import accord; r = accord.Recorder({str(tmp_path)!r}, network=0, samples=2, classes=2)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "network 0: no epoch was recorded" in done.stderr


@pytest.mark.parametrize("kind", [list, np.array, lambda names: np.array(names, object)])
def test_names_of_classes_are_labels(tmp_path, kind):
    names = {
        "class_names": ["owl", "cat"],
        "truth": kind(["cat", "owl"]),
        "given": kind(["owl"] * 2),
    }
    with Recorder(tmp_path, network=0, samples=2, classes=2, **names) as recorder:
        recorder.record(kind(["owl", "cat"]))
        recorder.record([1, 1])
        with pytest.raises(PredictionError, match="among the class_names owl, cat; got 'emu'"):
            recorder.record(kind(["owl", "emu"]))
    record = accord.open(tmp_path)
    assert np.asarray(record.labels)[0].tolist() == [[0, 1], [1, 1]]
    assert (record.truth.tolist(), record.given.tolist()) == ([1, 0], [0, 0])
    with Recorder(tmp_path / "unnamed", network=0, samples=2, classes=2) as recorder:
        with pytest.raises(PredictionError, match=r"list them: class_names=\[…\]"):
            recorder.record(kind(["owl", "cat"]))
        recorder.record([0, 1])


def test_changed_metadata_is_refused_with_the_difference(tmp_path):
    rerun(tmp_path, metadata={"lr": 0.1, "seed": 3})
    with pytest.raises(
        RecordMismatch,
        match=r"network 0 was recorded with metadata \{'lr': 0\.1\}; this recorder has "
        r"\{'lr': 0\.2\}.*overwrite=True",
    ):
        rerun(tmp_path, metadata={"lr": 0.2, "seed": 3})
    rerun(tmp_path, metadata={"lr": 0.2, "seed": 3}, overwrite=True)
    assert accord.open(tmp_path).networks_info[0].metadata["lr"] == 0.2


def test_other_labels_are_refused_with_the_first_difference(tmp_path):
    rerun(tmp_path, truth=[0, 1], ids=["a", "b"])
    with pytest.raises(RecordMismatch, match=r"in 1 of 2; the first is number 1: 1 in .*, 0 here"):
        rerun(tmp_path, truth=[0, 0])
    with pytest.raises(RecordMismatch, match=r"ids differ .* number 0: a in .*, x here"):
        rerun(tmp_path, ids=["x", "b"])


@pytest.mark.parametrize("place", ["folder", "memory://two-recorders"])
def test_a_second_recorder_in_the_same_process_is_refused(tmp_path, place):
    path = tmp_path if place == "folder" else place
    size = {"samples": 2, "classes": 2}
    first = Recorder(path, network=0, **size)
    first.record([0, 1])
    for overwrite in (False, True):
        with pytest.raises(RecordBusy, match=r"network.*another recorder.*recorder\.close\(\)"):
            Recorder(path, network=0, **size, overwrite=overwrite)
    Recorder(path, network=1, **size).close()
    first.close()
    with Recorder(path, network=0, **size) as second:
        assert second.epochs == 1
    del first, second
    lost = Recorder(path, network=0, **size)
    lost = Recorder(path, network=1, **size)
    assert Recorder(path, network=0, **size).epochs == 1
    lost.close()
