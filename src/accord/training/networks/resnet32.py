"""The residual network of 32 layers for CIFAR (He and others, 2015)."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from accord.training.networks.initialisation import draw_he
from accord.training.networks.resnet import BasicBlock, make_stage


class ResNet32(nn.Module):
    """A 3 by 3 convolution, three stages of five blocks, one linear layer: 6 · 5 + 2 layers.

    Where a stage halves the image and doubles the channels, the shortcut takes every
    second pixel and fills up with zeros (the paper's option A): it has no weights.

    Args:
        classes: how many classes to tell apart.
        channels: how many channels an image has.
        width: how many channels the first stage has; each later one doubles them.
    """

    last_layer: ClassVar = "fc"
    smallest: ClassVar = 1

    def __init__(self, *, classes: int, channels: int = 3, width: int = 16) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = make_stage(BasicBlock, width, width, depth=5, stride=1)
        self.layer2 = make_stage(
            BasicBlock, width, 2 * width, depth=5, stride=2, shortcut=PadShortcut
        )
        self.layer3 = make_stage(
            BasicBlock, 2 * width, 4 * width, depth=5, stride=2, shortcut=PadShortcut
        )
        self.fc = nn.Linear(4 * width, classes)
        draw_he(self)

    def forward(self, images: Tensor) -> Tensor:  # (sample, channel, row, column)
        """Return the logits, (sample, class)."""
        out = torch.relu(self.bn1(self.conv1(images)))
        out = self.layer3(self.layer2(self.layer1(out)))
        logits: Tensor = self.fc(out.mean(dim=(2, 3)))
        return logits


class PadShortcut(nn.Module):
    """A shortcut without weights: every `stride`-th pixel, and zeros for the new channels."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.before = (width - channels) // 2
        self.after = width - channels - self.before

    def forward(self, images: Tensor) -> Tensor:
        """Return images (sample, channel, row, column) of the new size.

        >>> PadShortcut(1, 3, 2)(torch.tensor([[[[1, 2], [3, 4]]]])).flatten()
        tensor([0, 1, 0])
        """
        every = images[:, :, :: self.stride, :: self.stride]
        return functional.pad(every, (0, 0, 0, 0, self.before, self.after))
