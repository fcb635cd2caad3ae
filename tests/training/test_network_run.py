"""One network is recorded with its checkpoints, members and averages."""

import re

import numpy as np
import pytest
import torch
from small_run import SMALL_CNN, changed, labels_of, train_text

import accord
from accord.training import (
    _network_run,
)
from accord.training._checkpoints import checkpoints_in, load_checkpoint, load_state

AVERAGES = ("checkpoints = 2", 'checkpoints = 2\naverages = ["ema", "swa"]')


def test_the_last_checkpoint_has_the_weights_of_the_state(whole):
    weights = load_checkpoint(checkpoints_in(whole / "checkpoints" / "network-000")[3])
    state = load_state(whole / "checkpoints" / "network-000")
    assert weights.keys() == state.weights.keys()
    assert all(torch.equal(weights[name], state.weights[name]) for name in weights)


def test_checkpoints_are_written_at_the_chosen_epochs(tmp_path):
    text = changed(("epochs = 4", "epochs = 7"), ("checkpoints = 2", "checkpoints = 3\nevery = 3"))
    train_text(tmp_path / "run", text, networks=[0])
    assert list(checkpoints_in(tmp_path / "run/checkpoints/network-000")) == [2, 5, 6]


def test_a_network_with_predictions_of_nan_fails_and_the_others_continue(tmp_path):
    text = changed(
        (SMALL_CNN, 'network = "mlp"\noptions = { widths = [8] }'),
        ("networks = 2", "networks = [{ lr = 1e30 }, {}]"),
        ("epochs = 4", "epochs = 2"),
        ("batch = 64", "batch = 200"),  # one step: its loss is that of the first weights
    )
    result = train_text(tmp_path / "run", text)
    assert list(result.failed) == [0]
    assert re.fullmatch(
        r"the predictions of epoch 0 \(progress 1\), after learning rate 1e\+30, cannot be "
        r"recorded: probabilities must be finite; .* a smaller rate, .* may help\.",
        result.failed[0],
    )
    assert accord.open(tmp_path / "run/test", networks=[1]).epochs == 2
    assert checkpoints_in(tmp_path / "run/checkpoints/network-000") == {}


def test_each_member_of_a_batch_ensemble_is_recorded(tmp_path):
    text = changed(
        ("networks = 2", "networks = 1\nbatch_ensemble = 3"), ("epochs = 4", "epochs = 2")
    )
    train_text(tmp_path / "run", text)
    labels = labels_of(tmp_path / "run")
    assert labels.shape == (3, 2, 719)
    assert (labels[0] != labels[1]).any()


def test_a_random_predictor_changes_in_every_epoch(tmp_path):
    text = changed(
        ("networks = 2", 'networks = [{}, { network = "random", options = {} }]'),
        ("epochs = 4", "epochs = 3"),
    )
    train_text(tmp_path / "run", text)
    guesses = labels_of(tmp_path / "run")[1]
    truth = accord.open(tmp_path / "run/test").truth
    assert abs((guesses == truth).mean() - 0.1) < 0.03
    assert (guesses[0] != guesses[1]).mean() > 0.8


def test_averaged_networks_have_records_of_their_own(tmp_path, whole):
    assert train_text(tmp_path / "run", changed(AVERAGES)).failed == {}
    assert np.array_equal(labels_of(tmp_path / "run"), labels_of(whole))
    moving = accord.open(tmp_path / "run/test-ema")
    mean = accord.open(tmp_path / "run/test-swa")
    assert (moving.epochs, mean.epochs) == (4, 1)
    assert not np.array_equal(moving.labels[:], labels_of(whole))
    folders = [out / "checkpoints/network-000" for out in (tmp_path / "run", whole)]
    kept, plain = (load_checkpoint(checkpoints_in(folder)[3]) for folder in folders)
    assert kept.keys() == plain.keys()


def test_averages_resume_after_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setattr(_network_run, "STATE_SECONDS", 0.0)
    text = changed(AVERAGES, ("networks = 2", "networks = 1"))
    train_text(tmp_path / "whole", text)

    def stop(event):
        if event.epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_text(tmp_path / "cut", text, progress=stop)
    train_text(tmp_path / "cut", text)
    for record in ("test", "test-ema", "test-swa"):
        assert np.array_equal(
            labels_of(tmp_path / "cut", record), labels_of(tmp_path / "whole", record)
        )
