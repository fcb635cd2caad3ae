"""NPC follows its formulas and its seed, and leaves the network unchanged."""

import itertools
import math
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.neighbors import KNeighborsClassifier
from torch import nn
from torch.distributions import Gamma, kl_divergence

from accord.baselines._features import extract_with_logits
from accord.baselines._npc_model import (
    Autoencoder,
    build_autoencoder,
    calibrate,
    calibration_loss,
    concentrations_of,
    divergence,
    draw_latent,
    most_confident,
    nearest_classes,
    prior_concentrations,
    similar_classes,
)
from accord.baselines.npc import Npc, fit_npc, learning_epochs, predict_npc
from accord.errors import ChoiceError, PredictionError, TrainingError
from accord.training._batches import ImageBatches, TableBatches
from accord.training._loop import predict_probabilities
from accord.training._randomness import IsolatedRandomState, derive_seed, draw_epoch

CPU = torch.device("cpu")
seeds = st.integers(0, 2**32)


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).float()


# Concentrations, draws and divergence


@settings(max_examples=30)
@given(seed=seeds, classes=st.integers(2, 6))
def test_divergence_is_that_of_gamma_variables_of_rate_one(seed, classes):
    inferred, prior = (1.1 + numbers(5, classes, seed=seed + one).abs() for one in (0, 1))
    rate = torch.ones(classes)
    expected = kl_divergence(Gamma(inferred, rate), Gamma(prior, rate)).sum(dim=1)
    torch.testing.assert_close(divergence(inferred, prior), expected, rtol=1e-4, atol=1e-5)


def test_divergence_equals_the_formula_term_by_term():
    inferred, prior = (1.1 + numbers(3, 4, seed=seed).double().abs() for seed in (0, 1))
    expected = [
        sum(
            special.gammaln(p) - special.gammaln(q) + (q - p) * special.digamma(q)
            for q, p in zip(rows_q.tolist(), rows_p.tolist(), strict=True)
        )
        for rows_q, rows_p in zip(inferred, prior, strict=True)
    ]
    np.testing.assert_allclose(divergence(inferred, prior).numpy(), expected)


def test_divergence_is_the_mean_difference_of_log_densities():
    """Of a Gamma variable, by simulation."""
    draws = stats.gamma(3.0).rvs(200_000, random_state=0)
    gap = stats.gamma(3.0).logpdf(draws) - stats.gamma(1.5).logpdf(draws)
    found = divergence(torch.tensor([[3.0]]), torch.tensor([[1.5]])).item()
    assert found == pytest.approx(gap.mean(), abs=0.01)


def test_concentrations_are_softplus_plus_one_and_a_share():
    scores = numbers(3, 4)
    expected = [[math.log1p(math.exp(one)) + 1 + 1 / 4 for one in row] for row in scores.tolist()]
    np.testing.assert_allclose(concentrations_of(scores).numpy(), expected, rtol=1e-6)


def test_the_prior_puts_five_on_its_class():
    found = prior_concentrations(torch.tensor([2, 0]), classes=4)
    assert found.tolist() == [[1.25, 1.25, 6.25, 1.25], [6.25, 1.25, 1.25, 1.25]]


def test_draws_follow_the_formula():
    concentrations, uniform = 1.1 + numbers(4, 3).abs(), torch.linspace(0.01, 1, 12).view(4, 3)
    expected = [
        [math.exp((math.log(u * a) + math.lgamma(a)) / a) for u, a in zip(us, ones, strict=True)]
        for us, ones in zip(uniform.tolist(), concentrations.tolist(), strict=True)
    ]
    np.testing.assert_allclose(draw_latent(concentrations, uniform), expected, rtol=1e-5)


def test_the_smallest_random_number_still_has_a_gradient():
    concentrations = torch.full((1, 3), 1.5, requires_grad=True)
    smallest = torch.full((1, 3), 2.0**-24)
    draw_latent(concentrations, smallest).sum().backward()
    assert concentrations.grad.isfinite().all()


# Neighbours


def slow_classes(known, labels, queries, *, classes, neighbours=10):
    found = []
    for row in queries.double().numpy():
        distances = [np.sqrt(np.square(row - other).sum()) for other in known.double().numpy()]
        votes = np.zeros(classes)
        nearest = np.argsort(distances, kind="stable")[:neighbours]
        at_zero = [one for one in nearest if distances[one] == 0]
        for one in at_zero or nearest:
            votes[labels[one]] += 1 if at_zero else 1 / distances[one]
        found.append(votes.argmax())
    return found


@settings(max_examples=40)
@given(
    seed=seeds, known=st.integers(1, 30), classes=st.integers(2, 4), neighbours=st.integers(1, 12)
)
def test_neighbours_equal_the_definition(seed, known, classes, neighbours):
    points = numbers(known, 3, seed=seed)
    labels = torch.from_numpy(np.random.default_rng(seed).integers(0, classes, known))
    queries = torch.cat([numbers(20, 3, seed=seed + 1), points[:5]])  # some are known themselves
    found = nearest_classes(points, labels, queries, classes=classes, neighbours=neighbours)
    expected = slow_classes(points, labels, queries, classes=classes, neighbours=neighbours)
    assert found.tolist() == expected


def test_neighbours_equal_those_of_scikit_learn_in_blocks():
    known, queries = numbers(200, 5, seed=1), numbers(1500, 5, seed=2)
    labels = torch.from_numpy(np.random.default_rng(0).integers(0, 4, 200))
    method = KNeighborsClassifier(n_neighbors=10, weights="distance").fit(known, labels)
    found = nearest_classes(known, labels, queries, classes=4)
    np.testing.assert_array_equal(found.numpy(), method.predict(queries))


def test_blocks_of_distances_stay_within_the_limit(monkeypatch):
    known, queries = numbers(20, 3), numbers(50, 3, seed=1)
    labels = torch.arange(20) % 3
    whole = nearest_classes(known, labels, queries, classes=3)
    monkeypatch.setattr("accord.baselines._npc_model.CELLS", 10)  # less than one sample needs
    torch.testing.assert_close(nearest_classes(known, labels, queries, classes=3), whole)


def test_a_sample_far_from_zero_is_at_distance_zero_from_itself():
    known = numbers(500, 3) + 10_000
    labels = torch.arange(500) % 5
    found = nearest_classes(known, labels, known, classes=5)
    torch.testing.assert_close(found, labels)


def test_ties_go_to_the_lowest_class():
    known, labels = torch.tensor([[0.0], [2.0]]), torch.tensor([1, 0])
    assert nearest_classes(known, labels, torch.tensor([[1.0]]), classes=2).tolist() == [0]


# The prior


@settings(max_examples=30)
@given(seed=seeds, samples=st.integers(1, 40), batch=st.integers(1, 15))
def test_the_most_confident_sample_of_each_class_in_each_batch_is_kept(seed, samples, batch):
    logits = numbers(samples, 3, seed=seed).numpy()
    sureness = special.softmax(logits.astype(np.float64), axis=1).max(axis=1)
    predicted = logits.argmax(axis=1)
    expected = []
    for start in range(0, samples, batch):
        part = range(start, min(start + batch, samples))
        for one in range(3):
            members = [i for i in part if predicted[i] == one]
            if members:
                expected.append(max(members, key=lambda i: sureness[i]))
    assert most_confident(logits, batch=batch).tolist() == expected


def test_large_logits_do_not_hide_the_most_confident_sample():
    logits = np.array([[1000, 999], [1000, 0], [0, -1000]], np.float32)
    assert most_confident(logits[[0, 2]], batch=2).tolist() == [1]
    assert most_confident(logits, batch=3).tolist() == [1]


def test_similar_queriesoutvote_a_doubtful_prediction():
    """A sample of the first of two clusters, predicted with doubt as the second."""
    features = torch.cat([numbers(20, 2) * 0.1, numbers(20, 2, seed=1) * 0.1 + 5]).numpy()
    logits = np.zeros((40, 2), np.float32)
    logits[:20, 0] = logits[20:, 1] = 4
    logits[3] = [0, 0.1]
    found = similar_classes(features, logits, seed=0, batch=8, device=CPU)
    assert found.tolist() == [0] * 20 + [1] * 20


def test_the_order_of_the_prior_follows_from_the_seed():
    features, logits = numbers(60, 2).numpy(), numbers(60, 3, seed=1).numpy()
    predict = partial(similar_classes, features, logits, batch=8, device=CPU)
    assert torch.equal(predict(seed=0), predict(seed=0))
    assert not torch.equal(predict(seed=0), predict(seed=1))


# The autoencoder


class Classifier(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.hidden = nn.Linear(2, 8)
        self.norm = nn.BatchNorm1d(8)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(8, classes)

    def forward(self, rows):
        return self.head(self.dropout(torch.relu(self.norm(self.hidden(rows)))))


def classifier(seed=0):
    torch.manual_seed(seed)
    return Classifier()


def autoencoder(network=None):
    return build_autoencoder(network or classifier(), classes=3, seed=0)


def test_the_loss_equals_a_transcription():
    coder = autoencoder()
    logits, predicted = numbers(5, 3), torch.eye(3)[[0, 1, 2, 1, 1]]
    prior = prior_concentrations(torch.tensor([0, 1, 1, 2, 1]), classes=3)
    uniform = torch.rand(5, 3, generator=torch.Generator().manual_seed(0))
    weights = {name: value.detach().double().numpy() for name, value in coder.named_parameters()}
    expected = 0.0
    for row in range(5):
        seen = [*logits[row].tolist(), *predicted[row].tolist()]
        scores = weights["encoder.weight"] @ seen + weights["encoder.bias"]
        alpha = np.log1p(np.exp(scores)) + 1 + 1 / 3
        u = uniform[row].double().numpy()
        z = np.exp((np.log(u * alpha) + special.gammaln(alpha)) / alpha)
        out = weights["decoder.weight"] @ [*logits[row].tolist(), *z] + weights["decoder.bias"]
        chance = 1 / (1 + np.exp(-out))
        label = predicted[row].numpy()
        expected -= (label * np.log(chance) + (1 - label) * np.log(1 - chance)).sum()
        p = prior[row].double().numpy()
        expected += (
            special.gammaln(p) - special.gammaln(alpha) + (alpha - p) * special.digamma(alpha)
        ).sum()
    found = calibration_loss(coder, logits, predicted, prior, uniform)
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_only_the_last_layer_is_reinitialised():
    network = classifier()
    inside = autoencoder(network).network
    same = {
        name: torch.equal(value, network.state_dict()[name])
        for name, value in inside.state_dict().items()
    }
    assert {name for name, equal in same.items() if not equal} == {"head.weight", "head.bias"}
    assert not any(one is other for one in inside.parameters() for other in network.parameters())


def test_new_weights_follow_from_the_seed_alone():
    network, state = classifier(), torch.get_rng_state()
    first, again, other = (
        build_autoencoder(network, classes=3, seed=seed).state_dict() for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), state)
    for name in ("network.head.weight", "encoder.weight", "decoder.weight"):
        assert torch.equal(first[name], again[name])
        assert not torch.equal(first[name], other[name])


def test_frozen_weights_are_trained_in_the_copy_alone():
    network = classifier().requires_grad_(False)
    assert all(one.requires_grad for one in autoencoder(network).parameters())
    assert not any(one.requires_grad for one in network.parameters())


def test_a_last_layer_that_is_not_linear_is_refused():
    network = classifier()
    network.last_layer = "norm"
    with pytest.raises(ChoiceError, match=r"of Classifier, 'norm', must be linear.*BatchNorm1d"):
        autoencoder(network)


@settings(max_examples=20)
@given(seed=seeds, samples=st.integers(1, 4))
def test_calibration_equals_a_sum_over_the_predicted_classes(seed, samples):
    coder = autoencoder().eval()
    logits, answers = numbers(samples, 3, seed=seed), numbers(samples, 3, seed=seed + 1)
    predicted_shares = special.softmax(answers.double().numpy(), axis=1)
    expected = np.zeros((samples, 3))
    for row in range(samples):
        for label in range(3):
            alpha = coder.encode(logits[row : row + 1], torch.eye(3)[label : label + 1])[0]
            mode = alpha.detach().double().numpy() - 1
            for one in range(3):
                expected[row, one] += mode[one] / mode.sum() * predicted_shares[row, label]
    with torch.no_grad():
        found = calibrate(coder, logits, answers).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


# Fitting and predicting


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
def test_npc_corrects_predictions_that_similar_queriescontradict(seed):
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
    coder = autoencoder(NETWORK)
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


def test_every_epoch_takes_all_queriesin_another_order():
    seen = []

    class Watched(TableBatches):
        def take(self, chosen, draws=None):
            seen.append(chosen.tolist())
            return super().take(chosen, draws)

    zeros, ones = np.zeros(2, np.float32), np.ones(2, np.float32)
    fit_npc(NETWORK, Watched(ROWS, device=CPU, mean=zeros, spread=ones), seed=0, epochs=2)
    first, second = seen[1:4], seen[4:]  # the first one asks for all features
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
def test_few_queriestake_more_epochs(samples, epochs):
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


def test_a_new_autoencoder_takes_a_sample_and_a_class():
    coder = Autoencoder(classifier(), classes=3)
    assert coder.encode(numbers(2, 3), torch.eye(3)[:2]).shape == (2, 3)
    assert coder.decode(numbers(2, 3), numbers(2, 3)).shape == (2, 3)


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
