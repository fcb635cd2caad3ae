"""Networks match their papers, start from their seed alone, and check their inputs."""

import pytest
import torch
from narrow_networks import IMAGENET, SMALL, TRAINABLE, build_narrow, without_storage
from torch import nn
from torch.nn import functional

from accord.errors import ChoiceError
from accord.training.networks import NETWORKS, build
from accord.training.networks._registry import call_with_options


def weights(network):
    return torch.cat([value.flatten().double() for value in network.state_dict().values()])


@pytest.mark.parametrize(
    ("name", "sizes", "parameters"),
    [
        ("resnet18", SMALL, 11_173_962),
        ("resnet18", IMAGENET, 11_689_512),
        ("resnet32", SMALL, 464_154),  # published as 0.46 M
        ("resnet50", IMAGENET, 25_557_032),
        ("densenet121", IMAGENET, 7_978_856),
        ("densenet121", SMALL, 6_956_426),  # published as 7.0 M
        ("wideresnet28-10", SMALL, 36_479_194),  # published as 36.5 M
        ("mobilenetv2", IMAGENET, 3_504_872),
        ("mlp", {"classes": 3, "channels": 7, "size": 1}, 8 * 256 + 257 * 256 + 257 * 3),
        ("random", SMALL, 0),
    ],
)
def test_number_of_parameters_is_the_published_one(name, sizes, parameters):
    network = without_storage(name, **sizes)
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters


@pytest.mark.parametrize(
    ("name", "entries", "some"),
    [
        ("resnet18", 122, "layer2.0.downsample.1.running_var layer4.1.conv2.weight fc.bias"),
        ("resnet50", 320, "layer1.0.downsample.0.weight layer3.5.bn3.bias bn1.weight fc.weight"),
        (
            "densenet121",
            727,
            "features.conv0.weight features.denseblock4.denselayer16.conv2.weight "
            "features.transition3.norm.bias features.norm5.weight classifier.bias",
        ),
        (
            "mobilenetv2",
            314,
            "features.0.0.weight features.1.conv.1.weight features.17.conv.3.running_mean "
            "features.18.1.bias classifier.1.weight",
        ),
    ],
)
def test_weights_are_named_as_torchvision_names_them(name, entries, some):
    names = without_storage(name, **IMAGENET).state_dict().keys()
    assert len(names) == entries
    assert set(some.split()) <= names


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (1, 28), (3, 32), (3, 64), (3, (16, 24))])
@pytest.mark.parametrize("name", NETWORKS)
def test_every_size_of_image_gives_one_logit_per_class(name, channels, size):
    network = build_narrow(name, classes=7, channels=channels, size=size).eval()
    rows, columns = (size, size) if isinstance(size, int) else size
    with torch.inference_mode():
        assert network(torch.rand(2, channels, rows, columns)).shape == (2, 7)


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "densenet121", "mobilenetv2"])
def test_full_width_takes_images_of_imagenet(name):
    network = build(name, **IMAGENET, seed=0).eval()
    with torch.inference_mode():
        logits = network(torch.randn(1, 3, 224, 224))
    assert logits.shape == (1, 1000)
    assert logits.isfinite().all()


@pytest.mark.parametrize("name", TRAINABLE)
def test_every_network_takes_a_step_downhill(name):
    """At full width: a step along the gradient lowers the loss by as much as it promises."""
    options = {"dropout": 0.0} if name == "mobilenetv2" else {}
    network = build(name, classes=3, channels=1, size=8, seed=0, **options).double()
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(4, 1, 8, 8, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 0])
    before = functional.cross_entropy(network(images), labels)
    before.backward()
    gradients = [one.grad for one in network.parameters()]
    assert all(gradient.any() for gradient in gradients)
    promise = 1e-6
    steepness = sum(gradient.square().sum().item() for gradient in gradients)
    torch.optim.SGD(network.parameters(), lr=promise / steepness).step()
    after = functional.cross_entropy(network(images), labels)
    assert (before - after).item() == pytest.approx(promise, rel=0.05)


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_follow_from_the_seed_alone(name):
    first = weights(build_narrow(name, seed=1))
    torch.rand(3)
    before = torch.random.get_rng_state()
    assert torch.equal(weights(build_narrow(name, seed=1)), first)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not torch.equal(weights(build_narrow(name, seed=2)), first)


@pytest.mark.parametrize(
    ("name", "layer", "spread"),
    [
        ("resnet18", "layer4.0.conv1", (2 / (512 * 9)) ** 0.5),  # outputs, not 256 inputs
        ("densenet121", "features.transition3.conv", (2 / 1024) ** 0.5),  # inputs, not 512 outputs
        ("mobilenetv2", "features.18.0", (2 / 1280) ** 0.5),
        ("mobilenetv2", "classifier.1", 0.01),
    ],
)
def test_weights_start_as_their_authors_start_them(name, layer, spread):
    first = build(name, **SMALL, seed=0).get_submodule(layer).weight
    assert first.std().item() == pytest.approx(spread, rel=0.02)


@pytest.mark.parametrize(
    "network", [build("small-cnn", **SMALL, seed=0), build("resnet18", **SMALL, seed=0, width=8)]
)
def test_convolutions_lie_channels_last(network):
    convolutions = [one.weight for one in network.modules() if isinstance(one, nn.Conv2d)]
    assert all(one.is_contiguous(memory_format=torch.channels_last) for one in convolutions)


def test_networks_are_ready_to_train():
    assert all(build_narrow(name).training for name in NETWORKS)


# The forward passes, by definition: written once more, from the weights' names.


def train_norms(network, images):
    """Batch norms as after some training, or forgetting one would change nothing."""
    generator = torch.Generator().manual_seed(0)
    for norm in network.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.momentum = 1.0
            for value in (norm.weight.data, norm.bias.data):
                value.copy_(2 * torch.rand(value.shape, generator=generator) - 0.5)
    network.train()(images)


class Definition:
    def __init__(self, network):
        self.state = network.state_dict()

    def conv(self, name, images, stride=1, groups=1):
        weight = self.state[f"{name}.weight"]
        return functional.conv2d(
            images, weight, stride=stride, padding=weight.shape[-1] // 2, groups=groups
        )

    def bn(self, name, images):
        parts = ("running_mean", "running_var", "weight", "bias")
        return functional.batch_norm(images, *(self.state[f"{name}.{part}"] for part in parts))

    def linear(self, name, images):
        average = functional.adaptive_avg_pool2d(images, 1).flatten(1)
        return average @ self.state[f"{name}.weight"].T + self.state[f"{name}.bias"]

    def resnet(self, images, *, depths, layers, imagenet=False, pads=False):
        out = self.bn("bn1", self.conv("conv1", images, stride=2 if imagenet else 1)).relu()
        if imagenet:
            out = functional.max_pool2d(out, 3, stride=2, padding=1)
        for stage, depth in enumerate(depths, start=1):
            for block in range(depth):
                name = f"layer{stage}.{block}"
                stride = 2 if block == 0 and stage > 1 else 1
                side = out
                if f"{name}.downsample.0.weight" in self.state:
                    side = self.conv(f"{name}.downsample.0", out, stride)
                    side = self.bn(f"{name}.downsample.1", side)
                elif stride == 2 and pads:
                    zeros = torch.zeros_like(out[:, ::2, ::2, ::2])
                    side = torch.cat([zeros, out[:, :, ::2, ::2], zeros], dim=1)
                strides = [stride, 1] if layers == 2 else [1, stride, 1]
                for number, one in enumerate(strides, start=1):
                    out = self.bn(f"{name}.bn{number}", self.conv(f"{name}.conv{number}", out, one))
                    out = out.relu() if number < layers else (out + side).relu()
        return self.linear("fc", out)

    def densenet(self, images):
        out = self.bn("features.norm0", self.conv("features.conv0", images)).relu()
        for block, depth in enumerate((6, 12, 24, 16), start=1):
            seen = [out]
            for layer in range(1, depth + 1):
                name = f"features.denseblock{block}.denselayer{layer}"
                new = torch.cat(seen, dim=1)
                for part in (1, 2):
                    new = self.conv(f"{name}.conv{part}", self.bn(f"{name}.norm{part}", new).relu())
                seen.append(new)
            out = torch.cat(seen, dim=1)
            if block < 4:
                name = f"features.transition{block}"
                out = self.conv(f"{name}.conv", self.bn(f"{name}.norm", out).relu())
                out = functional.avg_pool2d(out, 2)
        return self.linear("classifier", self.bn("features.norm5", out).relu())

    def wide_resnet(self, images):
        out = self.conv("conv1", images)
        for stage in (1, 2, 3):
            for block in range(4):
                name = f"stage{stage}.{block}"
                stride = 2 if block == 0 and stage > 1 else 1
                ready = self.bn(f"{name}.bn1", out).relu()
                if f"{name}.shortcut.weight" in self.state:
                    out = self.conv(f"{name}.shortcut", ready, stride)
                inner = self.bn(f"{name}.bn2", self.conv(f"{name}.conv1", ready, stride)).relu()
                out = out + self.conv(f"{name}.conv2", inner)
        return self.linear("fc", self.bn("bn1", out).relu())

    def mobilenet(self, images, *, strides):
        def step(name, images, stride=1, groups=1):
            out = self.conv(f"{name}.0", images, stride, groups)
            return self.bn(f"{name}.1", out).clamp(0, 6)

        out = step("features.0", images, strides[0])
        for number, stride in enumerate(strides[1:], start=1):
            name = f"features.{number}.conv"
            inner = step(f"{name}.0", out) if number > 1 else out
            wide = inner.shape[1]
            inner = step(f"{name}.{int(number > 1)}", inner, stride, groups=wide)
            last = 1 + int(number > 1)
            inner = self.bn(f"{name}.{last + 1}", self.conv(f"{name}.{last}", inner))
            out = out + inner if inner.shape == out.shape else inner
        return self.linear("classifier.1", step("features.18", out))


FIRST_STAGES = {"small": [1, 1, 1, 1], "imagenet": [2, 1, 2, 1]}
LATER_STAGES = [2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1]


@pytest.mark.parametrize(
    ("name", "options", "by_definition"),
    [
        ("resnet18", {}, lambda one, x: one.resnet(x, depths=(2, 2, 2, 2), layers=2)),
        (
            "resnet18",
            {"stem": "imagenet"},
            lambda one, x: one.resnet(x, depths=(2, 2, 2, 2), layers=2, imagenet=True),
        ),
        ("resnet50", {}, lambda one, x: one.resnet(x, depths=(3, 4, 6, 3), layers=3)),
        ("resnet32", {}, lambda one, x: one.resnet(x, depths=(5, 5, 5), layers=2, pads=True)),
        ("densenet121", {}, lambda one, x: one.densenet(x)),
        ("wideresnet28-10", {}, lambda one, x: one.wide_resnet(x)),
        *(
            (
                "mobilenetv2",
                {"stem": stem},
                lambda one, x, first=first: one.mobilenet(x, strides=first + LATER_STAGES),
            )
            for stem, first in FIRST_STAGES.items()
        ),
    ],
)
def test_forward_pass_equals_the_definition(name, options, by_definition):
    network = build_narrow(name, size=16, **options).double()
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(4, 3, 16, 16, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        train_norms(network, images)
        logits = network.eval()(images)
        assert logits.std(dim=0).min() > 0.001 * logits.abs().max()
        wanted = by_definition(Definition(network), images)
    torch.testing.assert_close(logits, wanted, atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    ("name", "options", "smallest"),
    [
        ("small-cnn", {}, 2),
        ("resnet18", {"stem": "imagenet"}, 1),
        ("resnet32", {}, 1),
        ("densenet121", {}, 8),
        ("densenet121", {"stem": "imagenet"}, 29),
        ("wideresnet28-10", {}, 1),
        ("mobilenetv2", {"stem": "imagenet"}, 1),
    ],
)
def test_smallest_image_is_the_smallest_that_works(name, options, smallest):
    network = build_narrow(name, size=smallest, **options).eval()
    with torch.inference_mode():
        assert network(torch.rand(1, 3, smallest, smallest)).shape == (1, 10)
        if smallest > 1:
            network._forward_pre_hooks.clear()
            with pytest.raises(RuntimeError, match="too small"):
                network(torch.rand(1, 3, smallest - 1, smallest - 1))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("resnet81", {}, r"no network is called 'resnet81'\. Did you mean 'resnet18'\?"),
        ("", {}, r"no network is called ''\. There are: mlp, small-cnn, .*, random$"),
        ("small-cnn", {"widht": 3}, r"small-cnn has no option 'widht'\. Did you mean 'width'\?"),
        ("random", {"width": 3}, r"random has no option 'width'\. There are none\."),
        ("small-cnn", {"width": -4}, r"small-cnn cannot be built with width=-4: .* out of range\?"),
        ("small-cnn", {"width": "a"}, r"small-cnn cannot be built with width='a': "),
        pytest.param(
            "small-cnn",
            {"width": 0},
            r"no weights in 'features\.0\.weight': every width must be at least 1",
            marks=pytest.mark.filterwarnings("ignore:Initializing zero-element"),
        ),
        ("resnet18", {"stem": "large"}, r"stem must be one of small, imagenet; got 'large'"),
        ("wideresnet28-10", {"depth": 27}, r"depth must be 6 n \+ 4 .*; got 27"),
        ("wideresnet28-10", {"depth": 4}, r"depth must be 6 n \+ 4 .*; got 4"),
    ],
)
def test_wrong_choices_are_refused_with_what_there_is(name, options, message):
    with pytest.raises(ChoiceError, match=message):
        build(name, **SMALL, seed=0, **options)


@pytest.mark.parametrize(("name", "options"), [("mine:build", {"width": 3}), ("mlp", {})])
def test_errors_of_user_code_are_not_wrapped(name, options):
    def build_nothing(*, width=0):
        raise RuntimeError(f"no layers of width {width}")

    with pytest.raises(RuntimeError, match=r"^no layers of width"):
        call_with_options(build_nothing, name=name, arguments={}, options=options)


# The random predictor.
