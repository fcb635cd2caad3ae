"""Wide residual networks (Zagoruyko and Komodakis, 2016)."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from accord.errors import ChoiceError
from accord.training.networks.initialisation import draw_he


class WideResNet(nn.Module):
    """Three wide stages of blocks in which batch norm and rectifier come before a convolution.

    Args:
        classes: how many classes to tell apart.
        channels: how many channels an image has.
        depth: how many layers; 6 n + 4 for n blocks a stage.
        widen: how many times 16, 32 and 64 channels the stages have.
        dropout: the share of numbers to drop between a block's convolutions.
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
        """Return the logits, (sample, class)."""
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
