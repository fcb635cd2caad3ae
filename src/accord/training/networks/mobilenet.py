"""MobileNetV2 network (Sandler et al., 2018).

Weights are named as torchvision names them, so that published ones can be loaded.
"""

from typing import ClassVar, Final

from torch import Tensor, nn

from accord.training._randomness import draw_he
from accord.training.networks._parts import Size, Stem, choose_stem

# Each stage: how far a block expands its channels, channels after it, blocks, first stride.
STAGES: Final = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
FIRST, LAST = 32, 1280  # channels


class MobileNetV2(nn.Module):
    """MobileNetV2 with seventeen inverted residual blocks.

    Args:
        classes: the number of classes.
        channels: the number of image channels.
        size: rows and columns of the images; they choose the stem.
        stem: "imagenet" halves the image in the first convolution and in the first stage that
            strides, "small" in neither; by default "small" for images of up to 64 pixels.
        dropout: the share of numbers to drop before the linear layer.
    """

    last_layer: ClassVar = "classifier.1"
    smallest: ClassVar = 1

    def __init__(
        self,
        *,
        classes: int,
        channels: int = 3,
        size: Size = 32,
        stem: Stem | None = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        small = choose_stem(stem, size=size) == "small"
        layers: list[nn.Module] = [_convolve(channels, FIRST, kernel=3, stride=1 if small else 2)]
        width = FIRST
        for number, (expansion, after, blocks, stride) in enumerate(STAGES):
            for block in range(blocks):
                halves = block == 0 and stride == 2 and not (small and number == 1)
                layers.append(_InvertedResidual(width, after, 2 if halves else 1, expansion))
                width = after
        layers.append(_convolve(width, LAST))
        self.features = nn.Sequential(*layers)
        head = nn.Linear(LAST, classes)
        self.classifier = nn.Sequential(nn.Dropout(dropout), head)
        draw_he(self)
        nn.init.normal_(head.weight, 0, 0.01)
        nn.init.zeros_(head.bias)

    def forward(self, images: Tensor) -> Tensor:  # (sample, channel, row, column)
        """Compute logits of shape (sample, class)."""
        logits: Tensor = self.classifier(self.features(images).mean(dim=(2, 3)))
        return logits


class _InvertedResidual(nn.Module):
    def __init__(self, channels: int, width: int, stride: int, expansion: int) -> None:
        super().__init__()
        inside = channels * expansion
        expand = [_convolve(channels, inside)] if expansion > 1 else []
        self.conv = nn.Sequential(
            *expand,
            _convolve(inside, inside, kernel=3, stride=stride, groups=inside),
            nn.Conv2d(inside, width, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.adds = stride == 1 and channels == width

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = self.conv(images)
        return images + out if self.adds else out


def _convolve(
    channels: int, width: int, *, kernel: int = 1, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    convolution = nn.Conv2d(
        channels, width, kernel, stride, padding=kernel // 2, groups=groups, bias=False
    )
    return nn.Sequential(convolution, nn.BatchNorm2d(width), nn.ReLU6(inplace=True))
