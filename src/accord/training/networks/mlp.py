"""The multilayer perceptron: for tables, or images whose pixels are taken as they come."""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn

from accord.errors import PredictionError
from accord.training.networks.shapes import Size, as_pair


class MLP(nn.Module):
    """Linear layers with rectifiers between them.

    Args:
        classes: how many classes to tell apart.
        channels: how many channels an image has, or columns a table.
        size: the image's rows and columns; 1 for a table.
        widths: how many numbers each hidden layer gives.
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
        """Return the logits, (sample, class)."""
        flat = samples.flatten(start_dim=1)
        if flat.shape[1] != self.features:
            raise PredictionError(
                f"mlp takes {self.features} numbers a sample; got {flat.shape[1]} "
                f"from an input of shape {tuple(samples.shape)}. "
                "Was the network built for other images, or a table of other columns?"
            )
        logits: Tensor = self.head(self.hidden(flat))
        return logits
