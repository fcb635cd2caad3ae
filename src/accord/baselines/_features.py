"""What a network makes of each sample at chosen layers, gathered batch by batch."""

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
from accord.training._batches import Batches, stream_batches
from accord.training._loop import autocast, explain_out_of_memory
from accord.training.networks import MLP, DenseNet121, MobileNetV2, ResNet32, SmallCNN, WideResNet
from accord.training.networks._external import find_last_layer
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


Features = NDArray[np.float32]  # (sample, channel)
Sees = Callable[[str], Batches]  # a split's samples as a network sees them, by the split's name


def extract_features(
    network: nn.Module,
    samples: Batches,
    layers: Sequence[str],
    *,
    batch: int = 1024,
    bfloat16: bool = False,
) -> dict[str, Features]:
    """Return the features (sample, channel) at each layer, images averaged over all their pixels.

    Of the activations, one batch's alone are ever in memory. The network answers in evaluation
    mode and is left exactly as it was.

    Args:
        network: on the device of the samples.
        samples: taken plain, in their order.
        layers: names as in `network.named_modules()`; `NAME:input` is what goes into a layer.
        batch: how many samples to ask about at once.
        bfloat16: whether to compute in it where that is safe.

    Raises:
        ChoiceError: no such layer; the message offers the nearest.
        PredictionError: no samples; or a layer that does not give one vector or image for each
            sample, is not used exactly once, or gives numbers that are not finite.

    >>> from accord.training._batches import TableBatches
    >>> rows, zero, one = np.ones((5, 4), np.float32), np.zeros(4), np.ones(4)
    >>> table = TableBatches(
    ...     rows, device=torch.device("cpu"), mean=zero.astype("f"), spread=one.astype("f")
    ... )
    >>> network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> {name: some.shape for name, some in extract_features(network, table, ["1", "2"]).items()}
    {'1': (5, 8), '2': (5, 3)}
    """
    return extract_with_logits(network, samples, layers, batch=batch, bfloat16=bfloat16)[0]


def extract_with_logits(
    network: nn.Module,
    samples: Batches,
    layers: Sequence[str],
    *,
    batch: int = 1024,
    bfloat16: bool = False,
) -> tuple[dict[str, Features], Features]:
    """Return the features at each layer, and the logits (sample, class) of the same pass.

    Arguments and errors are those of `extract_features`.
    """
    if not len(samples):
        raise PredictionError("there are no samples to take features of.")
    found = {name: find_layer(network, name) for name in layers}
    tables = {name: _Table(f"layer {name!r}", len(samples)) for name in found}
    answers = _Table("the network's last layer", len(samples))
    with (
        ExitStack() as hooks,
        eval_mode(network),
        explain_out_of_memory(),
        autocast(samples.device, bfloat16),
    ):
        for name, layer in found.items():
            hooks.callback(_watch(layer, tables[name], before=name.endswith(INPUT)).remove)
        parts = torch.arange(len(samples)).split(batch)
        for part, taken in zip(parts, stream_batches(samples, parts), strict=True):
            logits = network(taken)
            for table in tables.values():
                table.keep(len(part))
            answers.see(logits)
            answers.keep(len(part))
    return {name: table.finish() for name, table in tables.items()}, answers.finish()


class _Table:
    """Gathers one row for each sample."""

    def __init__(self, what: str, samples: int) -> None:
        self._what, self._samples = what, samples
        self._rows: Features = np.empty((0, 0), np.float32)
        self._kept = 0
        self._seen: list[Tensor] = []

    def see(self, values: object) -> None:
        """Average what a layer gives for a batch."""
        if not isinstance(values, Tensor) or values.ndim not in (2, 4):
            shape = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise PredictionError(
                f"{self._what} must give vectors (sample, channel) or images (sample, channel, "
                f"row, column); got {shape}. Name another layer, or the input of the last one."
            )
        images = values.ndim == 4
        # Averaged here and now: a later layer may write over its input.
        self._seen.append(
            values.mean(dim=(2, 3), dtype=torch.float32) if images else values.clone()
        )

    def keep(self, samples: int) -> None:
        """Keep the one answer for a batch of so many samples."""
        if [len(seen) for seen in self._seen] != [samples]:
            raise PredictionError(
                f"{self._what} must answer once for each sample; for {samples} samples it gave "
                f"{[len(seen) for seen in self._seen]} rows. Is it shared by several places, left "
                "out, or inside a BatchEnsemble?"
            )
        rows = self._seen.pop().float().cpu().numpy()
        if not self._kept:
            self._rows = np.empty((self._samples, rows.shape[1]), np.float32)
        self._rows[self._kept : self._kept + samples] = rows
        self._kept += samples

    def finish(self) -> Features:
        """Return the rows of all samples."""
        if not np.isfinite(self._rows).all():
            raise PredictionError(
                f"{self._what} gives numbers that are not finite. Did the network's loss become "
                "NaN, or is bfloat16 too coarse for it?"
            )
        return self._rows


def _watch(layer: nn.Module, table: _Table, *, before: bool) -> Any:
    if before:
        return layer.register_forward_pre_hook(lambda _, inputs: table.see(inputs[0]))
    return layer.register_forward_hook(lambda _, __, output: table.see(output))
