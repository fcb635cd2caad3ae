"""The regular ensemble: a vote among the networks at the last epoch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.kernels import winners
from accord.rules._base import Definition, Prediction, Rule, Support, predict_blocks
from accord.store import Block, RecordReader


class Majority(Rule):
    """Predict the class that most networks say at the last epoch."""

    name = "majority"
    reads = "last"
    by_sample = True

    def __call__(self, rows: RecordReader) -> Prediction:
        """Predict, reading one row per network."""

        def predict(labels: NDArray[Any]) -> Support:
            won = winners(labels, classes=rows.classes)
            return won.labels, won.votes / rows.networks

        return predict_blocks(rows.last().blocks(), predict, samples=rows.samples)

    def after_each_epoch(self, rows: RecordReader) -> Iterator[Block]:
        """Vote at each epoch."""
        for block in rows.blocks():
            labels = np.empty(block.values.shape[1:], block.values.dtype)
            for epoch in range(rows.epochs):
                labels[epoch] = winners(block.values[:, epoch], classes=rows.classes).labels
            yield Block(block.start, block.stop, labels)

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined."""
        return [
            max(range(record.classes), key=lambda c: (record.labels[:, -1, sample] == c).sum())
            for sample in range(record.labels.shape[2])
        ]
