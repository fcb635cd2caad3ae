"""The demo records every network's every epoch, and resumes to the same bits."""

import subprocess
import sys

import numpy as np
import pytest
import torch
import zarr
from killing import kill_crews

from accord.data.readers.digits import load_digits
from accord.errors import RecordMismatch, TrainingError
from accord.experiments import demo
from accord.experiments.demo import run_demo
from accord.training import _workers as crew
from accord.training._settings import torch_threads

SMALL = {"networks": 2, "epochs": 2}


class Progress:
    """Remembers what it is told; interrupts at one (network, progress) if asked to."""

    def __init__(self, *, interrupt_at=None):
        self.seen = []
        self.losses = []
        self.interrupt_at = interrupt_at

    def __call__(self, network, networks, progress, epochs, loss):
        self.seen.append((network, progress, networks, epochs))
        self.losses.append(loss)
        if (network, progress) == self.interrupt_at:
            raise KeyboardInterrupt


def read_arrays(out):
    """Everything the two networks said: labels and probabilities, network by network."""
    record = zarr.open_group(out / "record", mode="r")
    return [
        record[f"network-{network:03d}/{array}"][:]
        for network in range(2)
        for array in ("labels", "probabilities")
    ]


def assert_same_record(one, other):
    for ours, theirs in zip(read_arrays(one), read_arrays(other), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    progress = Progress()
    return out, run_demo(out, progress=progress, **SMALL), progress


def test_demo_records_all_it_promises(whole):
    out, result, progress = whole
    labels, probabilities, *_ = read_arrays(out)
    assert result.record == out / "record"
    assert labels.shape == (result.epochs, result.samples) == (2, 719)
    assert probabilities.shape == (2, 719, result.classes)
    assert (result.networks, result.training_samples) == (2, 1078)
    assert progress.seen == [(0, 1.0, 2, 2), (0, 2.0, 2, 2), (1, 1.0, 2, 2), (1, 2.0, 2, 2)]
    assert all(np.isfinite(progress.losses))


def test_record_holds_clean_test_labels_and_class_names(whole):
    record = zarr.open_group(whole[1].record, mode="r")
    sizes = np.bincount(load_digits().labels)
    assert np.bincount(record["truth"][:]).tolist() == [round(0.4 * size) for size in sizes]
    assert list(record["class_names"][:]) == [str(digit) for digit in range(10)]


def test_predictions_are_of_the_test_images_in_the_order_of_the_truth(whole):
    truth = zarr.open_group(whole[1].record, mode="r")["truth"][:]
    for labels in read_arrays(whole[0])[::2]:
        assert (labels[-1] == truth).mean() > 0.2  # after two epochs; by chance 0.1


@pytest.fixture
def two_cores(monkeypatch):
    """Let a second process begin at once."""
    monkeypatch.setattr(crew, "WORTH", 0.0)
    with torch_threads(2):
        yield


def test_networks_trained_side_by_side_are_the_same(whole, tmp_path, two_cores):
    progress = Progress()
    run_demo(tmp_path, progress=progress, **SMALL)
    assert_same_record(tmp_path, whole[0])
    assert sorted(progress.seen) == whole[2].seen
    assert sorted(progress.losses) == sorted(whole[2].losses)


def test_a_process_that_dies_is_named(tmp_path, two_cores, monkeypatch):
    kill_crews(monkeypatch)
    with pytest.raises(TrainingError, match="network 1 was stopped: its process was killed by"):
        run_demo(tmp_path, progress=Progress(), **SMALL)


def test_forty_per_cent_of_the_training_labels_are_wrong():
    task = demo._make_task(0)
    clean = demo.split_digits(load_digits(), seed=demo._draws(0, 2)[0])[0].labels
    assert (task.given != clean).sum() == int(0.4 * 1078)


def test_networks_differ(whole):
    first, _, second, _ = read_arrays(whole[0])
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("moment", [(0, 1), (0, 2), (1, 1)])
def test_interrupted_demo_resumes_to_the_same_bits(whole, tmp_path, moment):
    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path, progress=Progress(interrupt_at=moment), **SMALL)
    run_demo(tmp_path, progress=Progress(), **SMALL)
    assert_same_record(whole[0], tmp_path)


def test_finished_networks_are_not_trained_again(whole, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path, progress=Progress(interrupt_at=(1, 1)), **SMALL)
    again, third = Progress(), Progress()
    run_demo(tmp_path, progress=again, **SMALL)
    run_demo(tmp_path, progress=third, **SMALL)
    assert [seen[:2] for seen in again.seen] == [(1, 1), (1, 2)]
    assert third.seen == []


def test_first_network_is_the_same_however_many_follow(whole, tmp_path):
    run_demo(tmp_path, progress=Progress(), networks=1, epochs=2)
    alone = zarr.open_group(tmp_path / "record", mode="r")["network-000/probabilities"][:]
    np.testing.assert_array_equal(alone, read_arrays(whole[0])[1])


@pytest.mark.parametrize("other", [{"seed": 1}, {"epochs": 3}])
def test_folder_of_another_demo_is_refused(whole, other):
    with pytest.raises(RecordMismatch, match=r"another seed or number of epochs.*another folder"):
        run_demo(whole[0], progress=Progress(), **{**SMALL, **other})


@pytest.mark.parametrize("interrupt_at", [None, (0, 1)])
def test_number_of_threads_comes_back(tmp_path, interrupt_at):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        run_demo(tmp_path, progress=Progress(interrupt_at=interrupt_at), networks=1, epochs=1)
    except KeyboardInterrupt:
        pass
    finally:
        found = torch.get_num_threads()
        torch.set_num_threads(before)
    assert found == 3


def test_without_torch_the_extra_is_named():
    program = "import sys; sys.modules['torch'] = None; import accord.experiments.demo"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ExtraMissing" in run.stderr
    assert "pip install 'accord[train]'" in run.stderr


def test_packages_load_no_torch():
    program = (
        "import sys, accord.data, accord.data.readers.digits, accord.data.noise, accord.training, "
        "accord.experiments; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
