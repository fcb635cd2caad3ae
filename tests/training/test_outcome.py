"""What is told of a run is what its record holds."""

import pytest

from accord import Recorder
from accord.training import Run, RunResult, parse_spec
from accord.training._train import finished_networks, result_json

SPEC = parse_spec("""
name = "small"
[data]
kind = "digits"
[train]
networks = 3
batch_ensemble = 2
epochs = 3
""")


@pytest.fixture
def out(tmp_path):
    """A run that recorded two epochs of networks 0 to 3, and nothing of 4 and 5."""
    for network in range(4):
        with Recorder(tmp_path / "test", network=network, samples=2, classes=10) as recorder:
            recorder.record([0, 1])
            recorder.record([0, 1])
    return tmp_path


def test_members_are_networks_and_what_is_not_recorded_is_0(out, tmp_path):
    assert Run(out, SPEC).recorded_epochs() == {0: 2, 1: 2, 2: 2, 3: 2, 4: 0, 5: 0}
    assert set(Run(tmp_path / "nowhere", SPEC).recorded_epochs().values()) == {0}


def test_a_record_that_was_only_begun_holds_nothing(tmp_path):
    (tmp_path / "test").mkdir()
    assert set(Run(tmp_path, SPEC).recorded_epochs().values()) == {0}


def test_networks_that_recorded_some_epochs_and_were_stopped_are_not_trained(out):
    assert finished_networks(SPEC, RunResult(out, {})) == [0, 1, 2, 3]
    assert finished_networks(SPEC, RunResult(out, {0: "the loss became nan"})) == [2, 3]


def test_the_json_has_text_for_numbers_as_keys(out):
    found = result_json(SPEC, RunResult(out, {4: "bang"}, ("slow",)), seconds=1.5)
    assert (found["networks"], found["epochs"]["3"], found["seconds"]) == (6, 2, 1.5)
    assert (found["failed"], found["notes"]) == ({"4": "bang"}, ["slow"])
    assert found["records"] == {"test": str(out / "test")}
