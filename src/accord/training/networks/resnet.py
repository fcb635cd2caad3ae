"""Residual (He et al., 2016) and wide residual networks (Zagoruyko and Komodakis, 2016)."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from accord.errors import ChoiceError
from accord.training._randomness import draw_he
from accord.training.networks._parts import Size, Stem, choose_stem, stem_convolution, stem_pool


class _BasicBlock(nn.Module):
    expansion: ClassVar = 1

    def __init__(self, channels: int, width: int, stride: int, downsample: nn.Module | None):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = downsample

    def forward(self, images: Tensor) -> Tensor:
        side = images if self.downsample is None else self.downsample(images)
        out = torch.relu(self.bn1(self.conv1(images)))
        return torch.relu(self.bn2(self.conv2(out)) + side)


class _Bottleneck(nn.Module):
    # The 3 by 3 convolution strides, as in torchvision. In the paper the first 1 by 1 does.
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
        side = images if self.downsample is None else self.downsample(images)
        out = torch.relu(self.bn1(self.conv1(images)))
        out = torch.relu(self.bn2(self.conv2(out)))
        return torch.relu(self.bn3(self.conv3(out)) + side)


class ResNet(nn.Module):
    """Base class for residual networks.

    A subclass defines the block and the number of blocks of each stage.

    Args:
        classes: the number of classes.
        channels: the number of image channels.
        size: rows and columns of the images; they choose the stem.
        stem: "small" (3 by 3, nothing lost) or "imagenet" (7 by 7, then a max-pool: a quarter
            of the size); by default "small" for images of up to 64 pixels.
        width: how many channels the first stage works with; each later one doubles them.
    """

    last_layer: ClassVar = "fc"
    smallest: ClassVar = 1
    block: ClassVar[type[_BasicBlock | _Bottleneck]]
    depths: ClassVar[tuple[int, ...]]

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
        stem = choose_stem(stem, size=size)
        self.conv1 = stem_convolution(channels, width, stem=stem)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = stem_pool(stem=stem)
        self.layers = [f"layer{number}" for number in range(1, len(self.depths) + 1)]
        before = width
        for number, (name, depth) in enumerate(zip(self.layers, self.depths, strict=True)):
            stride = 1 if number == 0 else 2
            self.add_module(name, self._make_stage(before, width << number, depth, stride))
            before = (width << number) * self.block.expansion
        self.fc = nn.Linear(before, classes)
        draw_he(self)

    def forward(self, images: Tensor) -> Tensor:  # (sample, channel, row, column)
        """Compute logits of shape (sample, class)."""
        out = self.maxpool(torch.relu(self.bn1(self.conv1(images))))
        for name in self.layers:
            out = getattr(self, name)(out)
        logits: Tensor = self.fc(out.mean(dim=(2, 3)))
        return logits

    def _make_stage(self, channels: int, width: int, depth: int, stride: int) -> nn.Sequential:
        wide = width * self.block.expansion
        changes = stride > 1 or channels != wide
        shortcut = self._make_shortcut(channels, wide, stride) if changes else None
        blocks = (self.block(wide, width, 1, None) for _ in range(depth - 1))
        return nn.Sequential(self.block(channels, width, stride, shortcut), *blocks)

    def _make_shortcut(self, channels: int, width: int, stride: int) -> nn.Module:
        convolution = nn.Conv2d(channels, width, kernel_size=1, stride=stride, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm2d(width))


class ResNet18(ResNet):
    """Residual network with 18 layers.

    >>> sum(weights.numel() for weights in ResNet18(classes=10).parameters())
    11173962
    """

    block = _BasicBlock
    depths = (2, 2, 2, 2)


class ResNet50(ResNet):
    """Residual network with 50 layers."""

    block = _Bottleneck
    depths = (3, 4, 6, 3)


class ResNet32(ResNet):
    """Residual network with 32 layers for small images.

    Between stages, the shortcut takes every second pixel and pads the new channels with zeros
    (option A of the paper): it has no weights.

    Args:
        classes: the number of classes.
        channels: the number of image channels.
        width: how many channels the first stage has; each later one doubles them.
    """

    block = _BasicBlock
    depths = (5, 5, 5)

    def __init__(self, *, classes: int, channels: int = 3, width: int = 16) -> None:
        super().__init__(classes=classes, channels=channels, width=width, stem="small")

    def _make_shortcut(self, channels: int, width: int, stride: int) -> nn.Module:
        return _PadShortcut(channels, width, stride)


class _PadShortcut(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.before = (width - channels) // 2
        self.after = width - channels - self.before

    def forward(self, images: Tensor) -> Tensor:
        every = images[:, :, :: self.stride, :: self.stride]
        return functional.pad(every, (0, 0, 0, 0, self.before, self.after))


class WideResNet(nn.Module):
    """Wide residual network with pre-activation blocks.

    Args:
        classes: the number of classes.
        channels: the number of image channels.
        depth: the number of layers; 6 n + 4 for n blocks per stage.
        widen: the factor on the 16, 32 and 64 channels of the stages.
        dropout: the dropout rate between the convolutions of a block.
    """

    last_layer: ClassVar = "fc"
    smallest: ClassVar = 1

    def __init__(
        self,
        *,
        classes: int,
        channels: int = 3,
        depth: int = 28,
        widen: int = 10,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if depth < 10 or depth % 6 != 4:
            raise ChoiceError(f"depth must be 6 n + 4 with n at least 1 (10, 16, 28); got {depth}.")
        blocks = (depth - 4) // 6
        widths = [16, 16 * widen, 32 * widen, 64 * widen]
        self.conv1 = nn.Conv2d(channels, widths[0], 3, padding=1, bias=False)
        self.stage1 = _make_stage(widths[0], widths[1], blocks, stride=1, dropout=dropout)
        self.stage2 = _make_stage(widths[1], widths[2], blocks, stride=2, dropout=dropout)
        self.stage3 = _make_stage(widths[2], widths[3], blocks, stride=2, dropout=dropout)
        self.bn1 = nn.BatchNorm2d(widths[3])
        self.fc = nn.Linear(widths[3], classes)
        draw_he(self)
        nn.init.zeros_(self.fc.bias)

    def forward(self, images: Tensor) -> Tensor:  # (sample, channel, row, column)
        """Compute logits of shape (sample, class)."""
        out = self.stage3(self.stage2(self.stage1(self.conv1(images))))
        out = torch.relu(self.bn1(out))
        logits: Tensor = self.fc(out.mean(dim=(2, 3)))
        return logits


class _WideBlock(nn.Module):
    def __init__(self, channels: int, width: int, *, stride: int, dropout: float) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.dropout = dropout
        self.shortcut: nn.Module | None = None
        if stride > 1 or channels != width:
            self.shortcut = nn.Conv2d(channels, width, 1, stride=stride, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        ready = torch.relu(self.bn1(images))
        # Where the shape changes, the authors' shortcut starts after batch norm and rectifier.
        side = images if self.shortcut is None else self.shortcut(ready)
        out = torch.relu(self.bn2(self.conv1(ready)))
        out = functional.dropout(out, self.dropout, training=self.training)
        total: Tensor = self.conv2(out) + side
        return total


def _make_stage(
    channels: int, width: int, blocks: int, *, stride: int, dropout: float
) -> nn.Sequential:
    first = _WideBlock(channels, width, stride=stride, dropout=dropout)
    rest = (_WideBlock(width, width, stride=1, dropout=dropout) for _ in range(blocks - 1))
    return nn.Sequential(first, *rest)
