"""The checkpoints of a run are found, and what is left out is noted."""

import shutil

import numpy as np
import pytest

from accord.errors import SourceError
from accord.inference import infer
from accord.inference._checkpoints_of_run import checkpoints_of_run
from accord.inference._early_exit import ExactExit
from accord.inference._infer import list_checkpoints
from accord.rules import find_rule
from accord.training._input_schema_file import SCHEMA_FILE, load_input_schema


def test_networks_epochs_and_their_rows_in_the_record_are_found(whole):
    run = checkpoints_of_run(whole)
    assert (run.numbers, run.epochs, run.voters) == ((0, 1, 2), (0, 2, 3, 5), 12)
    assert run.record_epochs() == [0, 2, 3, 5]
    assert run.notes == ("checkpoints were kept at 4 of 6 recorded epochs: after 1, 3, 4, 6",)
    assert run.reader().epochs == 4
    assert run.schema == load_input_schema(whole)


def test_notes_count_epochs_as_the_record_does(train_small, tmp_path):
    run = train_small(
        tmp_path / "run",
        ("networks = 3", "networks = 2"),
        ("epochs = 6", "epochs = 3"),
        ("per_class = 80", "per_class = 20"),
        ("checkpoints = 4", 'checkpoints = "all"\nevery = 0.5'),
    )
    (run / "checkpoints/network-001/epoch-0001.safetensors").unlink()
    assert checkpoints_of_run(run).notes == (
        "left out epochs without a checkpoint of every network: after 4",
        "checkpoints were kept at 2 of 6 recorded epochs: after 2, 6",
    )


def test_the_schema_of_an_old_run_is_measured_again(copied):
    kept = load_input_schema(copied)
    (copied / SCHEMA_FILE).unlink()
    found = checkpoints_of_run(copied).schema
    assert found == kept
    assert not (copied / SCHEMA_FILE).exists()


def test_an_old_run_without_its_data_is_refused(copied):
    (copied / SCHEMA_FILE).unlink()
    spec = (copied / "spec.toml").read_text()
    (copied / "spec.toml").write_text(spec.replace('"digits"', '"cifar10"\npath = "gone"'))
    with pytest.raises(SourceError, match=r"has no samples.json, like runs .*gone: no such"):
        checkpoints_of_run(copied)


def test_epochs_that_a_network_lacks_are_left_out(copied):
    (copied / "checkpoints/network-001/epoch-0002.safetensors").unlink()
    run = checkpoints_of_run(copied)
    assert run.epochs == (0, 3, 5)
    assert run.notes[0] == "left out epochs without a checkpoint of every network: after 3"
    shutil.rmtree(copied / "checkpoints/network-002")
    run = checkpoints_of_run(copied)
    assert run.numbers == (0, 1)
    assert run.notes[0] == ("network 2 is left out: it has no checkpoint, as it is not trained yet")
    assert run.reader().numbers == (0, 1)


def test_networks_without_a_common_epoch_are_refused(copied):
    for epoch in (2, 3, 5):
        (copied / f"checkpoints/network-001/epoch-{epoch:04d}.safetensors").unlink()
    (copied / "checkpoints/network-000/epoch-0000.safetensors").unlink()
    with pytest.raises(
        SourceError,
        match=r"no epoch has a checkpoint of every network.*accord train .*spec.toml --out",
    ):
        checkpoints_of_run(copied)


def test_long_lists_of_epochs_are_shortened(train_small, tmp_path):
    run = train_small(
        tmp_path / "run",
        ("networks = 3", "networks = 1"),
        ("epochs = 6", "epochs = 20"),
        ("per_class = 80", "per_class = 4"),
        ("checkpoints = 4", "checkpoints = 10"),
    )
    (note,) = checkpoints_of_run(run).notes
    assert note.endswith("10 of 20 recorded epochs: after 1, 3, 5, 7, 9, 12, 14, 16, … 20")


def test_other_folders_are_refused(whole, tmp_path):
    with pytest.raises(SourceError, match="nowhere: no such folder"):
        checkpoints_of_run(tmp_path / "nowhere")
    with pytest.raises(SourceError, match=r"holds no spec\.toml, so it is not a run"):
        checkpoints_of_run(tmp_path)
    with pytest.raises(SourceError, match="test: is a record of predictions, not a run"):
        checkpoints_of_run(whole / "test")


def test_a_run_without_checkpoints_names_the_setting(train_small, tmp_path):
    short = (("epochs = 6", "epochs = 1"), ("networks = 3", "networks = 1"))
    run = train_small(tmp_path / "none", *short, ("checkpoints = 4\n", ""))
    with pytest.raises(SourceError, match=r"record\.checkpoints at 0. Set `checkpoints = 20`"):
        checkpoints_of_run(run)
    random = (("small-cnn", "random"), ("options = { width = 8 }\n", ""))
    run = train_small(tmp_path / "random", *short, *random)
    with pytest.raises(SourceError, match="its networks predict at random"):
        checkpoints_of_run(run)


def test_the_error_for_an_unfinished_run_names_the_command_that_continues_it(copied):
    shutil.rmtree(copied / "checkpoints")
    with pytest.raises(SourceError, match=r"holds no checkpoint yet\. To continue .*accord train"):
        checkpoints_of_run(copied)


def test_an_incomplete_record_is_not_used(copied):
    shutil.rmtree(copied / "test/network-001")
    assert checkpoints_of_run(copied).reader() is None
    assert checkpoints_of_run(copied).record_epochs() == [0, 2, 3, 5]


def test_without_a_record_the_last_epochs_come_first(copied, recorded, digits):
    shutil.rmtree(copied / "test")
    run = checkpoints_of_run(copied)
    assert run.reader() is None
    order = list_checkpoints(run, find_rule("max-agreement"), ExactExit(), seed=0)
    first = [(checkpoint.network.number, checkpoint.epoch) for checkpoint in order[:4]]
    assert first == [(0, 5), (1, 5), (2, 5), (0, 3)]
    found = infer(copied, digits.inputs, exit="exact")
    np.testing.assert_array_equal(found.labels, recorded.predict().labels)
