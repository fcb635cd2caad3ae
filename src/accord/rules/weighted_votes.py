"""A vote in which epochs weigh differently."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.kernels.blocks import spans, voters_of, width_for
from accord.rules.epoch_weights import Weights, measure_likeness, reliability, weigh
from accord.rules.rule import Definition, Prediction, Support, most_supported, predict_blocks
from accord.store import Rows


def predict_weighted(rows: Rows, weights: Weights) -> Prediction:
    """Predict the class with the largest sum of weights; the score is its share of them all."""

    def predict(labels: NDArray[Any]) -> Support:
        supports = [
            most_supported(
                weighted_votes(labels[:, :, span], weights, classes=rows.classes),
                float(weights.sum()) * rows.networks,
            )
            for span in spans(labels.shape[2], width_for(voters_of(labels), rows.classes))
        ]
        found, scores = zip(*supports, strict=True)
        return np.concatenate(found), np.concatenate(scores)

    return predict_blocks(rows.blocks(), predict, samples=rows.samples)


def predict_regressed(rows: Rows) -> Prediction:
    """Predict by a vote in which an epoch weighs the less, the more it repeats others."""
    likeness = measure_likeness(rows)
    return predict_weighted(rows, weigh(likeness.within, reliability(likeness.across)))


def weighted_votes(
    labels: NDArray[Any],  # (network, epoch, sample)
    weights: Weights,
    *,
    classes: int,
) -> NDArray[np.float64]:  # (sample, class)
    """Add up the weights of the epochs that voted for each class.

    >>> weighted_votes(np.array([[[0], [1]], [[0], [0]]]), np.array([0.25, 0.75]), classes=2)
    array([[1.25, 0.75]])
    """
    samples = labels.shape[2]
    cells = labels.astype(np.intp) + np.arange(samples) * classes
    each = np.broadcast_to(weights[:, np.newaxis], labels.shape)
    votes = np.bincount(cells.ravel(), weights=each.ravel(), minlength=samples * classes)
    return np.asarray(votes, np.float64).reshape(samples, classes)


def vote_by_definition(record: Definition, weights: Weights) -> list[int]:
    """Predict the samples of a small record one by one, with weights for its epochs."""
    return [
        max(
            range(record.classes),
            key=lambda c: float(((record.labels[:, :, sample] == c) * weights).sum()),
        )
        for sample in range(record.labels.shape[2])
    ]
