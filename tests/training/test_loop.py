"""The loop learns, follows from its seed, goes on where it stopped, and leaves the rest alone."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from accord.data.readers.digits import load_digits
from accord.errors import TrainingError
from accord.training import OptimizerSpec
from accord.training._batches import ImageBatches, TableBatches
from accord.training._loop import (
    Recipe,
    learning_rate_at,
    predict_probabilities,
    train_loop,
)
from accord.training._losses import CrossEntropy, EarlyLearningRegularization
from accord.training._spec import ScheduleSpec
from accord.training.networks import SmallCNN, build, to_batch_ensemble

CPU = torch.device("cpu")
DIGITS = load_digits()
LABELS = torch.from_numpy(DIGITS.labels[:200].astype(np.int64))


def digits(*augment):
    return ImageBatches(
        DIGITS.images[:200, np.newaxis],
        device=CPU,
        mean=np.zeros(1, np.float32),
        spread=np.full(1, 16, np.float32),
        augment=augment,
    )


IMAGES = digits("shift", "flip")
OPTIMIZER = OptimizerSpec(lr=0.02, weight_decay=5e-4)
RECIPE = Recipe(epochs=3, batch=64, optimizer=OPTIMIZER, augment=("shift", "flip"))


def new_network():
    return build("small-cnn", classes=10, channels=1, size=8, seed=0, width=4)


def go(network, *, seed=1, recipe=RECIPE, loss=None, state=None, images=IMAGES):
    loss = loss or CrossEntropy()
    return train_loop(network, loss, images, LABELS, recipe=recipe, seed=seed, state=state)


def train_and_predict(*, seed, recipe=RECIPE):
    """The probabilities at every result: (result, sample, class)."""
    network = new_network()
    return np.stack(
        [predict_probabilities(network, IMAGES) for _ in go(network, seed=seed, recipe=recipe)]
    )


def weights_of(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def same_weights(network, weights):
    return all(torch.equal(value, weights[name]) for name, value in network.state_dict().items())


def test_same_seed_gives_the_same_bits():
    np.testing.assert_array_equal(train_and_predict(seed=1), train_and_predict(seed=1))


def test_another_seed_gives_other_predictions():
    assert not np.array_equal(train_and_predict(seed=1), train_and_predict(seed=2))


def test_global_random_states_neither_matter_nor_change():
    first = train_and_predict(seed=1)
    torch.rand(3), np.random.rand(3), random.random()  # noqa: NPY002
    before = torch.random.get_rng_state(), str(np.random.get_state()), random.getstate()  # noqa: NPY002
    np.testing.assert_array_equal(train_and_predict(seed=1), first)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert str(np.random.get_state()) == before[1]  # noqa: NPY002
    assert random.getstate() == before[2]


def with_dropout():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 10))


def test_dropout_follows_from_the_seed_whatever_the_caller_draws():
    quiet, noisy = with_dropout(), with_dropout()
    for _ in go(quiet, recipe=Recipe(epochs=2, batch=50, every=0.5)):
        pass
    for _ in go(noisy, recipe=Recipe(epochs=2, batch=50, every=0.5)):
        torch.rand(100)
    assert same_weights(quiet, weights_of(noisy))


def test_predicting_between_epochs_changes_nothing():
    watched, unwatched = new_network(), new_network()
    for _ in go(watched):
        predict_probabilities(watched, IMAGES)
    for _ in go(unwatched):
        pass
    assert same_weights(watched, weights_of(unwatched))


@pytest.mark.parametrize("kind", ["sgd", "adamw"])
@pytest.mark.parametrize("make", [new_network, with_dropout])
def test_going_on_from_a_state_gives_the_same_bits(kind, make):
    recipe = Recipe(epochs=4, batch=64, optimizer=OptimizerSpec(kind=kind, lr=0.01))
    whole, parts = make(), make()
    losses = [EarlyLearningRegularization(samples=200, classes=10) for _ in range(3)]
    results = list(go(whole, recipe=recipe, loss=losses[0]))
    first = go(parts, recipe=recipe, loss=losses[1])
    next(first)
    state = next(first).state
    fresh = make()
    rest = list(go(fresh, recipe=recipe, loss=losses[2], state=state))
    assert [result.index for result in rest] == [2, 3]
    assert [result.loss for result in rest] == [result.loss for result in results[2:]]
    assert same_weights(fresh, weights_of(whole))


def test_training_lowers_the_loss_and_learns():
    network = build("small-cnn", classes=10, channels=1, size=8, seed=0)
    recipe = Recipe(epochs=12, batch=16, optimizer=OPTIMIZER, augment=("shift",))
    results = list(go(network, recipe=recipe, images=digits("shift")))
    assert [result.index for result in results] == list(range(12))
    assert results[-1].loss < 0.6 * results[0].loss
    predicted = predict_probabilities(network, digits()).argmax(1)
    assert (predicted == LABELS.numpy()).mean() > 0.8


def linear_network():
    head = nn.Linear(64, 10)
    nn.init.zeros_(head.weight)
    nn.init.constant_(head.bias, 0.1)
    return nn.Sequential(nn.Flatten(), head)


def loss_for(network):
    logits = network(digits().take(torch.arange(200)))
    return nn.functional.cross_entropy(logits, LABELS)


def test_loss_is_the_mean_over_samples_not_over_batches():
    network = linear_network()
    still = OptimizerSpec(lr=1e-30, weight_decay=0)
    recipe = Recipe(epochs=1, batch=64, optimizer=still)  # batches of 64, 64, 64 and 8
    (result,) = go(network, recipe=recipe, images=digits())
    assert result.loss == pytest.approx(loss_for(network).item(), rel=1e-5)


def test_weights_follow_the_definition_of_sgd():
    """One batch per epoch: v <- 0.9 v + gradient + decay * w, then w <- w - lr * v."""
    optimizer = OptimizerSpec(lr=0.5, momentum=0.9, weight_decay=0.1)
    recipe = Recipe(epochs=3, batch=200, optimizer=optimizer)
    trained, by_hand = linear_network(), linear_network()
    assert [result.lr for result in go(trained, recipe=recipe, images=digits())] == pytest.approx(
        [0.5, 0.375, 0.125]
    )
    weights = list(by_hand.parameters())
    speeds = [torch.zeros_like(weight) for weight in weights]
    for lr in (0.5, 0.375, 0.125):
        gradients = torch.autograd.grad(loss_for(by_hand), weights)
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

        def forward(self, rows):
            seen.extend(rows[:, 0].round().int().tolist())
            return self.head(rows)

    rows = np.arange(10, dtype=np.float32)[:, np.newaxis]
    still = {"mean": np.zeros(1, np.float32), "spread": np.ones(1, np.float32)}
    table = TableBatches(rows, device=CPU, **still)
    recipe = Recipe(epochs=2, batch=4)
    list(train_loop(Spy(), CrossEntropy(), table, torch.arange(10), recipe=recipe, seed=1))
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))
    assert seen[:10] != seen[10:]


@pytest.mark.parametrize(
    ("every", "epochs", "progress"),
    [
        (1, 3, [1.0, 2.0, 3.0]),
        (2, 5, [2.0, 4.0, 5.0]),
        (0.5, 2, [0.5, 1.0, 1.5, 2.0]),
        (0.1, 1, [0.25, 0.5, 0.75, 1.0]),  # four steps are all there are
    ],
)
def test_results_follow_the_recording_schedule(every, epochs, progress):
    recipe = Recipe(epochs=epochs, batch=50, every=every)
    results = list(go(linear_network(), recipe=recipe))
    assert [result.progress for result in results] == progress
    assert [result.index for result in results] == list(range(len(progress)))
    assert len(recipe.recording_schedule(200)) == len(progress)
    for result in results:
        assert (result.state is not None) == (result.progress % 1 == 0)


def test_a_loss_that_is_no_number_stops_the_training_with_a_remedy():
    wild = Recipe(
        epochs=3, optimizer=OptimizerSpec(lr=1e30), schedule=ScheduleSpec(kind="constant")
    )
    with pytest.raises(TrainingError, match=r"the loss became .* in epoch .*smaller rate"):
        list(go(linear_network(), recipe=wild))


def test_a_full_device_gets_a_remedy():
    class Hungry(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1))

        def forward(self, images):
            raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(TrainingError, match=r"out of memory\. Halve train\.batch"):
        list(go(Hungry()))


def test_a_batch_ensemble_trains_and_predicts_for_each_member():
    network = to_batch_ensemble(new_network(), members=3, seed=0)
    results = list(go(network, recipe=Recipe(epochs=2, batch=64)))
    assert results[1].loss < results[0].loss
    tables = predict_probabilities(network, IMAGES)
    assert tables.shape == (3, 200, 10)
    np.testing.assert_allclose(tables.sum(axis=-1), 1, rtol=1e-5)


def test_predictions_are_probabilities_whatever_the_batch():
    network = new_network()
    whole, parts = (predict_probabilities(network, IMAGES, batch=size) for size in (200, 7))
    assert (whole.shape, whole.dtype) == ((200, 10), np.float32)
    np.testing.assert_allclose(whole.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(whole, parts, rtol=1e-4)


def test_predicting_leaves_modes_and_statistics_as_they_were():
    network = SmallCNN(classes=10, width=4)
    network.features[1].eval()  # one batch norm frozen by its owner
    modes = [module.training for module in network.modules()]
    weights = weights_of(network)
    predict_probabilities(network, IMAGES)
    assert [module.training for module in network.modules()] == modes
    assert len(set(modes)) == 2
    assert same_weights(network, weights)


def test_bfloat16_trains_too():
    recipe = Recipe(epochs=2, batch=64, optimizer=OPTIMIZER, bfloat16=True)
    results = list(go(new_network(), recipe=recipe))
    assert results[1].loss < results[0].loss


def rates(progress, **schedule):
    schedule_spec = ScheduleSpec(**schedule)
    return [learning_rate_at(one, schedule=schedule_spec, lr=1.0, epochs=10) for one in progress]


def test_cosine_and_linear_schedules_end_at_zero():
    assert rates([0, 5, 10], kind="cosine") == pytest.approx([1, 0.5, 0])
    assert rates([0, 2.5, 10], kind="linear") == pytest.approx([1, 0.75, 0])


def test_a_cosine_changes_per_epoch_and_a_line_per_step():
    assert len(set(rates([3, 3.5, 3.99], kind="cosine"))) == 1
    assert len(set(rates([3, 3.5, 3.99], kind="linear"))) == 3


def test_a_constant_schedule_does_not_change():
    assert rates([0, 9.9], kind="constant") == [1, 1]


def test_steps_fall_at_the_milestones():
    schedule_spec = {"kind": "step", "milestones": (4, 8), "factor": 0.5}
    assert rates([3.99, 4, 7.9, 8], **schedule_spec) == pytest.approx([1, 0.5, 0.5, 0.25])


def test_a_warm_up_rises_linearly():
    assert rates([0, 1, 2, 6, 10], kind="cosine", warmup=2) == pytest.approx([0, 0.5, 1, 0.5, 0])
