"""What of a run can be asked is told, and what cannot."""

import shutil

import numpy as np
import pytest

from accord.errors import SourceError
from accord.inference._checkpoints_of_run import open_run
from accord.training._input_schema import FILE, load_input_schema


@pytest.fixture
def copied(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "copy")


def test_a_run_knows_its_networks_epochs_and_where_they_were_recorded(whole):
    run = open_run(whole)
    assert (run.networks, run.epochs, run.voters) == ((0, 1, 2), (0, 2, 3, 5), 12)
    assert (run.positions, run.recorded) == ([0, 2, 3, 5], 6)
    assert run.notes == ("checkpoints were kept at 4 of 6 recorded epochs: 0, 2, 3, 5",)
    assert run.rows().epochs == 4
    assert run.last_epoch().epochs == (5,)
    assert run.checkpoint(run.members[1], 3).name == "epoch-0003.safetensors"
    assert run.traits == load_input_schema(whole)


def test_notes_count_epochs_as_the_record_does(train_small, tmp_path):
    run = train_small(
        tmp_path / "run",
        ("networks = 3", "networks = 2"),
        ("epochs = 6", "epochs = 3"),
        ("per_class = 80", "per_class = 20"),
        ("checkpoints = 4", 'checkpoints = "all"\nevery = 0.5'),
    )
    (run / "checkpoints/network-001/epoch-0001.safetensors").unlink()
    assert open_run(run).notes == (
        "left out epochs that not all networks have: 3",
        "checkpoints were kept at 2 of 6 recorded epochs: 1, 5",
    )


def test_an_older_run_is_measured_again(copied):
    kept = load_input_schema(copied)
    (copied / FILE).unlink()
    found = open_run(copied).traits
    assert found == kept
    assert not (copied / FILE).exists()


def test_an_older_run_without_its_data_says_so(copied):
    (copied / FILE).unlink()
    spec = (copied / "spec.toml").read_text()
    (copied / "spec.toml").write_text(spec.replace('"digits"', '"cifar10"\npath = "gone"'))
    with pytest.raises(SourceError, match=r"has no samples.json, as older runs, .*gone: no such"):
        open_run(copied)


def test_epochs_that_a_network_lacks_are_left_out_and_told(copied):
    (copied / "checkpoints/network-001/epoch-0002.safetensors").unlink()
    run = open_run(copied)
    assert run.epochs == (0, 3, 5)
    assert run.notes[0] == "left out epochs that not all networks have: 2"
    shutil.rmtree(copied / "checkpoints/network-002")
    run = open_run(copied)
    assert run.networks == (0, 1)
    assert run.notes[0] == (
        "network 2 has no checkpoint and is left out: it was stopped, or not trained yet"
    )
    assert run.rows().numbers == (0, 1)


def test_networks_without_a_common_epoch_cannot_be_asked(copied):
    for epoch in (2, 3, 5):
        (copied / f"checkpoints/network-001/epoch-{epoch:04d}.safetensors").unlink()
    (copied / "checkpoints/network-000/epoch-0000.safetensors").unlink()
    with pytest.raises(SourceError, match=r"no epoch in common .*accord train .*spec.toml --out"):
        open_run(copied)


def test_long_lists_of_epochs_are_cut(train_small, tmp_path):
    run = train_small(
        tmp_path / "run",
        ("networks = 3", "networks = 1"),
        ("epochs = 6", "epochs = 20"),
        ("per_class = 80", "per_class = 4"),
        ("checkpoints = 4", "checkpoints = 10"),
    )
    (note,) = open_run(run).notes
    assert note.endswith("10 of 20 recorded epochs: 0, 2, 4, 6, 8, 11, 13, 15, … 19")


def test_what_is_no_run_is_told(whole, tmp_path):
    with pytest.raises(SourceError, match="nowhere: no such folder"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(SourceError, match=r"holds no spec\.toml, so it is no run"):
        open_run(tmp_path)
    with pytest.raises(SourceError, match="test: is a record of predictions, not a run"):
        open_run(whole / "test")


def test_a_run_without_checkpoints_names_the_setting(train_small, tmp_path):
    short = (("epochs = 6", "epochs = 1"), ("networks = 3", "networks = 1"))
    run = train_small(tmp_path / "none", *short, ("checkpoints = 4\n", ""))
    with pytest.raises(SourceError, match=r"record\.checkpoints at 0. Write `checkpoints = 20`"):
        open_run(run)
    guess = (("small-cnn", "random"), ("options = { width = 8 }\n", ""))
    run = train_small(tmp_path / "guess", *short, *guess)
    with pytest.raises(SourceError, match="its networks only guess"):
        open_run(run)


def test_a_run_that_has_not_got_so_far_is_told_to_go_on(copied):
    shutil.rmtree(copied / "checkpoints")
    with pytest.raises(SourceError, match=r"holds no checkpoint yet\. To go on .*accord train"):
        open_run(copied)


def test_a_record_that_is_cut_off_is_not_needed(copied):
    shutil.rmtree(copied / "test/network-001")
    assert open_run(copied).rows() is None
    assert np.array(open_run(copied).positions).tolist() == [0, 2, 3, 5]
