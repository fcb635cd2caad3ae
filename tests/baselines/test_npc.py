"""NPC follows its formulas and its seed, and leaves the network unchanged."""

import itertools
import math
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch
from classifier import Classifier, classifier
from torch import nn

from accord.baselines._features import extract_with_logits
from accord.baselines._npc_model import (
    build_autoencoder,
    calibrate,
    calibration_loss,
    prior_concentrations,
    similar_classes,
)
from accord.baselines.npc import Npc, fit_npc, learning_epochs, predict_npc
from accord.errors import ChoiceError, PredictionError, TrainingError
from accord.training._batches import ImageBatches, TableBatches
from accord.training._loop import predict_probabilities
from accord.training._randomness import IsolatedRandomState, derive_seed, draw_epoch

CPU = torch.device("cpu")


def clusters(samples=300, seed=0):
    """Draw samples of three clusters, and their classes."""
    generator = np.random.default_rng(seed)
    classes = np.arange(samples) % 3
    centres = np.array([[0, 4], [4, 0], [-4, -4]])
    rows = centres[classes] + generator.normal(size=(samples, 2))
    return rows.astype(np.float32), classes


def batches(rows):
    zeros, ones = np.zeros(rows.shape[1], np.float32), np.ones(rows.shape[1], np.float32)
    return TableBatches(rows, device=CPU, mean=zeros, spread=ones)


def trained(rows, labels, *, steps=150):
    network = classifier()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        out = network(torch.from_numpy(rows))
        nn.functional.cross_entropy(out, torch.from_numpy(labels)).backward()
        optimizer.step()
    return network


ROWS, CLASSES = clusters()
NETWORK = trained(ROWS, CLASSES)


def test_npc_keeps_the_accuracy_of_a_good_classifier():
    test_rows, test_classes = clusters(seed=1)
    npc = fit_npc(NETWORK, batches(ROWS), seed=0, epochs=60)
    probabilities = npc.predict_probabilities(batches(test_rows))
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert (probabilities.argmax(axis=1) == test_classes).mean() > 0.97


def flagged(samples, seed):
    """Add a third feature to the clusters, small and mostly 0, that is unrelated to the class."""
    rows, classes = clusters(samples, seed)
    flags = 0.2 * (np.random.default_rng(seed + 1).random(samples) < 0.3)
    return np.column_stack([rows, flags]).astype(np.float32), classes


def misled():
    """Return a network that mistakes the flag for the first class."""
    network = nn.Sequential(nn.Linear(3, 3))
    with torch.no_grad():
        network[0].weight.copy_(torch.tensor([[0, 1, 90], [1, 0, 0], [-0.7, -0.7, 0]]))
        network[0].bias.zero_()
    return network


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_npc_corrects_predictions_that_similar_samples_contradict(seed):
    network = misled()
    rows, _ = flagged(1000, seed)
    test_rows, test_classes = flagged(900, seed + 50)
    single = predict_probabilities(network, batches(test_rows)).argmax(axis=1)
    npc = fit_npc(network, batches(rows), seed=seed, epochs=60)
    mended = npc.predict_probabilities(batches(test_rows)).argmax(axis=1)
    assert (single == test_classes).mean() < 0.85
    assert (mended == test_classes).mean() > 0.95


def test_the_network_and_the_random_state_of_torch_are_unchanged():
    network = trained(ROWS, CLASSES, steps=20).train()
    network.norm.eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()
    npc = fit_npc(network, batches(ROWS), seed=0, epochs=2)
    npc.predict_probabilities(batches(ROWS))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert [one.training for one in network.children()] == [True, False, True, True]


def test_a_prediction_follows_from_its_seed_alone():
    def predict(seed):
        npc = fit_npc(NETWORK, batches(ROWS), seed=seed, epochs=2)
        return npc.predict_probabilities(batches(ROWS))

    first = predict(1)
    torch.rand(3)
    np.testing.assert_array_equal(predict(1), first)
    assert not np.array_equal(predict(2), first)


def test_predictions_do_not_depend_on_the_batch():
    npc = fit_npc(NETWORK, batches(ROWS), seed=0, epochs=1)
    whole, parts = (npc.predict_probabilities(batches(ROWS), batch=size) for size in (1000, 7))
    np.testing.assert_allclose(whole, parts, rtol=1e-4, atol=1e-6)


def test_the_prediction_calibrates_the_outputs_of_both_networks():
    coder = build_autoencoder(NETWORK, classes=3, seed=0)
    found = Npc(NETWORK, coder).predict_probabilities(batches(ROWS))
    NETWORK.eval()
    coder.eval()
    with torch.no_grad():
        rows = torch.from_numpy(ROWS)
        expected = calibrate(coder, coder.network(rows), NETWORK(rows))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def slow_fit(network, rows, *, seed):
    """Return the weights after ten epochs of Adam in batches of 128, written out."""
    extracted, logits = extract_with_logits(network, batches(rows), ["head:input"])
    features = extracted["head:input"]
    predicted = nn.functional.one_hot(torch.from_numpy(logits.argmax(axis=1)), 3).float()
    similar = similar_classes(features, logits, seed=derive_seed(seed, 0), batch=128, device=CPU)
    prior = prior_concentrations(similar, classes=3)
    coder = build_autoencoder(network, classes=3, seed=derive_seed(seed, 1)).train()
    optimizer = torch.optim.Adam(coder.parameters(), lr=0.001)
    chance = derive_seed(seed, 2)
    for epoch in range(10):
        with IsolatedRandomState(derive_seed(chance, epoch, 1), CPU).active():
            for part in draw_epoch(len(rows), seed=chance, epoch=epoch).order.split(128):
                logits = coder.network(torch.from_numpy(rows)[part])
                uniform = 1 - torch.rand(len(part), 3)
                loss = calibration_loss(coder, logits, predicted[part], prior[part], uniform)
                gradients = torch.autograd.grad(loss, list(coder.parameters()))
                for parameter, gradient in zip(coder.parameters(), gradients, strict=True):
                    parameter.grad = gradient
                optimizer.step()
    return coder.state_dict()


def test_training_equals_a_written_out_loop():
    found = fit_npc(NETWORK, batches(ROWS), seed=3, epochs=10)._autoencoder.state_dict()
    for name, expected in slow_fit(NETWORK, ROWS, seed=3).items():
        torch.testing.assert_close(found[name], expected)


def test_training_lowers_the_loss():
    def loss_for(epochs):
        npc = fit_npc(NETWORK, batches(ROWS), seed=0, epochs=epochs)
        coder = npc._autoencoder.eval()
        with torch.no_grad():
            logits = coder.network(torch.from_numpy(ROWS))
            label = nn.functional.one_hot(NETWORK.eval()(torch.from_numpy(ROWS)).argmax(dim=1), 3)
            prior = prior_concentrations(torch.from_numpy(CLASSES), classes=3)
            half = torch.full_like(logits, 0.5)
            return calibration_loss(coder, logits, label.float(), prior, half).item()

    assert loss_for(60) < 0.8 * loss_for(1)


def test_a_last_batch_of_one_sample_is_skipped():
    rows = ROWS[:129]
    npc = fit_npc(NETWORK, batches(rows), seed=0, epochs=1)
    assert np.isfinite(npc.predict_probabilities(batches(rows))).all()


def test_every_epoch_takes_all_samples_in_another_order():
    seen = []

    class Watched(TableBatches):
        def take(self, chosen, draws=None):
            seen.append(chosen.tolist())
            return super().take(chosen, draws)

    zeros, ones = np.zeros(2, np.float32), np.ones(2, np.float32)
    fit_npc(NETWORK, Watched(ROWS, device=CPU, mean=zeros, spread=ones), seed=0, epochs=2)
    first, second = seen[1:4], seen[4:]  # the first takes all features
    for epoch in (first, second):
        assert [len(part) for part in epoch] == [128, 128, 44]
        assert sorted(itertools.chain(*epoch)) == list(range(300))
    assert first != second


def test_a_network_that_predicts_one_class_only_is_refused():
    network = classifier()
    with torch.no_grad():
        network.head.weight.zero_()
        network.head.bias.copy_(torch.tensor([0.0, 1.0, 0.0]))
    with pytest.raises(PredictionError, match="predicts class 1 for all 300 training samples"):
        fit_npc(network, batches(ROWS), seed=0)


def test_a_network_of_nan_is_refused():
    network = classifier()
    with torch.no_grad():
        network.head.bias.fill_(torch.nan)
    with pytest.raises(PredictionError, match=r"not finite.*NaN"):
        fit_npc(network, batches(ROWS), seed=0)


class Explodes(Classifier):
    """A classifier that outputs NaN in training mode."""

    def forward(self, rows):
        return super().forward(rows) * (torch.nan if self.training else 1)


def test_a_loss_that_becomes_nan_is_named():
    with pytest.raises(TrainingError, match=r"loss became nan in epoch 0 at learning rate 0\.001"):
        fit_npc(Explodes(), batches(ROWS), seed=0)


@pytest.mark.parametrize(
    ("samples", "epochs"), [(50_000, 10), (12_800, 10), (12_672, 11), (970, 125), (5, 1000)]
)
def test_few_samples_take_more_epochs(samples, epochs):
    assert learning_epochs(samples) == epochs


def test_the_default_number_of_epochs_is_used(monkeypatch):
    monkeypatch.setattr("accord.baselines.npc.STEPS", 12 * math.ceil(len(ROWS) / 128))
    predict = partial(predict_npc, NETWORK, lambda _: batches(ROWS), seed=0)
    np.testing.assert_array_equal(predict(), predict(epochs=12))
    assert not np.array_equal(predict(), predict(epochs=10))


def test_zero_epochs_are_refused():
    with pytest.raises(ChoiceError, match="at least 1 epoch of training; got 0"):
        fit_npc(NETWORK, batches(ROWS), seed=0, epochs=0)


def test_a_network_without_a_linear_layer_is_refused():
    with pytest.raises(ChoiceError, match="no linear layer"):
        fit_npc(nn.Sequential(nn.BatchNorm1d(2)), batches(ROWS), seed=0)


def test_one_call_predicts_a_split():
    splits = {"train": batches(ROWS), "test": batches(clusters(30, seed=1)[0])}
    found = predict_npc(NETWORK, splits.__getitem__, seed=0, epochs=3)
    npc = fit_npc(NETWORK, splits["train"], seed=0, epochs=3)
    np.testing.assert_array_equal(found, npc.predict_probabilities(splits["test"]))
    other = predict_npc(NETWORK, splits.__getitem__, seed=0, epochs=1, split="train")
    assert other.shape == (300, 3)


def test_bfloat16_gives_similar_predictions():
    fine, rough = (
        fit_npc(NETWORK, batches(ROWS), seed=0, epochs=3, bfloat16=low) for low in (False, True)
    )
    exact = fine.predict_probabilities(batches(ROWS))
    for npc, low in ((fine, True), (rough, False)):
        coarse = npc.predict_probabilities(batches(ROWS), bfloat16=low)
        assert not np.array_equal(exact, coarse)
        np.testing.assert_allclose(exact, coarse, atol=0.1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_cuda_graph_learns_the_weights_of_the_cpu():
    """Of 300 images, two full batches run in the graph, and one of 44 without it."""
    pixels = np.random.default_rng(0).integers(0, 255, (300, 1, 8, 8), dtype=np.uint8)
    pixels[::2] //= 4  # dark ones are the other class
    zero, spread = np.zeros(1, np.float32), np.full(1, 255, np.float32)
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)
    )
    tables = []
    for device in (CPU, torch.device("cuda")):
        images = ImageBatches(pixels, device=device, mean=zero, spread=spread)
        npc = fit_npc(deepcopy(network).to(device), images, seed=0, epochs=3)
        tables.append(npc.predict_probabilities(images))
    np.testing.assert_allclose(*tables, atol=0.02)
