"""A network that guesses: the adversary in an ensemble, for ablations."""

from typing import ClassVar, Final

import torch
from torch import Tensor, nn

SURE: Final = 20.0  # the logit of the guess beside zeros: all but certain of it
_STEP: Final = -0x61C8864680B583EB  # splitmix64's odd constants, as signed numbers
_FIRST: Final = -0x40A7B892E31B1A47
_SECOND: Final = -0x6B2FB644ECCEEE15


class RandomPredictor(nn.Module):
    """Predicts a class uniformly at random, another at each epoch, and is sure of it.

    What it says of a sample follows from the seed, the epoch and the sample's own numbers:
    the batch plays no part, and two identical samples get one guess. There is nothing to
    train; call `start_epoch` instead.

    Args:
        classes: how many classes to choose from.
    """

    trainable: ClassVar = False
    seed: Tensor
    epoch: Tensor

    def __init__(self, *, classes: int) -> None:
        super().__init__()
        self.classes = classes
        self.register_buffer("seed", torch.randint(2**62, ()))
        self.register_buffer("epoch", torch.zeros((), dtype=torch.int64))

    def start_epoch(self, epoch: int) -> None:
        """Guess anew from here on, as the epoch says."""
        self.epoch.fill_(epoch)

    def forward(self, samples: Tensor) -> Tensor:  # (sample, …)
        """Return the logits, (sample, class)."""
        numbers = samples.flatten(start_dim=1).double().view(torch.int64)
        places = torch.arange(numbers.shape[1], device=numbers.device) * _STEP
        # Mixed before the sum: the low bits of round numbers such as 1.0 are all zero.
        names = _mix(numbers + places).sum(dim=1)
        chances = _mix(names + _mix(self.seed + self.epoch * _STEP))
        guesses = ((chances >> 32) & 0xFFFFFFFF) * self.classes >> 32
        return SURE * nn.functional.one_hot(guesses, self.classes).float()


def _mix(values: Tensor) -> Tensor:
    """Scramble 64 bits, as splitmix64 does; sums and products wrap around."""
    values = (values ^ _shift(values, 30)) * _FIRST
    values = (values ^ _shift(values, 27)) * _SECOND
    return values ^ _shift(values, 31)


def _shift(values: Tensor, bits: int) -> Tensor:
    # torch fills up with the sign; these are meant as unsigned.
    return (values >> bits) & ((1 << (64 - bits)) - 1)
