"""Majority rule."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.kernels import winners
from accord.rules._analysis_context import Context
from accord.rules._base import Prediction, Rule, count_cast
from accord.store import Block, RecordReader, label_dtype


class Majority(Rule):
    """Predict the class that most networks predict at the last epoch."""

    name = "majority"
    reads = "last"
    by_sample = True
    plurality = True
    skips_missing = True

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict labels scored by their share of the networks."""
        predicted = Prediction.empty(reader.samples)
        for block in reader.last().blocks(gaps=True):
            won = winners(block.values, classes=reader.classes, gaps=reader.has_missing)
            predicted.labels[block.where] = won.labels
            predicted.scores[block.where] = won.votes / count_cast(reader, block.values)
        return predicted

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Predict labels at each epoch."""
        if reader.has_missing:
            yield from super().after_each_epoch(reader)
            return
        context = Context.of(reader)
        if context.keeps_labels:
            yield Block(0, reader.samples, context.once(majority_by_epoch))
            return
        for block in context.blocks():
            labels = _vote_at_each_epoch(block.values, reader.classes)
            yield Block(block.start, block.stop, labels)


def majority_by_epoch(context: Context) -> NDArray[Any]:  # (epoch, sample)
    """Compute the majority vote at each epoch."""
    longer = None if context.longer is None else context.longer.computed(majority_by_epoch)
    if longer is not None:
        return longer[: context.epochs]
    labels = np.empty((context.epochs, context.samples), label_dtype(context.classes))
    for block in context.blocks():
        labels[:, block.where] = _vote_at_each_epoch(block.values, context.classes)
    return labels


def _vote_at_each_epoch(
    labels: NDArray[Any],  # (network, epoch, sample)
    classes: int,
) -> NDArray[Any]:  # (epoch, sample)
    networks, epochs, _ = labels.shape
    votes = np.ascontiguousarray(labels).reshape(networks, -1)  # epochs side by side
    return winners(votes, classes=classes).labels.astype(labels.dtype).reshape(epochs, -1)
