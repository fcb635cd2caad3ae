"""Small networks and a random predictor."""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Final

import torch
from torch import Tensor, nn

from accord.errors import PredictionError
from accord.training.networks._parts import Size, as_pair


class MLP(nn.Module):
    """Multilayer perceptron with ReLU activations.

    Args:
        classes: the number of classes.
        channels: the number of image channels, or of table columns.
        size: rows and columns of the images; 1 for a table.
        widths: the widths of the hidden layers.
    """

    last_layer: ClassVar = "head"

    def __init__(
        self, *, classes: int, channels: int, size: Size = 1, widths: Sequence[int] = (256, 256)
    ) -> None:
        super().__init__()
        rows, columns = as_pair(size)
        self.features = channels * rows * columns
        layers: list[nn.Module] = []
        for before, after in pairwise([self.features, *widths]):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.hidden = nn.Sequential(*layers)
        self.head = nn.Linear([self.features, *widths][-1], classes)

    def forward(self, samples: Tensor) -> Tensor:  # (sample, …)
        """Compute logits of shape (sample, class)."""
        flat = samples.flatten(start_dim=1)
        if flat.shape[1] != self.features:
            raise PredictionError(
                f"mlp takes {self.features} numbers per sample; got {flat.shape[1]} "
                f"from an input of shape {tuple(samples.shape)}. "
                "Was the network built for other images, or for a table with other columns?"
            )
        logits: Tensor = self.head(self.hidden(flat))
        return logits


class SmallCNN(nn.Module):
    """Convolutional network with three convolutions and global average pooling.

    Each convolution doubles the width. The last one computes at half the image size.

    Args:
        classes: the number of classes.
        channels: the number of image channels.
        width: the output channels of the first convolution.
    """

    last_layer: ClassVar = "head"
    smallest: ClassVar = 2

    def __init__(self, *, classes: int, channels: int = 1, width: int = 16) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *_convolve(channels, width),
            *_convolve(width, 2 * width),
            nn.MaxPool2d(2),
            *_convolve(2 * width, 4 * width),
        )
        self.head = nn.Linear(4 * width, classes)

    def forward(self, images: Tensor) -> Tensor:  # (sample, channel, row, column)
        """Compute logits of shape (sample, class)."""
        logits: Tensor = self.head(self.features(images).mean(dim=(2, 3)))
        return logits


def _convolve(channels: int, width: int) -> list[nn.Module]:
    # No bias: batch normalisation would subtract it.
    convolution = nn.Conv2d(channels, width, kernel_size=3, padding=1, bias=False)
    return [convolution, nn.BatchNorm2d(width), nn.ReLU()]


LOGIT: Final = 20.0  # of the predicted class, beside zeros: a probability of nearly 1
_STEP: Final = -0x61C8864680B583EB  # splitmix64's odd constants, as signed numbers
_FIRST: Final = -0x40A7B892E31B1A47
_SECOND: Final = -0x6B2FB644ECCEEE15


class RandomPredictor(nn.Module):
    """Predictor of a uniformly random class for each sample and epoch.

    The prediction follows from the seed, the epoch and the values of the sample alone: identical
    samples get the same class in any batch. It has nothing to train. Call `start_epoch` instead.

    Args:
        classes: the number of classes.
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
        """Set the epoch that determines the predictions."""
        self.epoch.fill_(epoch)

    def forward(self, samples: Tensor) -> Tensor:  # (sample, …)
        """Compute logits of shape (sample, class)."""
        bits = samples.flatten(start_dim=1).double().view(torch.int64)
        positions = torch.arange(bits.shape[1], device=bits.device) * _STEP
        # Mixed before the sum: the low bits of round numbers such as 1.0 are all zero.
        hashes = _mix(bits + positions).sum(dim=1)
        draws = _mix(hashes + _mix(self.seed + self.epoch * _STEP))
        predicted = ((draws >> 32) & 0xFFFFFFFF) * self.classes >> 32
        return LOGIT * nn.functional.one_hot(predicted, self.classes).float()


def _mix(values: Tensor) -> Tensor:
    """Hash 64-bit integers with splitmix64."""
    values = (values ^ _shift(values, 30)) * _FIRST
    values = (values ^ _shift(values, 27)) * _SECOND
    return values ^ _shift(values, 31)


def _shift(values: Tensor, bits: int) -> Tensor:
    # torch shifts the sign in; these are unsigned numbers.
    return (values >> bits) & ((1 << (64 - bits)) - 1)
