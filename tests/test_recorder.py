"""A recorder reports what it was opened with, and whether it is open."""

import pytest

from accord import Recorder
from accord.errors import RecordClosed


def test_a_recorder_has_its_path_and_sample_info(tmp_path):
    with Recorder(tmp_path / "mine", network=3, samples=2, classes=2) as recorder:
        assert (recorder.path, recorder.network) == (str(tmp_path / "mine"), 3)
        assert (recorder.sample_info.samples, recorder.keeps_probabilities) == (2, False)
        recorder.check_open()
    with pytest.raises(RecordClosed, match="recorder of network 3 is closed"):
        recorder.check_open()
