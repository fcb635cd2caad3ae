"""The first network's last epoch: what training one network gives."""

from collections.abc import Iterator

import numpy as np

from accord.rules._base import Definition, Prediction, Rule, predict_blocks
from accord.store import Block, RecordReader


class Single(Rule):
    """Predict what the first network says at the last epoch.

    Scored as the mean over the networks.
    """

    name = "single"
    reads = "last"
    symmetric = False
    by_sample = True

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict, reading one row."""
        return predict_blocks(
            reader.last().select(networks=reader.numbers[:1]).blocks(),
            lambda labels: (labels[0, 0], np.ones(labels.shape[2])),
            samples=reader.samples,
        )

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Return the first network's labels."""
        for block in reader.select(networks=reader.numbers[:1]).blocks():
            yield Block(block.start, block.stop, block.values[0])

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined."""
        return [int(label) for label in record.labels[0, -1]]
