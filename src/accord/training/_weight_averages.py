"""Exponential moving averages (EMA) and stochastic weight averages (SWA)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from accord.training._batches import Batches
from accord.training._loop import evaluation_mode

DECAY: Final = 0.999  # of the moving average, at each step; less in the first ones
BEGIN: Final = 0.75  # fraction of the training after which epochs are averaged


class AveragedNetwork(nn.Module):
    """Network wrapper that averages weights during training.

    The averages are buffers, and not torch's `AveragedModel`: they are saved, resumed and moved
    with the network, and a CUDA graph can update them. `using` predicts with an average.
    """

    def __init__(self, network: nn.Module, kinds: Sequence[str]) -> None:
        super().__init__()
        self.network = network
        self.kinds = tuple(kinds)
        self._names = [
            name for name, value in network.state_dict().items() if value.is_floating_point()
        ]
        for kind in self.kinds:
            for position, value in enumerate(self._values()):
                self.register_buffer(f"{kind}_{position}", value.detach().clone())
        self.register_buffer("steps", torch.zeros(()))  # in ema
        self.register_buffer("averaged", torch.zeros((), dtype=torch.long))  # epochs, in swa

    def forward(self, samples: Tensor) -> Tensor:
        logits: Tensor = self.network(samples)
        return logits

    @torch.no_grad()
    def after_step(self) -> None:
        if "ema" in self.kinds:
            step = self.get_buffer("steps")
            step += 1
            weight = (9 / (10 + step)).clamp(min=1 - DECAY)
            averages = self._averages("ema")
            ahead = torch._foreach_sub(self._values(), averages)  # noqa: SLF001
            torch._foreach_mul_(ahead, weight)
            torch._foreach_add_(averages, ahead)

    @torch.no_grad()
    def end_epoch(self, share: float) -> None:
        """Update the SWA after an epoch, given the completed share of training."""
        if "swa" in self.kinds and share >= BEGIN:
            count = self.get_buffer("averaged")
            count += 1
            torch._foreach_lerp_(self._averages("swa"), self._values(), 1 / int(count))

    @contextmanager
    def using(self, kind: str) -> Iterator[nn.Module]:
        """Context manager that temporarily replaces the weights by their averages."""
        values = self._values()
        kept = [value.detach().clone() for value in values]
        _copy(values, self._averages(kind))
        try:
            yield self.network
        finally:
            _copy(values, kept)

    def _values(self) -> list[Tensor]:
        state = self.network.state_dict()
        return [state[name] for name in self._names]

    def _averages(self, kind: str) -> list[Tensor]:
        return [self.get_buffer(f"{kind}_{position}") for position in range(len(self._names))]


def unwrap_average(network: nn.Module) -> nn.Module:
    return network.network if isinstance(network, AveragedNetwork) else network


@torch.no_grad()
def _copy(there: Iterable[Tensor], values: Iterable[Tensor]) -> None:
    for one, value in zip(there, values, strict=True):
        one.copy_(value)


@torch.no_grad()
def recompute_batch_norm(network: nn.Module, samples: Batches, *, batch: int = 1024) -> None:
    """Recompute the statistics of batch normalisation on the training samples.

    Averaged weights have other activations than those the statistics were tracked for. Unlike
    torch's `update_bn`, all other layers stay in evaluation mode: dropout draws nothing.
    """
    norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    kept = [(norm.momentum, norm.training) for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
    try:
        with evaluation_mode(network):
            for norm in norms:
                norm.train()
            for part in samples.stream(torch.arange(len(samples)).split(batch)):
                network(part)
    finally:
        for norm, (momentum, training) in zip(norms, kept, strict=True):
            norm.momentum = momentum
            norm.train(training)
