"""The autoencoder and the prior of NPC follow their formulas."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from classifier import classifier, numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.neighbors import KNeighborsClassifier
from torch.distributions import Gamma, kl_divergence

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
from accord.errors import ChoiceError

CPU = torch.device("cpu")
seeds = st.integers(0, 2**32)


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


def test_similar_samples_outvote_a_doubtful_prediction():
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


def test_a_new_autoencoder_takes_a_sample_and_a_class():
    coder = Autoencoder(classifier(), classes=3)
    assert coder.encode(numbers(2, 3), torch.eye(3)[:2]).shape == (2, 3)
    assert coder.decode(numbers(2, 3), numbers(2, 3)).shape == (2, 3)
