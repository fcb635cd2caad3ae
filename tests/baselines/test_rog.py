"""RoG follows its formulas, handles degenerate features, and improves on a noisy network."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from accord.baselines._features import extract_with_logits
from accord.baselines.rog import Rog, RogHead, fit_head, fit_rog, mix_depths, predict_rog
from accord.errors import ChoiceError, PredictionError
from accord.training import parse_spec
from accord.training._loop import predict_probabilities
from accord.training._prepared_data import prepare_data
from accord.training._randomness import derive_seed

SPEC = """
name = "small"
data = { kind = "digits", validation = 0.2 }
noise = { kind = "symmetric", rate = 0.4 }
[train]
epochs = 1
"""


def slow_head(features, labels, *, classes, seed, share=0.7):
    """Compute the weights and the bias of one head, sample by sample."""
    members = [[i for i, label in enumerate(labels) if label == c] for c in range(classes)]
    generator = np.random.default_rng(seed)
    chosen = [list(generator.permutation(some)[: int(share * len(some))]) for some in members]
    means, precision = slow_gaussians(features, chosen)
    chosen = [
        sorted(some, key=lambda i: mahalanobis(features[i], mean, precision))[
            : int(share * len(some))
        ]
        for some, mean in zip(members, means, strict=True)
    ]
    means, precision = slow_gaussians(features, chosen)
    weights = means @ precision
    bias = [-0.5 * mean @ precision @ mean + np.log(1 / classes) for mean in means]
    return weights, np.array(bias)


def slow_gaussians(features, chosen):
    means = np.array([np.mean([features[i] for i in some], axis=0) for some in chosen])
    covariance, count = 0, 0
    for mean, some in zip(means, chosen, strict=True):
        for i in some:
            covariance = covariance + np.outer(features[i] - mean, features[i] - mean)
            count += 1
    return means, np.linalg.pinv(covariance / count, rcond=1e-9, hermitian=True)


def mahalanobis(row, mean, precision):
    return (row - mean) @ precision @ (row - mean)


def draw(samples=60, width=4, classes=3, *, seed=0, apart=3.0, wrong=0.0):
    """Draw Gaussian classes: features, given labels, true labels."""
    generator = np.random.default_rng(seed)
    truth = np.arange(samples) % classes
    centres = apart * generator.normal(size=(classes, width))
    features = centres[truth] + generator.normal(size=(samples, width))
    moved = (truth + generator.integers(1, classes, samples)) % classes
    given_labels = np.where(generator.random(samples) < wrong, moved, truth)
    return features, given_labels, truth


# Fewer samples than these would leave several equally typical, and rounding would choose.
@settings(max_examples=40)
@given(
    samples=st.integers(40, 70),
    width=st.integers(1, 5),
    classes=st.integers(2, 4),
    seed=st.integers(0, 2**32),
    share=st.sampled_from([0.5, 0.7, 1.0]),
)
def test_a_head_equals_the_formulas(samples, width, classes, seed, share):
    features, labels, _ = draw(samples, width, classes, seed=seed)
    head = fit_head(features, labels, classes=classes, seed=seed, share=share)
    weights, bias = slow_head(features, labels, classes=classes, seed=seed, share=share)
    np.testing.assert_allclose(head.weights, weights, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(head.bias, bias, rtol=1e-6, atol=1e-8)


def test_probabilities_are_the_softmax_of_the_head():
    features, labels, _ = draw()
    head = fit_head(features, labels, classes=3, seed=0)
    for row, probabilities in zip(features, head.predict_probabilities(features), strict=True):
        powers = np.exp(head.weights @ row + head.bias)
        np.testing.assert_allclose(probabilities, powers / powers.sum())


def test_scores_are_half_the_mahalanobis_distances_to_the_given_class():
    features, labels, _ = draw()
    head = fit_head(features, labels, classes=3, seed=0)
    precision = head.root @ head.root.T
    expected = [
        -0.5 * mahalanobis(row, head.means[label], precision)
        for row, label in zip(features, labels, strict=True)
    ]
    np.testing.assert_allclose(head.score(features, labels), expected)


def test_float32_features_are_computed_with_in_float64():
    features, labels, _ = draw()
    head = fit_head(features.astype(np.float32), labels, classes=3, seed=0)
    again = fit_head(features.astype(np.float32).astype(np.float64), labels, classes=3, seed=0)
    np.testing.assert_array_equal(head.weights, again.weights)


def test_features_far_from_zero_keep_their_precision():
    features, labels, _ = draw()
    near, far = (
        fit_head(table, labels, classes=3, seed=0).predict_probabilities(table)
        for table in (features, features + 1e5)
    )
    np.testing.assert_allclose(far, near, atol=1e-4)


def test_another_seed_starts_from_other_samples():
    features, labels, _ = draw(wrong=0.3)
    first, again, other = (
        fit_head(features, labels, classes=3, seed=seed).weights for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_wrong_labels_cost_less_accuracy_than_with_plain_gaussians():
    features, labels, truth = draw(3000, 8, wrong=0.2, apart=2)
    distances = [
        np.linalg.norm(
            fit_head(features, labels, classes=3, seed=0, share=share).means
            - fit_head(features, truth, classes=3, seed=0, share=1.0).means
        )
        for share in (0.7, 1.0)
    ]
    assert distances[0] < 0.5 * distances[1]


def test_a_class_may_have_fewer_samples_than_features():
    features, labels, truth = draw(samples=12, width=30, apart=5)
    head = fit_head(features, labels, classes=3, seed=0)
    assert head.root.shape[1] == 3 * 2 - 3  # of 4 samples 2 are kept, less a mean for each class
    probabilities = head.predict_probabilities(features)
    assert np.isfinite(probabilities).all()
    np.testing.assert_array_equal(probabilities.argmax(axis=1), truth)


def test_a_feature_that_is_constant_or_repeated_changes_nothing():
    features, labels, _ = draw()
    more = np.column_stack([features, np.full(len(features), 7.0), features[:, 0]])
    plain, repeated = (
        fit_head(table.astype(np.float32), labels, classes=3, seed=0).predict_probabilities(table)
        for table in (features, more)
    )
    np.testing.assert_allclose(plain, repeated, atol=1e-5)


def test_the_scale_of_a_feature_changes_nothing():
    features, labels, _ = draw()
    plain, scaled = (
        fit_head(table, labels, classes=3, seed=0).predict_probabilities(table)
        for table in (features, features * [1, 1e-4, 1, 1])
    )
    np.testing.assert_allclose(plain, scaled, atol=1e-8)


def test_classes_of_one_and_two_samples_keep_one():
    features, labels, _ = draw(60)
    few = np.concatenate([np.flatnonzero(labels == 0)[:1], np.flatnonzero(labels == 1)[:2]])
    chosen = np.concatenate([few, np.flatnonzero(labels == 2)])
    head = fit_head(features[chosen], labels[chosen], classes=3, seed=0)
    np.testing.assert_allclose(head.means[0], features[few[0]])
    assert np.abs(features[few[1:]] - head.means[1]).sum(axis=1).min() == 0


def test_a_class_without_samples_is_never_predicted():
    features, labels, _ = draw()
    head = fit_head(features, labels, classes=5, seed=0)
    np.testing.assert_array_equal(head.predict_probabilities(features)[:, 3:], 0)
    assert (head.score(features, np.full(60, 4)) == -np.inf).all()


def test_constant_features_make_all_classes_equally_likely():
    features, labels = np.ones((12, 4)), np.arange(12) % 3
    heads = fit_rog({"only": features}, labels, classes=3, seed=0)
    rog = mix_depths(heads, {"only": features}, labels, seed=0)
    np.testing.assert_allclose(rog.predict_probabilities({"only": features}), 1 / 3)


def test_large_features_do_not_overflow():
    features, labels, truth = draw()
    head = fit_head((features * 1e30).astype(np.float32), labels, classes=3, seed=0)
    predicted = head.predict_probabilities((features * 1e30).astype(np.float32))
    assert (predicted.argmax(axis=1) == truth).mean() > 0.9
    far = head.predict_probabilities(np.full((1, 4), 3e38, np.float32))
    assert far.sum() == pytest.approx(1)


def test_a_covariance_that_overflows_is_refused():
    features, labels, _ = draw()
    with pytest.raises(PredictionError, match=r"covariance .* overflows.*largest feature is .*e\+"):
        fit_head(features * 1e200, labels, classes=3, seed=0)


def test_scores_that_overflow_are_refused():
    head = RogHead(np.full((2, 1), 1e200), np.zeros(2), np.zeros((2, 1)), np.zeros((1, 1)))
    with pytest.raises(PredictionError, match=r"too large .* largest is 1e\+200"):
        head.predict_probabilities(np.array([[1e200]]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": np.full((6, 2), np.nan)}, "must be finite.*NaN"),
        ({"features": np.zeros(6)}, r"\(sample, feature\); got float64 of shape \(6,\)"),
        ({"features": np.zeros((6, 2), int)}, "floating-point numbers .* got int64"),
        ({"labels": np.arange(5)}, r"each of 6 samples; got int64 of shape \(5,\)"),
        ({"labels": np.zeros(6)}, "one integer for each of 6 samples; got float64"),
        ({"labels": np.arange(6)}, r"0\.\.2 for 3 classes; got 0\.\.5"),
        ({"labels": np.arange(6) - 3}, r"0\.\.2 for 3 classes; got -3\.\.2"),
        ({"features": np.zeros((0, 2)), "labels": np.zeros(0, int)}, "no samples"),
    ],
)
def test_unusable_features_and_labels_are_refused(changes, words):
    usable = {"features": np.zeros((6, 2)), "labels": np.arange(6) % 3}
    with pytest.raises(PredictionError, match=words):
        fit_head(**{**usable, **changes}, classes=3, seed=0)


@pytest.mark.parametrize("share", [0, 1.1, 70])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(ChoiceError, match=f"share of each class .* got {share}"):
        fit_head(np.zeros((6, 2)), np.arange(6) % 3, classes=3, seed=0, share=share)


def test_features_of_another_layer_and_unknown_labels_are_refused():
    features, labels = draw()[:2]
    head = fit_head(features, labels, classes=3, seed=0)
    for call in (head.predict_probabilities, partial(head.score, labels=labels)):
        with pytest.raises(PredictionError, match=r"4 features, as in training; got 3\. .* layer"):
            call(features[:, :3])
    with pytest.raises(PredictionError, match=r"0\.\.2 for 3 classes; got 0\.\.5"):
        head.score(features, np.where(labels == 1, 5, labels))


def test_unusable_features_to_predict_are_refused():
    head = fit_head(*draw()[:2], classes=3, seed=0)
    for call in (head.predict_probabilities, partial(head.score, labels=np.zeros(1, int))):
        with pytest.raises(PredictionError, match="must be finite"):
            call(np.full((1, 4), np.inf))


def test_all_layers_use_the_same_share():
    features, labels, _ = draw(wrong=0.2)
    (head,) = fit_rog({"one": features}, labels, classes=3, seed=5, share=0.9).values()
    alone = fit_head(features, labels, classes=3, seed=derive_seed(5, 0), share=0.9)
    np.testing.assert_array_equal(head.weights, alone.weights)


def test_every_layer_has_its_own_head():
    features, labels, _ = draw(wrong=0.2)
    heads = fit_rog({"one": features, "two": features[:, :2]}, labels, classes=3, seed=5)
    assert {layer: head.weights.shape for layer, head in heads.items()} == {
        "one": (3, 4),
        "two": (3, 2),
    }
    for depth, table in enumerate((features, features[:, :2])):
        alone = fit_head(table, labels, classes=3, seed=derive_seed(5, depth))
        np.testing.assert_array_equal(list(heads.values())[depth].weights, alone.weights)


def slow_weights(table, *, seed):
    """Minimise the negative log-likelihood of the mixture by Adam, written out."""
    depths, samples = table.shape
    numbers, mean, square = np.ones(depths), np.zeros(depths), np.zeros(depths)
    generator = torch.Generator().manual_seed(derive_seed(seed))
    step = 0
    for _ in range(20):
        order = torch.randperm(samples, generator=generator).numpy()
        for start in range(0, samples, 50):
            part = table[:, order[start : start + 50]]
            weights = np.exp(numbers) / np.exp(numbers).sum()
            gradient = np.zeros(depths)
            for column in part.T:
                mixture = weights @ column + 1e-10
                gradient -= weights * (column - weights @ column) / mixture / part.shape[1]
            step += 1
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            corrected = np.sqrt(square / (1 - 0.999**step)) + 1e-8
            numbers = numbers - 0.02 * mean / (1 - 0.9**step) / corrected
    return np.exp(numbers) / np.exp(numbers).sum()


def two_depths(*, seed=0, samples=260):
    """Return heads and samples of an informative layer and of a random one."""
    features, labels, truth = draw(samples, wrong=0.3, apart=0.7, seed=seed)
    chance = np.random.default_rng(9).normal(size=(samples, 2))
    tables = {"chance": chance, "good": features}
    train = {layer: table[: samples // 2] for layer, table in tables.items()}
    held = {layer: table[samples // 2 :] for layer, table in tables.items()}
    heads = fit_rog(train, labels[: samples // 2], classes=3, seed=0)
    return heads, held, labels[samples // 2 :], truth[samples // 2 :]


def test_weights_are_learnt_by_the_formulas():
    heads, held, labels, _ = two_depths()
    precision = heads["good"].root @ heads["good"].root.T
    far = [
        mahalanobis(row, heads["good"].means[label], precision)
        for row, label in zip(held["good"], labels, strict=True)
    ]
    trusted = np.argsort(far)[:65]
    table = np.array(
        [
            [heads[layer].predict_probabilities(held[layer])[i, labels[i]] for i in trusted]
            for layer in ("chance", "good")
        ]
    )
    rog = mix_depths(heads, held, labels, seed=4)
    np.testing.assert_allclose(rog.weights, slow_weights(table, seed=4), rtol=1e-9)


def test_the_informative_layer_gets_the_larger_weight():
    heads, held, labels, _ = two_depths()
    chance, good = mix_depths(heads, held, labels, seed=0).weights
    assert chance + good == pytest.approx(1)
    assert good > 0.6


def test_the_prediction_is_the_weighted_mean_of_the_layers():
    heads, held, _, _ = two_depths()
    mixture = Rog(heads, np.array([0.25, 0.75])).predict_probabilities(held)
    parts = [heads[layer].predict_probabilities(held[layer]) for layer in ("chance", "good")]
    np.testing.assert_allclose(mixture, 0.25 * parts[0] + 0.75 * parts[1])


@pytest.mark.parametrize("samples", [1, 2, 3])
def test_few_validation_samples_are_enough(samples):
    heads, held, labels, _ = two_depths()
    some = {layer: table[:samples] for layer, table in held.items()}
    chance, good = mix_depths(heads, some, labels[:samples], seed=0).weights
    assert chance + good == pytest.approx(1)
    assert chance != good  # something was learnt


def test_a_validation_label_without_training_samples_is_harmless():
    features, labels, _ = draw()
    heads = fit_rog({"one": features, "two": features[:, :2]}, labels, classes=4, seed=0)
    rog = mix_depths(heads, {"one": features, "two": features[:, :2]}, np.full(60, 3), seed=0)
    np.testing.assert_allclose(rog.weights, [0.5, 0.5])


def test_no_validation_samples_are_refused():
    heads, held, labels, _ = two_depths()
    none = {layer: table[:0] for layer, table in held.items()}
    with pytest.raises(ChoiceError, match=r"held out from training.*Set data\.validation"):
        mix_depths(heads, none, labels[:0], seed=0)


def test_validation_labels_that_do_not_fit_are_refused():
    heads, held, labels, _ = two_depths()
    with pytest.raises(PredictionError, match="each of 130 samples"):
        mix_depths(heads, held, labels[:5], seed=0)


class Flat(nn.Module):
    """An untrained network of two layers."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 20)
        self.head = nn.Linear(20, 10)

    def forward(self, images):
        return self.head(torch.tanh(self.hidden(images.flatten(1))))


def flat():
    torch.manual_seed(0)
    return Flat()


def load_data(text=SPEC):
    data = prepare_data(parse_spec(text))
    return data, partial(data.batches, device=torch.device("cpu"))


def test_rog_predicts_from_features_that_the_head_does_not_use():
    """Random features separate the digits, though the untrained head predicts at random."""
    data, load = load_data()
    network, truth = flat(), data.splits["test"].truth
    single = predict_probabilities(network, load("test")).argmax(axis=1)
    probabilities = predict_rog(network, data, load, seed=0)
    assert probabilities.shape == (len(truth), 10)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (single == truth).mean() < 0.3
    assert (probabilities.argmax(axis=1) == truth).mean() > 0.7


def test_a_prediction_follows_from_its_seed_alone():
    data, load = load_data()
    predict = partial(predict_rog, flat(), data, load, layers=["hidden", "head:input"])
    state = torch.get_rng_state()
    first = predict(seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    np.testing.assert_array_equal(predict(seed=1), first)
    assert not np.array_equal(predict(seed=2), first)


def test_predict_rog_extracts_fits_mixes_and_predicts():
    data, load = load_data()
    network, layers = flat(), ["hidden", "head:input"]
    features = {one: extract_with_logits(network, load(one), layers)[0] for one in data.splits}
    given_labels, held = (data.splits[one].labels for one in ("train", "validation"))
    heads = fit_rog(features["train"], given_labels, classes=10, seed=3)
    expected = mix_depths(heads, features["validation"], held, seed=3)
    found = predict_rog(network, data, load, seed=3, layers=layers)
    np.testing.assert_array_equal(found, expected.predict_probabilities(features["test"]))


def test_another_split_can_be_predicted():
    data, load = load_data()
    predicted = predict_rog(flat(), data, load, seed=0, split="train").argmax(axis=1)
    assert len(predicted) == len(data.splits["train"])


def test_data_without_validation_are_refused():
    data, load = load_data(SPEC.replace(", validation = 0.2", ""))
    with pytest.raises(ChoiceError, match=r"Set data\.validation"):
        predict_rog(flat(), data, load, seed=0)


def test_a_network_without_the_named_layer_is_refused():
    data, load = load_data()
    with pytest.raises(ChoiceError, match=r"Flat has no layer 'hiden'.*'hidden'"):
        predict_rog(flat(), data, load, seed=0, layers=["hiden"])
