"""What a network makes of each sample at chosen layers, gathered batch by batch."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accord.errors import PredictionError
from accord.recorders.undisturbed import undisturbed
from accord.rivals.layers import INPUT, find_layer
from accord.training.batches import Batches, stream_batches
from accord.training.loop import out_of_memory_named, precision

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

    >>> from accord.training.batches import TableBatches
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
        undisturbed(network),
        out_of_memory_named(),
        precision(samples.device, bfloat16),
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
