"""A recorder reports what it was opened with, and whether it is open."""

import pytest

import accord
from accord import Recorder
from accord._recorder import record_missing
from accord.errors import RecordClosed


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
