"""Random number generation for training, independent of torch's global random state."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

LEAST_AREA: Final = 0.08  # of an image, in a resized crop
MOST_STRETCH: Final = 4 / 3  # aspect ratio of a resized crop, or its inverse


class Draws(NamedTuple):
    order: Tensor  # (sample,), a permutation
    flips: Tensor  # (sample,), whether to mirror
    moves: Tensor  # (sample, 2), pixels down and to the right, in -reach..reach
    windows: Tensor  # (sample, 4), top, left, height and width of the crop; or (0, 4)


def derive_seed(*parts: int) -> int:
    """Derive a seed from integers.

    >>> derive_seed(0, 1) == derive_seed(0, 1), derive_seed(0, 1) == derive_seed(1, 0)
    (True, False)
    """
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))


def draw_epoch(
    samples: int, *, seed: int, epoch: int, reach: int = 0, windows: bool = False
) -> Draws:
    """Draw the sample order and augmentations of an epoch on the CPU."""
    generator = torch.Generator().manual_seed(derive_seed(seed, epoch, 0))
    return Draws(
        torch.randperm(samples, generator=generator),
        torch.randint(0, 2, (samples,), generator=generator) == 1,
        torch.randint(-reach, reach + 1, (samples, 2), generator=generator),
        _draw_windows(samples if windows else 0, generator),
    )


def _draw_windows(samples: int, generator: torch.Generator) -> Tensor:
    """Draw windows with 8 to 100 % of the area of an image and aspect ratios of 3:4 to 4:3.

    A window larger than the image is cut to its size.
    """
    area, ratio, top, left = torch.rand(samples, 4, generator=generator).unbind(dim=1)
    area = LEAST_AREA + (1 - LEAST_AREA) * area
    stretch = ((2 * ratio - 1) * math.log(MOST_STRETCH)).exp()
    height = (area / stretch).sqrt().clamp(max=1)
    width = (area * stretch).sqrt().clamp(max=1)
    return torch.stack([top * (1 - height), left * (1 - width), height, width], dim=1)


class IsolatedRandomState:
    """Random state for dropout, separate from the global state of torch."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self._devices = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(devices=self._devices):
            torch.default_generator.manual_seed(seed)
            for one in self._devices:
                with torch.cuda.device(one):
                    torch.cuda.manual_seed(seed)
            self._states = self._get()

    @contextmanager
    def active(self) -> Iterator[None]:
        with torch.random.fork_rng(devices=self._devices):
            torch.set_rng_state(self._states[0])
            for one, state in zip(self._devices, self._states[1:], strict=True):
                torch.cuda.set_rng_state(state, one)
            try:
                yield
            finally:
                self._states = self._get()

    def _get(self) -> list[Tensor]:
        return [torch.get_rng_state(), *(torch.cuda.get_rng_state(one) for one in self._devices)]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Context manager that seeds torch temporarily.

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
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
