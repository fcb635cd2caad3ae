"""Layers of a network by name, and which of them to take features from."""

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from torch import nn

from accord.errors import ChoiceError, suggest
from accord.training.networks import (
    MLP,
    DenseNet121,
    MobileNetV2,
    ResNet32,
    SmallCNN,
    WideResNet,
)
from accord.training.networks.from_timm import find_last_layer
from accord.training.networks.resnet import ResNet

INPUT: Final = ":input"  # after a layer's name: what goes into it, not what comes out

_DEPTHS: Final[Mapping[type[nn.Module], tuple[str, ...]]] = MappingProxyType(
    {
        ResNet: ("layer1", "layer2", "layer3", "layer4"),
        ResNet32: ("layer1", "layer2", "layer3"),
        # The last batch norm and rectifier are no layer's output: the linear layer sees them.
        WideResNet: ("stage1", "stage2", "fc:input"),
        DenseNet121: (
            "features.denseblock3.denselayer8",
            "features.denseblock3.denselayer16",
            "classifier:input",
        ),
        # Before each convolution that halves the image, and at the end.
        MobileNetV2: ("features.3", "features.6", "features.13", "features.18"),
        SmallCNN: ("features.2", "features.5", "features.9"),
    }
)


def default_layers(network: nn.Module) -> tuple[str, ...]:
    """Name the layers at whose depths a network's features are worth a look, the last one last.

    For a network that Accord does not know, it is the input of its last linear layer.

    Raises:
        ChoiceError: a network without a linear layer.

    >>> default_layers(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
    ('2:input',)
    """
    for kind, layers in _DEPTHS.items():
        if isinstance(network, kind):
            return layers
    if isinstance(network, MLP) and len(network.hidden):
        children = network.hidden.named_children()
        return tuple(f"hidden.{name}" for name, layer in children if isinstance(layer, nn.ReLU))
    return (last_layer(network) + INPUT,)


def last_layer(network: nn.Module) -> str:
    """Name the layer that gives a network's logits: as the network says, or its last linear one.

    Raises:
        ChoiceError: a network without a linear layer.
    """
    named = getattr(network, "last_layer", None) or find_last_layer(network)
    if isinstance(named, str):
        return named
    modules = network.named_modules()
    linear: list[str] = [name for name, layer in modules if isinstance(layer, nn.Linear)]
    if not linear:
        raise ChoiceError(
            f"{type(network).__name__} has no linear layer, and so none that gives the logits. "
            "Name the layers to take features from."
        )
    return linear[-1]


def find_layer(network: nn.Module, name: str) -> nn.Module:
    """Return a layer by its name, with or without `:input`.

    Raises:
        ChoiceError: no such layer; the message offers the nearest.

    >>> find_layer(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), "1:input")
    ReLU()
    """
    layers: dict[str, nn.Module] = {known: one for known, one in network.named_modules() if known}
    wanted = name.removesuffix(INPUT)
    if wanted not in layers:
        near = difflib.get_close_matches(wanted, layers, n=1)
        # Not all of them: a DenseNet has hundreds.
        offered = near or [child for child, _ in network.named_children()]
        raise ChoiceError(
            f"{type(network).__name__} has no layer {wanted!r}. {suggest(wanted, offered)}"
        )
    return layers[wanted]
