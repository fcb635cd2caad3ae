"""Features are the outputs of layers, batch by batch, and the network stays unchanged."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from accord.baselines._features import (
    default_layers,
    extract_with_logits,
    find_layer,
    last_layer,
)
from accord.errors import ChoiceError, PredictionError
from accord.training._batches import ImageBatches, TableBatches
from accord.training.networks import NETWORKS, build, to_batch_ensemble

CPU = torch.device("cpu")
SMALL = {
    "resnet18": {"width": 4},
    "resnet32": {"width": 4},
    "resnet50": {"width": 4},
    "densenet121": {"growth": 4},
    "wideresnet28-10": {"depth": 10, "widen": 1},
    "small-cnn": {"width": 4},
    "mlp": {"widths": (6, 5)},
}
DEPTHS = {
    "resnet18": [4, 8, 16, 32],
    "resnet32": [4, 8, 16],
    "resnet50": [16, 32, 64, 128],
    # Block 3 starts from 32 channels: half of 12 * 4 more than half of 8 + 6 * 4.
    "densenet121": [32 + 8 * 4, 32 + 16 * 4, (32 + 24 * 4) // 2 + 16 * 4],
    "wideresnet28-10": [16, 32, 64],
    "mobilenetv2": [24, 32, 96, 1280],
    "small-cnn": [4, 8, 16],
    "mlp": [6, 5],
}


def images(samples=5, *, size=8, channels=3, seed=0):
    pixels = np.random.default_rng(seed).integers(0, 256, (samples, channels, size, size))
    zeros, ones = np.zeros(channels, np.float32), np.full(channels, 64, np.float32)
    return ImageBatches(pixels.astype(np.uint8), device=CPU, mean=zeros, spread=ones)


def table(rows):
    rows = np.asarray(rows, np.float32)
    zeros, ones = np.zeros(rows.shape[1], np.float32), np.ones(rows.shape[1], np.float32)
    return TableBatches(rows, device=CPU, mean=zeros, spread=ones)


def network_of(name):
    return build(name, classes=3, channels=3, size=8, seed=0, **SMALL.get(name, {}))


class Convolutional(nn.Module):
    """A small network whose batch norm and dropout differ between training and evaluation."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(6, 4)

    def forward(self, batch):
        out = torch.relu_(self.norm(self.convolution(batch)))
        return self.head(self.dropout(out.mean(dim=(2, 3))))


def convolutional():
    torch.manual_seed(0)
    network = Convolutional()
    network(torch.randn(8, 3, 8, 8))  # the batch norm has seen something
    return network


def extract_features(*arguments, **options):
    return extract_with_logits(*arguments, **options)[0]


def one_by_one(network, samples):
    """Compute the features of one sample after another."""
    network.eval()
    rows = {"convolution": [], "norm": [], "head:input": [], "head": []}
    with torch.no_grad():
        for position in range(len(samples)):
            image = samples.take(torch.tensor([position]))
            convolved = network.convolution(image)
            normed = network.norm(convolved)
            pooled = torch.relu(normed).mean(dim=(2, 3))
            rows["convolution"].append(convolved[0].flatten(1).mean(dim=1).numpy())
            rows["norm"].append(normed[0].flatten(1).mean(dim=1).numpy())
            rows["head:input"].append(pooled[0].numpy())
            rows["head"].append(network.head(pooled)[0].numpy())
    return {name: np.stack(some) for name, some in rows.items()}


@settings(max_examples=15)
@given(samples=st.integers(1, 9), batch=st.integers(1, 10))
def test_features_equal_those_of_single_samples(samples, batch):
    network, some = convolutional(), images(samples)
    found = extract_features(
        network, some, ["norm", "head:input", "convolution", "head"], batch=batch
    )
    expected = one_by_one(network, some)
    assert list(found) == ["norm", "head:input", "convolution", "head"]
    for name, rows in found.items():
        assert rows.dtype == np.float32
        np.testing.assert_allclose(rows, expected[name], rtol=1e-4, atol=1e-5)


def test_logits_are_those_of_the_same_pass():
    network, some = convolutional(), images(7)
    calls = []
    network.register_forward_hook(lambda *_: calls.append(1))
    features, logits = extract_with_logits(network, some, ["head"], batch=3)
    np.testing.assert_array_equal(features["head"], logits)
    assert len(calls) == 3


def test_the_network_and_all_random_states_are_unchanged():
    network, some = convolutional(), images()
    network.train()
    network.norm.eval()
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()
    extract_features(network, some, ["norm", "head:input"])
    modes = {name: module.training for name, module in network.named_children()}
    assert modes == {"convolution": True, "norm": False, "dropout": True, "head": True}
    assert all(torch.equal(value, weights[name]) for name, value in network.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert hooks_of(network) == 0


def hooks_of(network):
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in network.modules()
    )


def test_hooks_are_removed_after_a_failure_too():
    network = convolutional()
    with pytest.raises(RuntimeError, match="to have 3 channels"):
        extract_features(network, images(channels=1), ["norm"])  # one channel where three belong
    assert hooks_of(network) == 0


def test_bfloat16_gives_float32_features_that_are_close():
    network, some = convolutional(), images()
    layers = ["convolution", "norm", "head:input"]
    exact = extract_features(network, some, layers)
    coarse = extract_features(network, some, layers, bfloat16=True)
    for name in layers:
        assert coarse[name].dtype == np.float32
        np.testing.assert_allclose(coarse[name], exact[name], atol=0.05)
        assert not np.array_equal(coarse[name], exact[name])
    averages = torch.from_numpy(coarse["convolution"])
    assert not torch.equal(averages, averages.bfloat16().float())  # they are not rounded again


def test_a_missing_layer_is_refused_with_the_nearest_name():
    with pytest.raises(ChoiceError, match=r"ResNet18 has no layer 'layer5'\. Did you mean 'layer"):
        extract_features(network_of("resnet18"), images(), ["layer5"])
    with pytest.raises(ChoiceError, match=r"no layer 'x'\. There are: convolution, norm, dr"):
        extract_features(convolutional(), images(), ["x:input"])


def test_a_nested_layer_is_suggested():
    with pytest.raises(ChoiceError, match=r"Did you mean 'features\.denseblock3\.denselayer\d+'\?"):
        extract_features(network_of("densenet121"), images(), ["features.denseblock3.denslayer"])


def test_a_layer_that_overwrites_its_input_does_not_change_the_features():
    network = nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True), nn.Linear(3, 2))
    with torch.no_grad():
        network[0].bias.fill_(-100)
    features = extract_features(network, table(np.zeros((2, 4))), ["0", "1"])
    np.testing.assert_array_equal(features["0"], np.full((2, 3), -100))
    np.testing.assert_array_equal(features["1"], np.zeros((2, 3)))


def test_no_samples_are_refused():
    with pytest.raises(PredictionError, match="no samples"):
        extract_features(convolutional(), images(0), ["norm"])


def test_numbers_that_are_not_finite_are_refused():
    network = convolutional()
    with torch.no_grad():
        network.head.weight.fill_(torch.nan)
    with pytest.raises(PredictionError, match="'head' outputs numbers that are not finite"):
        extract_features(network, images(), ["head"])
    with pytest.raises(PredictionError, match="last layer outputs numbers that are not finite"):
        extract_features(network, images(), ["norm"])


class Odd(nn.Module):
    """A network that uses one layer twice, another never, and a third on sequences."""

    def __init__(self):
        super().__init__()
        self.twice = nn.Linear(4, 4)
        self.never = nn.Linear(4, 4)
        self.sequence = nn.Linear(4, 4)
        self.pair = Pair()

    def forward(self, rows):
        self.pair(rows)
        return self.twice(self.twice(self.sequence(rows[:, None])[:, 0]))


class Pair(nn.Module):
    def forward(self, rows):
        return rows, rows


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        ("twice", r"one vector for each sample; for 5 samples it gave \[5, 5\]"),
        ("never", r"for 5 samples it gave \[\]"),
        ("sequence", r"vectors .* or images .*; got \(5, 1, 4\)"),
        ("pair", r"vectors .* or images .*; got tuple"),
    ],
)
def test_a_layer_without_one_vector_for_each_sample_is_refused(layer, words):
    with pytest.raises(PredictionError, match=words):
        extract_features(Odd(), table(np.ones((5, 4))), [layer])


def test_a_batch_ensemble_is_refused():
    ensemble = to_batch_ensemble(convolutional(), members=2, seed=0)
    with pytest.raises(PredictionError, match=r"gave \[10\]\..*BatchEnsemble"):
        extract_features(ensemble, images(), ["network.norm"])
    with pytest.raises(ChoiceError, match="BatchEnsemble has no linear layer"):
        default_layers(ensemble)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "random"])
def test_default_layers_exist_in_every_network(name):
    network = network_of(name)
    layers = default_layers(network)
    features = extract_features(network, images(), layers)
    assert [features[layer].shape for layer in layers] == [(5, width) for width in DEPTHS[name]]


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "random"])
def test_the_last_default_layer_is_the_input_of_the_last_layer(name):
    network = network_of(name)
    last = default_layers(network)[-1]
    seen = f"{last_layer(network)}:input"
    features = extract_features(network, images(), [last, seen])
    np.testing.assert_allclose(features[last], features[seen], rtol=1e-5, atol=1e-6)


def test_an_unknown_network_gives_the_input_of_its_last_linear_layer():
    network = convolutional()
    assert default_layers(network) == ("head:input",)
    assert find_layer(network, "head:input") is network.head


def test_an_mlp_without_hidden_layers_gives_the_samples():
    network = build("mlp", classes=3, channels=4, size=1, seed=0, widths=())
    rows = np.arange(20).reshape(5, 4)
    (features,) = extract_features(network, table(rows), default_layers(network)).values()
    np.testing.assert_array_equal(features, rows)


def test_a_network_may_name_its_last_layer():
    network = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    assert last_layer(network) == "1"
    network.default_cfg = {"classifier": "0"}  # as timm's networks do
    assert last_layer(network) == "0"


def test_a_network_without_layers_is_refused():
    with pytest.raises(ChoiceError, match="RandomPredictor has no linear layer"):
        default_layers(network_of("random"))
