"""The averages equal those of torch.optim.swa_utils, and come and go without a trace."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

from accord.training._batches import ImageBatches
from accord.training._loop import Recipe, train_loop
from accord.training._losses import CrossEntropy
from accord.training._weight_averages import AveragedNetwork, recompute_batch_norm
from accord.training.networks import build

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 1, 8, 8), dtype=np.uint8)
LABELS = torch.arange(40) % 3


def batches():
    return ImageBatches(
        IMAGES,
        device=torch.device("cpu"),
        mean=np.full(1, 128, np.float32),
        spread=np.full(1, 64, np.float32),
    )


def new_network():
    return build("small-cnn", classes=3, channels=1, size=8, seed=0, width=4)


class Following(nn.Module):
    """A network that torch's own averages follow."""

    def __init__(self):
        super().__init__()
        self.network = new_network()
        self.theirs = [AveragedModel(self.network, multi_avg_fn=self.average, use_buffers=True)]
        self.theirs[0].update_parameters(self.network)

    def average(self, averages, values, steps):
        get_ema_multi_avg_fn(min(0.999, float(1 + steps) / float(10 + steps)))(averages, values, 0)

    def forward(self, images):
        return self.network(images)

    def after_step(self):
        self.theirs[0].update_parameters(self.network)


def go(network, epochs=4):
    recipe = Recipe(epochs=epochs, batch=16)
    return train_loop(network, CrossEntropy(), batches(), LABELS, recipe=recipe, seed=1)


def test_the_moving_average_is_torchs_own_with_a_decay_that_grows():
    ours, theirs = AveragedNetwork(new_network(), ["ema"]), Following()
    list(go(ours)), list(go(theirs))
    with ours.using("ema") as network:
        for name, value in theirs.theirs[0].module.state_dict().items():
            if value.is_floating_point():
                torch.testing.assert_close(network.state_dict()[name], value)


def test_after_many_steps_a_thousandth_is_taken():
    ours = AveragedNetwork(nn.Linear(1, 1, bias=False), ["ema"])
    with torch.no_grad():
        ours.network.weight.fill_(0.0)
        ours.get_buffer("ema_0").fill_(0.0)
        ours.get_buffer("steps").fill_(8990.0)
        ours.network.weight.fill_(1.0)
        ours.after_step()
    assert ours.get_buffer("ema_0").item() == pytest.approx(0.001, rel=1e-3)


def test_the_mean_over_epochs_is_torchs_own_once_enough_has_passed():
    ours = AveragedNetwork(new_network(), ["swa"])
    theirs = None
    for result in go(ours):
        ours.end_epoch(result.progress / 4)
        if result.progress == 3:
            theirs = AveragedModel(ours.network, use_buffers=True)
        if result.progress >= 3:
            theirs.update_parameters(ours.network)
    assert int(ours.averaged) == 2
    with ours.using("swa") as network:
        for name, value in theirs.module.state_dict().items():
            if value.is_floating_point():
                torch.testing.assert_close(network.state_dict()[name], value)


def test_norms_are_measured_as_torch_does_and_keep_their_ways():
    ours, theirs = new_network(), new_network()
    samples = batches()
    modes = [module.training for module in ours.modules()]
    recompute_batch_norm(ours, samples, batch=10)
    update_bn([samples.take(part) for part in torch.arange(40).split(10)], theirs)
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value)
    assert [module.training for module in ours.modules()] == modes
    assert all(norm.momentum == 0.1 for norm in ours.modules() if isinstance(norm, nn.BatchNorm2d))


def test_norms_are_measured_without_dropout_and_without_the_caller_s_randomness():
    plain = nn.Sequential(nn.Flatten(), nn.Dropout(0.0), nn.BatchNorm1d(64), nn.Dropout(0.5))
    dropping = copy.deepcopy(plain)
    dropping[1].p = 0.5
    before = torch.get_rng_state()
    for network in (plain, dropping):
        recompute_batch_norm(network, batches())
    assert torch.equal(torch.get_rng_state(), before)
    assert all(module.training for module in dropping.modules())
    assert torch.equal(plain[2].running_var, dropping[2].running_var)


def test_a_network_without_norms_needs_no_refreshing():
    network = nn.Flatten()
    recompute_batch_norm(network, batches())


def test_using_an_average_leaves_the_weights_even_after_an_error():
    ours = AveragedNetwork(new_network(), ["ema", "swa"])
    list(go(ours, epochs=1))
    before = copy.deepcopy(ours.network.state_dict())
    first = next(iter(before))
    with ours.using("ema") as network:
        assert not torch.equal(network.state_dict()[first], before[first])
    with pytest.raises(KeyError), ours.using("ema"):
        raise KeyError
    for name, value in ours.network.state_dict().items():
        assert torch.equal(value, before[name])


def test_it_trains_and_answers_as_the_network_alone():
    plain, averaged = new_network(), AveragedNetwork(new_network(), ["ema", "swa"])
    losses = [[result.loss for result in go(one)] for one in (plain, averaged)]
    assert losses[0] == losses[1]
    images = batches().take(torch.arange(5))
    assert torch.equal(plain.eval()(images), averaged.eval()(images))


def test_averages_are_part_of_the_state():
    whole, first = AveragedNetwork(new_network(), ["ema"]), AveragedNetwork(new_network(), ["ema"])
    list(go(whole))
    state = [copy.deepcopy(result.state) for result in go(first)][1]  # it goes on changing
    rest = AveragedNetwork(new_network(), ["ema"])
    recipe = Recipe(epochs=4, batch=16)
    list(train_loop(rest, CrossEntropy(), batches(), LABELS, recipe=recipe, seed=1, state=state))
    for name, value in whole.state_dict().items():
        assert torch.equal(rest.state_dict()[name], value)
