"""The loop learns, follows from its seed, and leaves everything else alone."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from accord.data.digits import load_digits
from accord.errors import ChoiceError, PredictionError
from accord.training.loop import (
    Recipe,
    predict_probabilities,
    shift_images,
    shift_randomly,
    train,
)
from accord.training.networks import build_small_cnn

DIGITS = load_digits()
LABELS = DIGITS.labels[:200]
IMAGES = DIGITS.images[:200, np.newaxis].astype(np.float32) / 16
RECIPE = Recipe(epochs=3, weight_decay=5e-4)


def new_network():
    return build_small_cnn(classes=10, width=4, seed=0)


def train_and_predict(*, seed, recipe=RECIPE):
    """The probabilities after every epoch: (epoch, sample, class)."""
    network = new_network()
    epochs = train(network, IMAGES, LABELS, recipe=recipe, seed=seed)
    return np.stack([predict_probabilities(network, IMAGES) for _ in epochs])


def state_of(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def same_state(network, state):
    return all(torch.equal(value, state[name]) for name, value in network.state_dict().items())


def test_same_seed_gives_the_same_bits():
    np.testing.assert_array_equal(train_and_predict(seed=1), train_and_predict(seed=1))


def test_another_seed_gives_other_predictions():
    assert not np.array_equal(train_and_predict(seed=1), train_and_predict(seed=2))


def test_seed_decides_the_order_even_without_shifts():
    recipe = Recipe(epochs=1, shift=0)
    first, second = (train_and_predict(seed=seed, recipe=recipe) for seed in (1, 2))
    assert not np.array_equal(first, second)


def test_global_random_states_neither_matter_nor_change():
    first = train_and_predict(seed=1)
    torch.rand(3), np.random.rand(3), random.random()  # noqa: NPY002
    before = torch.random.get_rng_state(), str(np.random.get_state()), random.getstate()  # noqa: NPY002
    np.testing.assert_array_equal(train_and_predict(seed=1), first)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert str(np.random.get_state()) == before[1]  # noqa: NPY002
    assert random.getstate() == before[2]


def test_predicting_between_epochs_changes_nothing():
    watched, unwatched = new_network(), new_network()
    for _ in train(watched, IMAGES, LABELS, recipe=RECIPE, seed=1):
        predict_probabilities(watched, IMAGES)
    for _ in train(unwatched, IMAGES, LABELS, recipe=RECIPE, seed=1):
        pass
    assert same_state(watched, state_of(unwatched))


def test_training_lowers_the_loss_and_learns():
    network = build_small_cnn(classes=10, seed=0)
    reports = list(train(network, IMAGES, LABELS, recipe=Recipe(epochs=12, batch=16), seed=1))
    assert [report.epoch for report in reports] == list(range(12))
    assert reports[-1].loss < 0.6 * reports[0].loss
    assert (predict_probabilities(network, IMAGES).argmax(1) == LABELS).mean() > 0.8


def linear_network():
    head = nn.Linear(64, 10)
    nn.init.zeros_(head.weight)
    nn.init.constant_(head.bias, 0.1)
    return nn.Sequential(nn.Flatten(), head)


def loss_of(network):
    logits = network(torch.tensor(IMAGES))
    return nn.functional.cross_entropy(logits, torch.tensor(LABELS, dtype=torch.int64))


def test_loss_is_the_mean_over_samples_not_over_batches():
    network = linear_network()
    recipe = Recipe(epochs=1, batch=64, lr=0.0, shift=0)  # batches of 64, 64, 64 and 8
    (report,) = train(network, IMAGES, LABELS, recipe=recipe, seed=1)
    assert report.loss == pytest.approx(loss_of(network).item(), rel=1e-5)


def test_learning_rate_falls_along_half_a_cosine():
    rates = [report.lr for report in train(new_network(), IMAGES, LABELS, recipe=RECIPE, seed=1)]
    assert rates == pytest.approx([0.02, 0.015, 0.005])


def test_weights_move_as_the_textbook_says():
    """One batch per epoch: v <- 0.9 v + gradient + decay * w, then w <- w - lr * v."""
    recipe = Recipe(epochs=3, batch=200, lr=0.5, momentum=0.9, weight_decay=0.1, shift=0)
    trained, by_hand = linear_network(), linear_network()
    list(train(trained, IMAGES, LABELS, recipe=recipe, seed=1))
    weights = list(by_hand.parameters())
    speeds = [torch.zeros_like(weight) for weight in weights]
    for lr in (0.5, 0.375, 0.125):
        gradients = torch.autograd.grad(loss_of(by_hand), weights)
        for weight, speed, gradient in zip(weights, speeds, gradients, strict=True):
            speed.mul_(0.9).add_(gradient + 0.1 * weight.detach())
            weight.data -= lr * speed
    for weight, wanted in zip(trained.parameters(), weights, strict=True):
        torch.testing.assert_close(weight, wanted)


def test_training_sees_every_sample_once_per_epoch_in_a_new_order():
    seen = []

    class Spy(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(1, 10)

        def forward(self, images):
            seen.extend(images[:, 0, 0, 0].int().tolist())
            return self.head(images[:, 0, 0])

    numbered = np.arange(10, dtype=np.float32).reshape(10, 1, 1, 1)
    list(train(Spy(), numbered, np.arange(10), recipe=Recipe(epochs=2, batch=4, shift=0), seed=1))
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))
    assert seen[:10] != seen[10:]


def test_inputs_are_left_alone():
    images, labels = IMAGES.copy(), LABELS.copy()
    images.flags.writeable = labels.flags.writeable = False
    list(train(new_network(), images, labels, recipe=Recipe(epochs=1), seed=1))
    np.testing.assert_array_equal(images, IMAGES)
    np.testing.assert_array_equal(labels, LABELS)


def test_predictions_are_probabilities():
    probabilities = predict_probabilities(new_network(), IMAGES)
    assert (probabilities.shape, probabilities.dtype) == ((200, 10), np.float32)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


def test_predictions_do_not_depend_on_the_batch():
    network = new_network()
    whole, parts = (predict_probabilities(network, IMAGES, batch=size) for size in (200, 7))
    np.testing.assert_allclose(whole, parts, rtol=1e-4)


def test_predicting_leaves_modes_and_statistics_as_they_were():
    network = new_network()
    network.features[1].eval()  # one batch norm frozen by its owner
    modes = [module.training for module in network.modules()]
    state = state_of(network)
    predict_probabilities(network, IMAGES)
    assert [module.training for module in network.modules()] == modes
    assert len(set(modes)) == 2
    assert same_state(network, state)


def test_modes_come_back_when_the_prediction_fails():
    network = new_network()
    with pytest.raises(RuntimeError, match="channels"):
        predict_probabilities(network, np.zeros((2, 5, 8, 8)))
    assert network.training


def slowly_shifted(image, down, right):
    """Pixel by pixel: (channel, row, column)."""
    channels, rows, columns = image.shape
    shifted = torch.zeros_like(image)
    for channel in range(channels):
        for row in range(rows):
            for column in range(columns):
                if 0 <= row - down < rows and 0 <= column - right < columns:
                    shifted[channel, row, column] = image[channel, row - down, column - right]
    return shifted


@given(st.data(), st.integers(0, 3), st.integers(1, 5), st.integers(1, 5))
def test_fast_shift_equals_the_slow_one(data, pixels, rows, columns):
    move = st.tuples(*[st.integers(-pixels, pixels)] * 2)
    moves = data.draw(st.lists(move, min_size=1, max_size=4))
    images = torch.arange(1.0, len(moves) * 2 * rows * columns + 1)
    images = images.reshape(len(moves), 2, rows, columns)
    slow = [slowly_shifted(image, *move) for image, move in zip(images, moves, strict=True)]
    fast = shift_images(images, torch.tensor(moves), pixels=pixels)
    assert torch.equal(fast, torch.stack(slow))


def test_random_shifts_are_the_nine_small_ones_in_equal_parts():
    image = torch.arange(1.0, 26).reshape(1, 1, 5, 5)
    generator = torch.Generator().manual_seed(0)
    shifted = shift_randomly(image.repeat(9000, 1, 1, 1), pixels=1, generator=generator)
    # The middle of the picture tells the move apart; 1000 each, one standard deviation is 30.
    _, counts = shifted[:, 0, 2, 2].unique(return_counts=True)
    assert len(counts) == 9
    assert (counts - 1000).abs().max() < 150


def test_training_images_are_shifted():
    seen = []

    class Spy(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(1, 2)

        def forward(self, images):
            seen.append(images.clone())
            return self.head(images.mean(dim=(2, 3)))

    image = np.zeros((90, 1, 5, 5))
    image[:, :, 2, 2] = 1
    list(train(Spy(), image, np.zeros(90), recipe=Recipe(epochs=1, batch=90), seed=1))
    _, _, rows, columns = seen[0].nonzero(as_tuple=True)
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == {
        (row, column) for row in (1, 2, 3) for column in (1, 2, 3)
    }


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"batch": 0}, {"shift": -1}])
def test_recipe_that_cannot_be_followed_is_refused(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ChoiceError, match=f"at least 1 epoch.*got .*{name}={value}"):
        Recipe(**wrong)


@pytest.mark.parametrize(
    ("images", "labels"),
    [(IMAGES[:, 0], LABELS), (IMAGES, LABELS[:-1]), (IMAGES[:0], LABELS[:0])],
)
def test_images_and_labels_that_do_not_match_are_refused(images, labels):
    with pytest.raises(PredictionError, match=r"one label per sample; got images .*channel axis"):
        next(train(new_network(), images, labels, recipe=RECIPE, seed=0))
