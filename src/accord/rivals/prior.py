"""The prior of NPC: the class that a network's surest predictions of similar samples suggest."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accord.rivals.neighbours import nearest_classes
from accord.training.seeds import derive_seed, draw_epoch

Table = NDArray[np.float32]


def similar_classes(
    features: Table, logits: Table, *, seed: int, batch: int, device: torch.device
) -> Tensor:
    """Return the class of each sample by the samples that are like it, (sample,), on the device.

    Args:
        features: (sample, feature), what goes into the network's last layer.
        logits: (sample, class), what comes out.
        seed: decides which samples share a batch.
        batch: among so many samples, the surest one of each predicted class is kept to vote.
        device: where to compute.
    """
    order = draw_epoch(len(logits), seed=derive_seed(seed), epoch=0).order.numpy()
    kept = surest_samples(logits[order], batch=batch)
    asked = torch.from_numpy(features).to(device)
    votes = torch.from_numpy(logits.argmax(axis=1)[order[kept]]).to(device)
    return nearest_classes(
        asked[torch.from_numpy(order[kept]).to(device)], votes, asked, classes=logits.shape[1]
    )


def surest_samples(logits: Table, *, batch: int) -> NDArray[np.intp]:
    """Return the positions of the surest sample of each predicted class in each batch.

    Of equally sure samples, the first.

    >>> surest_samples(np.array([[1, 0], [3, 0], [0, 2], [2, 0]], np.float32), batch=2)
    array([1, 3, 2])
    """
    predicted = logits.argmax(axis=1)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    doubt = powers.sum(axis=1)  # one over the largest probability
    found = []
    for start in range(0, len(logits), batch):
        part = slice(start, start + batch)
        surest_first = np.argsort(doubt[part], kind="stable")
        _, first = np.unique(predicted[part][surest_first], return_index=True)
        found.append(start + surest_first[first])
    return np.concatenate(found)
