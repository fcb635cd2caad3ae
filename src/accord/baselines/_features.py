"""Extract features from the layers of a network."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accord._recorders.eval_mode import eval_mode
from accord.errors import ChoiceError, PredictionError, suggest
from accord.training._batches import Batches
from accord.training._loop import autocast, explain_out_of_memory
from accord.training.networks import MLP, DenseNet121, MobileNetV2, SmallCNN, WideResNet
from accord.training.networks._external import find_last_layer
from accord.training.networks.resnet import ResNet

INPUT: Final = ":input"  # after a layer's name: its input, not its output

_DEPTHS: Final[Mapping[type[nn.Module], tuple[str, ...]]] = MappingProxyType(
    {
        # No layer outputs the last batch norm and rectifier: they are the input of the linear one.
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
    """Find the layers that features are extracted from by default, in order.

    The default is the input of the last linear layer for networks from outside Accord.
    """
    if isinstance(network, ResNet):
        return tuple(network.layers)
    for kind, layers in _DEPTHS.items():
        if isinstance(network, kind):
            return layers
    if isinstance(network, MLP) and len(network.hidden):
        children = network.hidden.named_children()
        return tuple(f"hidden.{name}" for name, layer in children if isinstance(layer, nn.ReLU))
    return (last_layer(network) + INPUT,)


def last_layer(network: nn.Module) -> str:
    """Find the name of the layer that outputs the logits, by default the last linear layer.

    A network may name another in its attribute `last_layer`.
    """
    named = getattr(network, "last_layer", None) or find_last_layer(network)
    if isinstance(named, str):
        return named
    modules = network.named_modules()
    linear: list[str] = [name for name, layer in modules if isinstance(layer, nn.Linear)]
    if not linear:
        raise ChoiceError(
            f"{type(network).__name__} has no linear layer that could output the logits. "
            "Name the layers to take features from."
        )
    return linear[-1]


def find_layer(network: nn.Module, name: str) -> nn.Module:
    layers: dict[str, nn.Module] = {known: one for known, one in network.named_modules() if known}
    wanted = name.removesuffix(INPUT)
    if wanted not in layers:
        near = difflib.get_close_matches(wanted, layers, n=1)
        # Without a near name, the children alone: a DenseNet has hundreds of layers.
        names = near or [child for child, _ in network.named_children()]
        raise ChoiceError(
            f"{type(network).__name__} has no layer {wanted!r}. {suggest(wanted, names)}"
        )
    return layers[wanted]


Features = NDArray[np.float32]  # (sample, channel)
LoadSplit = Callable[[str], Batches]  # from the name of a split to its samples


def extract_with_logits(
    network: nn.Module,
    samples: Batches,
    layers: Sequence[str],
    *,
    batch: int = 1024,
    bfloat16: bool = False,
) -> tuple[dict[str, Features], Features]:
    """Extract features of shape (sample, channel) by layer, and logits of shape (sample, class).

    Images are averaged over their pixels. The network, on the device of the samples, is evaluated
    in one pass without changing its state. Activations of one batch at a time are in memory.
    Layers are named as in `network.named_modules()`. `NAME:input` is the input of a layer.
    """
    if not len(samples):
        raise PredictionError("there are no samples to extract features of")
    found = {name: find_layer(network, name) for name in layers}
    tables = {name: _FeatureTable(f"layer {name!r}", len(samples)) for name in found}
    outputs = _FeatureTable("the network's last layer", len(samples))
    with (
        ExitStack() as hooks,
        eval_mode(network),
        explain_out_of_memory(),
        autocast(samples.device, bfloat16),
    ):
        for name, layer in found.items():
            hooks.callback(_add_hook(layer, tables[name], before=name.endswith(INPUT)).remove)
        parts = torch.arange(len(samples)).split(batch)
        for part, taken in zip(parts, samples.stream(parts), strict=True):
            logits = network(taken)
            for table in tables.values():
                table.keep(len(part))
            outputs.see(logits)
            outputs.keep(len(part))
    return {name: table.finish() for name, table in tables.items()}, outputs.finish()


class _FeatureTable:
    """Table of the outputs of a layer for all samples."""

    def __init__(self, name: str, samples: int) -> None:
        self._name, self._samples = name, samples
        self._features: Features = np.empty((0, 0), np.float32)
        self._kept = 0
        self._seen: list[Tensor] = []  # outputs since the last batch was kept

    def see(self, values: object) -> None:
        if not isinstance(values, Tensor) or values.ndim not in (2, 4):
            shape = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise PredictionError(
                f"{self._name} must output vectors (sample, channel) or images (sample, channel, "
                f"row, column); got {shape}. Name another layer, or the input of the last one."
            )
        # Averaged or copied now: a later layer may overwrite its input.
        if values.ndim == 4:
            self._seen.append(values.mean(dim=(2, 3), dtype=torch.float32))
        else:
            self._seen.append(values.clone())

    def keep(self, samples: int) -> None:
        """Store the output for a batch and check that there is exactly one."""
        if [len(seen) for seen in self._seen] != [samples]:
            raise PredictionError(
                f"{self._name} must output one vector for each sample; for {samples} samples it "
                f"gave {[len(seen) for seen in self._seen]}. Is the layer used in several places, "
                "skipped, or inside a BatchEnsemble?"
            )
        values = self._seen.pop().float().cpu().numpy()
        if not self._kept:
            self._features = np.empty((self._samples, values.shape[1]), np.float32)
        self._features[self._kept : self._kept + samples] = values
        self._kept += samples

    def finish(self) -> Features:
        if not np.isfinite(self._features).all():
            raise PredictionError(
                f"{self._name} outputs numbers that are not finite. Did the training loss become "
                "NaN, or is bfloat16 too coarse?"
            )
        return self._features


def _add_hook(layer: nn.Module, table: _FeatureTable, *, before: bool) -> Any:
    if before:
        return layer.register_forward_pre_hook(lambda _, inputs: table.see(inputs[0]))
    return layer.register_forward_hook(lambda _, __, output: table.see(output))
