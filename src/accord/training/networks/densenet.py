"""Densely connected network with 121 layers (Huang et al., 2017).

Weights are named as torchvision names them, so that published ones can be loaded.
"""

from collections import OrderedDict
from typing import ClassVar, Final

import torch
from torch import Tensor, nn

from accord.training._randomness import draw_he
from accord.training.networks._parts import Size, Stem, choose_stem, stem_convolution, stem_pool

BOTTLENECK: Final = 4  # output channels of a 1 by 1 convolution, relative to the growth


class DenseNet121(nn.Module):
    """DenseNet-121 network.

    Between two blocks a 1 by 1 convolution halves the channels and an average the image.

    Args:
        classes: the number of classes.
        channels: the number of image channels.
        size: rows and columns of the images; they choose the stem.
        stem: "small" (3 by 3, nothing lost) or "imagenet" (7 by 7, then a max-pool: a quarter
            of the size); by default "small" for images of up to 64 pixels.
        growth: how many channels each layer adds; the stem gives twice as many.
    """

    last_layer: ClassVar = "classifier"
    depths: ClassVar = (6, 12, 24, 16)

    def __init__(
        self,
        *,
        classes: int,
        channels: int = 3,
        size: Size = 32,
        stem: Stem | None = None,
        growth: int = 32,
    ) -> None:
        super().__init__()
        stem = choose_stem(stem, size=size)
        # Three averages halve the image, and cannot halve one pixel.
        self.smallest = 8 if stem == "small" else 29
        width = 2 * growth
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            conv0=stem_convolution(channels, width, stem=stem),
            norm0=nn.BatchNorm2d(width),
            relu0=nn.ReLU(inplace=True),
            pool0=stem_pool(stem=stem),
        )
        for number, depth in enumerate(self.depths, start=1):
            layers[f"denseblock{number}"] = _make_block(width, growth, depth)
            width += depth * growth
            if number < len(self.depths):
                layers[f"transition{number}"] = _make_transition(width)
                width //= 2
        layers["norm5"] = nn.BatchNorm2d(width)
        self.features = nn.Sequential(layers)
        self.classifier = nn.Linear(width, classes)
        draw_he(self, mode="fan_in")
        nn.init.zeros_(self.classifier.bias)

    def forward(self, images: Tensor) -> Tensor:  # (sample, channel, row, column)
        """Compute logits of shape (sample, class)."""
        out = torch.relu(self.features(images))
        logits: Tensor = self.classifier(out.mean(dim=(2, 3)))
        return logits


class _DenseLayer(nn.Sequential):
    def __init__(self, channels: int, growth: int) -> None:
        between = BOTTLENECK * growth
        super().__init__(
            OrderedDict(
                norm1=nn.BatchNorm2d(channels),
                relu1=nn.ReLU(inplace=True),
                conv1=nn.Conv2d(channels, between, 1, bias=False),
                norm2=nn.BatchNorm2d(between),
                relu2=nn.ReLU(inplace=True),
                conv2=nn.Conv2d(between, growth, 3, padding=1, bias=False),
            )
        )

    def forward(self, images: Tensor) -> Tensor:
        added: Tensor = super().forward(images)  # type: ignore[no-untyped-call]
        return torch.cat([images, added], dim=1)


def _make_block(channels: int, growth: int, depth: int) -> nn.Sequential:
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for number in range(depth):
        layers[f"denselayer{number + 1}"] = _DenseLayer(channels + number * growth, growth)
    return nn.Sequential(layers)


def _make_transition(channels: int) -> nn.Sequential:
    return nn.Sequential(
        OrderedDict(
            norm=nn.BatchNorm2d(channels),
            relu=nn.ReLU(inplace=True),
            conv=nn.Conv2d(channels, channels // 2, 1, bias=False),
            pool=nn.AvgPool2d(2),
        )
    )
