"""Probability average rule."""

from collections.abc import Iterator

import numpy as np

from accord.rules._base import Prediction, Rule, count_cast, most_supported
from accord.store import Block, RecordReader


class ProbabilityAverage(Rule):
    """Predict the class with the highest mean probability over the networks, last epoch."""

    name = "probability-average"
    reads = "last"
    needs = frozenset({"probabilities"})
    by_sample = True
    skips_missing = True

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict labels scored by mean probability."""
        predicted = Prediction.empty(reader.samples)
        for block in reader.last().probability_blocks():
            support = block.values[:, 0].sum(axis=0, dtype=np.float64)
            found = most_supported(support, count_cast(reader, block.values))
            predicted.labels[block.where], predicted.scores[block.where] = found
        return predicted

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Predict labels at each epoch."""
        for block in reader.probability_blocks():
            support = block.values.sum(axis=0, dtype=np.float64)
            yield Block(block.start, block.stop, most_supported(support, 1)[0])
