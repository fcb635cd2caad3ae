"""Nearest neighbours by brute force, in blocks, on any device."""

from typing import Final

import torch
from torch import Tensor

CELLS: Final = 2**24  # distances in memory at once
MOST_ROWS: Final = 1024  # samples asked about at once


def nearest_classes(
    known: Tensor, labels: Tensor, asked: Tensor, *, classes: int, neighbours: int = 10
) -> Tensor:
    """Predict each sample's class by a vote of its nearest neighbours, (sample,).

    A neighbour's vote counts one over its distance; those at distance 0 outvote all others.
    Equal votes go to the smaller class.

    Args:
        known: (known, feature).
        labels: (known,), their classes.
        asked: (sample, feature).
        classes: how many classes there are.
        neighbours: how many vote; all of `known` if they are fewer.

    >>> known, labels = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([1, 1, 0])
    >>> nearest_classes(known, labels, torch.tensor([[4.9], [2.0]]), classes=2)
    tensor([0, 1])
    """
    centre = known.mean(dim=0)
    around = known - centre
    lengths = around.square().sum(dim=1)
    count = min(neighbours, len(known))
    predicted = []
    for rows in asked.split(max(1, min(MOST_ROWS, CELLS // len(known)))):
        # Squared distances, but for what they share. They are good enough to rank by; exact
        # ones are then taken of the few that are nearest, so that a sample is at 0 of itself.
        ranks = lengths - 2 * (rows - centre) @ around.T
        near = ranks.topk(count, dim=1, largest=False).indices
        distances = (rows[:, None] - known[near]).double().square().sum(dim=2).sqrt()
        predicted.append(_vote(distances, labels[near], classes))
    return torch.cat(predicted)


def _vote(distances: Tensor, labels: Tensor, classes: int) -> Tensor:
    same = distances == 0
    weights = torch.where(same.any(dim=1, keepdim=True), same.double(), 1 / distances)
    votes = distances.new_zeros((len(labels), classes)).scatter_add_(1, labels, weights)
    return votes.argmax(dim=1)
