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

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict, reading one row per network."""

        def predict(labels: NDArray[Any]) -> Support:
            won = winners(labels, classes=reader.classes)
            return won.labels, won.votes / reader.networks

        return predict_blocks(reader.last().blocks(), predict, samples=reader.samples)

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Vote at each epoch."""
        for block in reader.blocks():
            labels = np.empty(block.values.shape[1:], block.values.dtype)
            for epoch in range(reader.epochs):
                labels[epoch] = winners(block.values[:, epoch], classes=reader.classes).labels
            yield Block(block.start, block.stop, labels)

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined."""
        return [
            max(range(record.classes), key=lambda c: (record.labels[:, -1, sample] == c).sum())
            for sample in range(record.labels.shape[2])
        ]
