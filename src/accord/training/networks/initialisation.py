"""How weights start: drawn from a seed, with torch's global random state left as it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import nn


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch draw from the seed for as long as the context lives.

    >>> with seeded(1):
    ...     first = torch.rand(2)
    >>> with seeded(1):
    ...     bool(torch.equal(torch.rand(2), first))
    True
    """
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: that would reseed the accelerators too, which are not forked.
        torch.default_generator.manual_seed(seed)
        yield


def draw_he(network: nn.Module, *, mode: Literal["fan_in", "fan_out"] = "fan_out") -> None:
    """Draw every convolution's weights from He's normal distribution."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
