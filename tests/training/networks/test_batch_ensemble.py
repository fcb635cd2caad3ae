"""Members of a BatchEnsemble are networks of their own that share their weights."""

import pytest
import torch
from narrow_networks import NARROW
from torch import nn
from torch.nn import functional

from accord.errors import ChoiceError, PredictionError
from accord.training.networks import (
    NETWORKS,
    BatchEnsembleConv2d,
    BatchEnsembleLinear,
    build,
    parameter_groups,
    to_batch_ensemble,
)

MEMBERS = 3
OPTIONS = {**NARROW, "mobilenetv2": {"dropout": 0.0}}


def new_network(name="small-cnn"):
    """In float64, its batch norms as after some training."""
    sizes = {"classes": 5, "channels": 3, "size": 8, "seed": 0}
    network = build(name, **sizes, **OPTIONS[name]).double()
    generator = torch.Generator().manual_seed(0)
    for norm in network.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.momentum = 1.0
            for value in (norm.weight.data, norm.bias.data):
                value.copy_(torch.rand(value.shape, generator=generator) + 0.5)
    network(images())
    return network


def assert_same(got, wanted):
    scale = wanted.abs().max()
    torch.testing.assert_close(got / scale, wanted / scale, atol=1e-9, rtol=0)


def images(samples=4):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(samples, 3, 8, 8, generator=generator, dtype=torch.float64)


def owned(ensemble):
    return [module for module in ensemble.modules() if hasattr(module, "r")]


def capture_state(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def in_double(layer):
    """The layer in float64, its biases no longer alike."""
    layer = layer.double()
    if layer.bias is not None:
        nn.init.normal_(layer.bias)
    return layer


def biases_of(layer):
    return [None] * MEMBERS if layer.bias is None else layer.bias


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("between", [(), (4,), (2, 4)])
def test_linear_layer_equals_a_loop_over_its_members(bias, between):
    layer = in_double(BatchEnsembleLinear(nn.Linear(6, 7, bias=bias), members=MEMBERS))
    batch = torch.randn(MEMBERS, 5, *between, 6, dtype=torch.float64)
    slow = [
        functional.linear(part * r, layer.weight) * s + (0 if one is None else one)
        for part, r, s, one in zip(batch, layer.r, layer.s, biases_of(layer), strict=True)
    ]
    torch.testing.assert_close(layer(batch.flatten(0, 1)), torch.cat(slow))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False},
        {"stride": 2, "padding": 1},
        {"groups": 2, "dilation": 2, "padding": 2},
        {"padding": "same"},
    ],
)
def test_convolution_equals_a_loop_over_its_members(options):
    layer = in_double(BatchEnsembleConv2d(nn.Conv2d(4, 6, 3, **options), members=MEMBERS))
    batch = torch.randn(MEMBERS, 5, 4, 9, 8, dtype=torch.float64)
    geometry = {name: value for name, value in options.items() if name != "bias"}
    slow = [
        functional.conv2d(part * r.view(-1, 1, 1), layer.weight, **geometry) * s.view(-1, 1, 1)
        + (0 if one is None else one.view(-1, 1, 1))
        for part, r, s, one in zip(batch, layer.r, layer.s, biases_of(layer), strict=True)
    ]
    torch.testing.assert_close(layer(batch.flatten(0, 1)), torch.cat(slow))


@pytest.mark.parametrize("name", OPTIONS)
def test_members_that_own_only_ones_equal_the_plain_network(name):
    plain = new_network(name)
    ensemble = to_batch_ensemble(plain, members=MEMBERS, seed=0)
    for layer in owned(ensemble):
        nn.init.ones_(layer.r)
        nn.init.ones_(layer.s)
    plain.eval(), ensemble.eval()
    assert_same(ensemble(images()), plain(images()).expand(MEMBERS, -1, -1))
    plain.train(), ensemble.train()
    # Batch norms see each sample three times: the same mean, the same spread.
    assert_same(ensemble(images()), plain(images()).expand(MEMBERS, -1, -1))


@pytest.mark.parametrize("name", OPTIONS)
def test_every_member_equals_the_plain_network_with_its_own_weights(name):
    """W ∘ (s rᵀ), with a bias of its own, does what x ∘ r, W, ∘ s do."""
    plain = new_network(name).eval()
    ensemble = to_batch_ensemble(plain, members=MEMBERS, seed=0).eval()
    layers = dict(ensemble.network.named_modules())
    together = ensemble(images())
    for member in range(MEMBERS):
        for path, module in plain.named_modules():
            if isinstance(module, (nn.Linear, nn.Conv2d)):
                layer = layers[path]
                r, s = layer.r[member], layer.s[member]
                groups = getattr(module, "groups", 1)
                # (output, input of its group): each output channel sees its group's inputs.
                seen = r.view(groups, -1).repeat_interleave(len(s) // groups, dim=0)
                outer = s[:, None] * seen
                outer = outer.view(*outer.shape, *[1] * (module.weight.ndim - 2))
                module.weight.data = layer.weight.data * outer.data
        assert_same(together[member], plain(images()))
    assert (together[0] - together[1]).abs().max() > 0.01 * together.abs().max()


def test_what_members_own_starts_around_one_and_follows_from_the_seed():
    plain = build("mlp", classes=5, channels=3000, size=1, seed=0, widths=[3000])
    before = torch.random.get_rng_state()
    first, again, other = (to_batch_ensemble(plain, members=4, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    layer = owned(first)[0]
    for vector in (layer.r, layer.s):
        assert vector.shape == (4, 3000)
        assert vector.mean().item() == pytest.approx(1, abs=0.02)
        assert vector.std().item() == pytest.approx(0.5, abs=0.02)
    assert torch.equal(layer.r, owned(again)[0].r)
    assert not torch.equal(layer.r, owned(other)[0].r)
    assert torch.equal(layer.bias, plain.hidden[0].bias.expand(4, -1))


def test_the_network_given_is_left_alone():
    plain = new_network()
    before = capture_state(plain)
    ensemble = to_batch_ensemble(plain, members=2, seed=0)
    ensemble(images()).sum().backward()
    for parameter in ensemble.parameters():
        parameter.data.add_(1)
    assert all(torch.equal(value, before[name]) for name, value in plain.state_dict().items())
    assert all(parameter.grad is None for parameter in plain.parameters())
    assert not owned(plain)


def test_every_layer_with_weights_is_given_members_and_batch_norms_are_shared():
    plain = new_network("mobilenetv2")
    ensemble = to_batch_ensemble(plain, members=2, seed=0)
    kinds = (nn.Linear, nn.Conv2d)
    assert not [one for one in ensemble.modules() if isinstance(one, kinds)]
    assert len(owned(ensemble)) == len([one for one in plain.modules() if isinstance(one, kinds)])
    norms = [one for one in ensemble.modules() if isinstance(one, nn.BatchNorm2d)]
    assert len(norms) == 52


def test_four_members_of_the_wide_network_cost_little():
    with torch.device("meta"):
        plain = build("wideresnet28-10", classes=10, channels=3, size=32, seed=0)
    ensemble = to_batch_ensemble(plain, members=4, seed=0)
    more = sum(one.numel() for one in ensemble.parameters()) / 36_479_194
    assert 1.0 < more < 1.01


def test_an_ensemble_still_checks_its_images():
    ensemble = to_batch_ensemble(new_network(), members=2, seed=0)
    with pytest.raises(PredictionError, match=r"small-cnn takes images .*got \(4, 5, 8, 8\)"):
        ensemble(torch.rand(2, 5, 8, 8))


def test_gradients_of_what_members_own_are_halved():
    """One step of descent by the groups, and one by hand."""
    ensemble = to_batch_ensemble(new_network(), members=2, seed=0)
    before = capture_state(ensemble)
    groups = parameter_groups(ensemble, lr=0.1, weight_decay=0.01)
    optimizer = torch.optim.SGD(groups, lr=99.0, momentum=0.9)
    given = torch.arange(4).repeat(2) % 5
    functional.cross_entropy(ensemble(images()).flatten(0, 1), given).backward()
    gradients = {name: one.grad.clone() for name, one in ensemble.named_parameters()}
    optimizer.step()
    for name, parameter in ensemble.named_parameters():
        end = name.rpartition(".")[2]
        own = end in ("r", "s") or name == "network.head.bias"
        decay = 0.0 if end in ("r", "s") else 0.01
        step = gradients[name] + decay * before[name]
        wanted = before[name] - 0.1 * (0.5 if own else 1.0) * step
        torch.testing.assert_close(parameter.detach(), wanted, msg=name)


def test_groups_carry_their_factor_for_a_schedule():
    ensemble = to_batch_ensemble(new_network(), members=2, seed=0)
    groups = parameter_groups(ensemble, lr=0.1, weight_decay=0.01)
    assert [(one["lr_factor"], one["lr"], one["weight_decay"]) for one in groups] == [
        (1.0, 0.1, 0.01),
        (0.5, 0.05, 0.01),
        (0.5, 0.05, 0.0),
    ]
    grouped = [id(one) for group in groups for one in group["params"]]
    assert sorted(grouped) == sorted(id(one) for one in ensemble.parameters())


def test_a_plain_network_is_one_group():
    plain = new_network()
    (group,) = parameter_groups(plain, lr=0.1, weight_decay=0.01)
    assert [id(one) for one in group["params"]] == [id(one) for one in plain.parameters()]
    assert group["lr"] == 0.1


def test_batch_that_is_not_tiled_is_refused():
    ensemble = to_batch_ensemble(new_network(), members=3, seed=0)
    with pytest.raises(PredictionError, match=r"of 3 members.*got 4 samples\. Call the Batch"):
        ensemble.network(images(4))


class Strange(nn.Linear):
    pass


@pytest.mark.parametrize(
    ("network", "members", "message"),
    [
        (nn.Sequential(nn.Linear(2, 2)), 0, "at least 1 member; got 0"),
        (nn.Sequential(nn.ReLU()), 2, "Sequential contains no linear layer or convolution"),
        (nn.Sequential(Strange(2, 2)), 2, "a Strange cannot have members.*'0' of a Sequential"),
        (
            nn.Sequential(nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect")),
            2,
            "supports only zero padding; got padding_mode='reflect'",
        ),
    ],
)
def test_what_cannot_have_members_is_refused(network, members, message):
    with pytest.raises(ChoiceError, match=message):
        to_batch_ensemble(network, members=members, seed=0)


def test_all_networks_are_covered_here():
    assert {*OPTIONS, "random"} == NETWORKS.keys()


@pytest.mark.parametrize("plain", [nn.Linear(4, 3), nn.Conv2d(4, 3, 3)])
def test_member_layers_stay_in_the_type_of_what_they_are_given(plain):
    """Under autocast; a product with float32 vectors would widen everything behind it."""
    layer = to_batch_ensemble(nn.Sequential(plain), members=2, seed=0).network[0]
    batch = torch.ones(2, 4, *[5, 5][: 2 * isinstance(plain, nn.Conv2d)], dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(batch).dtype == torch.bfloat16
