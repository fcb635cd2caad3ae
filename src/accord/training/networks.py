"""Networks to train, each built from a seed."""

import torch
from torch import Tensor, nn


class SmallCNN(nn.Module):
    """Three 3 by 3 convolutions, an average over the whole image, one linear layer.

    Each convolution is twice as wide as the one before; the last one sees the
    image at half its size.

    Args:
        classes: how many classes to tell apart.
        channels: how many channels an image has.
        width: how many channels the first convolution gives.
    """

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
        """Return the logits, (sample, class)."""
        logits: Tensor = self.head(self.features(images).mean(dim=(2, 3)))
        return logits


def build_small_cnn(*, classes: int, seed: int, channels: int = 1, width: int = 16) -> SmallCNN:
    """Build a small CNN whose first weights follow from the seed alone.

    Leaves torch's global random state as it was.

    >>> network = build_small_cnn(classes=10, seed=0)
    >>> network(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: that would reseed the accelerators too, which are not forked.
        torch.default_generator.manual_seed(seed)
        network = SmallCNN(classes=classes, channels=channels, width=width)
    # Channels last: a fifth faster to train on one core, measured on 8 by 8 images.
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network


def _convolve(channels: int, width: int) -> list[nn.Module]:
    # No bias: the batch norm right after it would subtract it again.
    convolution = nn.Conv2d(channels, width, kernel_size=3, padding=1, bias=False)
    return [convolution, nn.BatchNorm2d(width), nn.ReLU()]


class ResNet18(nn.Module):
    """The residual network of 18 layers in its form for small images: a 3 by 3 stem, no pooling.

    Args:
        classes: how many classes to tell apart.
        channels: how many channels an image has.
        width: how many channels the first stage gives; each later stage doubles them.

    >>> sum(weights.numel() for weights in ResNet18(classes=10).parameters())
    11173962
    """

    def __init__(self, *, classes: int, channels: int = 3, width: int = 64) -> None:
        super().__init__()
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        stages = [
            nn.Sequential(_Residual(before, after, stride), _Residual(after, after, 1))
            for before, after, stride in zip(widths, widths[1:], (1, 2, 2, 2), strict=False)
        ]
        self.features = nn.Sequential(*_convolve(channels, width), *stages)
        self.head = nn.Linear(8 * width, classes)

    def forward(self, images: Tensor) -> Tensor:  # (sample, channel, row, column)
        """Return the logits, (sample, class)."""
        logits: Tensor = self.head(self.features(images).mean(dim=(2, 3)))
        return logits


class _Residual(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(channels, width, kernel_size=3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.side: nn.Module = nn.Identity()
        if stride > 1 or channels != width:
            self.side = nn.Sequential(
                nn.Conv2d(channels, width, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(width),
            )

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = torch.relu(self.main(images) + self.side(images))
        return out
