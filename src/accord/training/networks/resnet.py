"""Residual networks in the form for ImageNet (He and others, 2015), and for smaller images.

Weights are named as torchvision names them, so that published ones can be loaded.
"""

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from accord.training.networks.initialisation import draw_he
from accord.training.networks.shapes import Size
from accord.training.networks.stems import Stem, settle_stem, stem_convolution, stem_pool

Shortcut = Callable[[int, int, int], nn.Module]  # channels before, channels after, stride


class BasicBlock(nn.Module):
    """Two 3 by 3 convolutions around which the input takes a shortcut."""

    expansion: ClassVar = 1

    def __init__(self, channels: int, width: int, stride: int, downsample: nn.Module | None):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = downsample

    def forward(self, images: Tensor) -> Tensor:
        """Return images (sample, channel, row, column) after the block."""
        side = images if self.downsample is None else self.downsample(images)
        out = torch.relu(self.bn1(self.conv1(images)))
        return torch.relu(self.bn2(self.conv2(out)) + side)


class Bottleneck(nn.Module):
    """A 3 by 3 convolution between two of 1 by 1 that make room for it, and a shortcut.

    The 3 by 3 convolution strides, as in torchvision; in the paper the first 1 by 1 does.
    """

    expansion: ClassVar = 4

    def __init__(self, channels: int, width: int, stride: int, downsample: nn.Module | None):
        super().__init__()
        out = width * self.expansion
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample = downsample

    def forward(self, images: Tensor) -> Tensor:
        """Return images (sample, channel, row, column) after the block."""
        side = images if self.downsample is None else self.downsample(images)
        out = torch.relu(self.bn1(self.conv1(images)))
        out = torch.relu(self.bn2(self.conv2(out)))
        return torch.relu(self.bn3(self.conv3(out)) + side)


class ResNet(nn.Module):
    """A stem, four stages of residual blocks, an average over the whole image, one linear layer.

    A subclass names the kind of block and how many each stage has.

    Args:
        classes: how many classes to tell apart.
        channels: how many channels an image has.
        size: the image's rows and columns; they choose the stem.
        stem: "small" (3 by 3, nothing lost) or "imagenet" (7 by 7, then a max-pool: a quarter
            of the size); by default "small" for images of up to 64 pixels.
        width: how many channels the first stage works with; each later one doubles them.
    """

    last_layer: ClassVar = "fc"
    smallest: ClassVar = 1
    block: ClassVar[type[BasicBlock | Bottleneck]]
    depths: ClassVar[tuple[int, int, int, int]]

    def __init__(
        self,
        *,
        classes: int,
        channels: int = 3,
        size: Size = 32,
        stem: Stem | None = None,
        width: int = 64,
    ) -> None:
        super().__init__()
        stem = settle_stem(stem, size=size)
        block, depths = self.block, self.depths
        self.conv1 = stem_convolution(channels, width, stem=stem)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = stem_pool(stem=stem)
        wide = width * block.expansion
        self.layer1 = make_stage(block, width, width, depth=depths[0], stride=1)
        self.layer2 = make_stage(block, wide, 2 * width, depth=depths[1], stride=2)
        self.layer3 = make_stage(block, 2 * wide, 4 * width, depth=depths[2], stride=2)
        self.layer4 = make_stage(block, 4 * wide, 8 * width, depth=depths[3], stride=2)
        self.fc = nn.Linear(8 * wide, classes)
        draw_he(self)

    def forward(self, images: Tensor) -> Tensor:  # (sample, channel, row, column)
        """Return the logits, (sample, class)."""
        out = self.maxpool(torch.relu(self.bn1(self.conv1(images))))
        out = self.layer4(self.layer3(self.layer2(self.layer1(out))))
        logits: Tensor = self.fc(out.mean(dim=(2, 3)))
        return logits


class ResNet18(ResNet):
    """The residual network of 18 layers; its arguments are those of `ResNet`.

    >>> sum(weights.numel() for weights in ResNet18(classes=10).parameters())
    11173962
    """

    block = BasicBlock
    depths = (2, 2, 2, 2)


class ResNet50(ResNet):
    """The residual network of 50 layers; its arguments are those of `ResNet`."""

    block = Bottleneck
    depths = (3, 4, 6, 3)


def project(channels: int, width: int, stride: int) -> nn.Module:
    """Return a shortcut that learns how to change size and channels."""
    convolution = nn.Conv2d(channels, width, kernel_size=1, stride=stride, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(width))


def make_stage(
    block: type[BasicBlock | Bottleneck],
    channels: int,
    width: int,
    *,
    depth: int,
    stride: int,
    shortcut: Shortcut = project,
) -> nn.Sequential:
    """Return blocks in a row, of which the first strides and changes the channels."""
    wide = width * block.expansion
    changes = stride > 1 or channels != wide
    first = block(channels, width, stride, shortcut(channels, wide, stride) if changes else None)
    return nn.Sequential(first, *(block(wide, width, 1, None) for _ in range(depth - 1)))
