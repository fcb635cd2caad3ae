"""Single network rule."""

from collections.abc import Iterator

import numpy as np

from accord.rules._base import Prediction, Rule
from accord.store import Block, RecordReader


class Single(Rule):
    """Predict the label of the first network at the last epoch.

    It is scored as the mean over the networks.
    """

    name = "single"
    reads = "last"
    symmetric = False
    by_sample = True
    by_network = True

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict labels with a score of 1."""
        labels = reader.read_labels([0], [reader.epochs - 1], slice(None))[0, 0]
        return Prediction(labels.astype(np.intp), np.ones(reader.samples))

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Read the labels of the first network."""
        for block in reader.select(networks=reader.numbers[:1]).blocks():
            yield Block(block.start, block.stop, block.values[0])
