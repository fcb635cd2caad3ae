"""Where all randomness of training comes from: a seed, an epoch, nothing else.

Each epoch draws from its own seed, so that training can go on from any epoch without a stored
random state, and every loop that asks here shuffles and augments alike.
"""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

LEAST_AREA: Final = 0.08  # of an image, that a resized crop shows
MOST_STRETCH: Final = 4 / 3  # of a resized crop's width against its height, or the other way


class Draws(NamedTuple):
    """What chance decides in one epoch."""

    order: Tensor  # (sample,), a permutation
    flips: Tensor  # (sample,), whether to mirror
    moves: Tensor  # (sample, 2), pixels down and to the right, in -reach..reach
    windows: Tensor  # (sample, 4), top, left, height and width to cut out; or (0, 4)


def derive_seed(*parts: int) -> int:
    """Mix whole numbers into a new seed.

    >>> derive_seed(0, 1) == derive_seed(0, 1), derive_seed(0, 1) == derive_seed(1, 0)
    (True, False)
    """
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))


def draw_epoch(
    samples: int, *, seed: int, epoch: int, reach: int = 0, windows: bool = False
) -> Draws:
    """Draw an epoch's order, flips and moves; on the CPU, so that every device sees the same."""
    generator = torch.Generator().manual_seed(derive_seed(seed, epoch, 0))
    return Draws(
        torch.randperm(samples, generator=generator),
        torch.randint(0, 2, (samples,), generator=generator) == 1,
        torch.randint(-reach, reach + 1, (samples, 2), generator=generator),
        _draw_windows(samples if windows else 0, generator),
    )


def _draw_windows(samples: int, generator: torch.Generator) -> Tensor:
    """Draw windows with 8 to 100 % of an image's area, at most a third wider or higher than even.

    A window that would reach beyond the image is cut to its size.
    """
    area, ratio, top, left = torch.rand(samples, 4, generator=generator).unbind(dim=1)
    area = LEAST_AREA + (1 - LEAST_AREA) * area
    stretch = ((2 * ratio - 1) * math.log(MOST_STRETCH)).exp()
    height = (area / stretch).sqrt().clamp(max=1)
    width = (area * stretch).sqrt().clamp(max=1)
    return torch.stack([top * (1 - height), left * (1 - width), height, width], dim=1)


class OwnRandomness:
    """Random numbers for dropout and the like, apart from torch's global ones."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self._devices = [device] if device.type == "cuda" else []
        with self._outside():
            torch.default_generator.manual_seed(seed)
            for one in self._devices:
                with torch.cuda.device(one):
                    torch.cuda.manual_seed(seed)
            self._states = self._get()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Put our numbers in place of the global ones for as long as the context lives."""
        with self._outside():
            self._set(self._states)
            try:
                yield
            finally:
                self._states = self._get()

    def _outside(self) -> AbstractContextManager[None]:
        return torch.random.fork_rng(devices=self._devices)

    def _get(self) -> list[Tensor]:
        return [torch.get_rng_state(), *(torch.cuda.get_rng_state(one) for one in self._devices)]

    def _set(self, states: list[Tensor]) -> None:
        torch.set_rng_state(states[0])
        for one, state in zip(self._devices, states[1:], strict=True):
            torch.cuda.set_rng_state(state, one)
