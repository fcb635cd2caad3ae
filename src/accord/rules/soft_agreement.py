"""Soft agreement rule."""

from collections.abc import Iterator

import numpy as np

from accord.rules._base import Prediction, Rule, count_cast, most_supported
from accord.store import Block, RecordReader


class SoftAgreement(Rule):
    """Predict the class with the highest mean probability over all networks and epochs."""

    name = "soft-agreement"
    reads = "all"
    needs = frozenset({"probabilities"})
    by_sample = True
    skips_missing = True

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict labels scored by mean probability."""
        predicted = Prediction.empty(reader.samples)
        for block in reader.probability_blocks():
            support = block.values.sum(axis=(0, 1), dtype=np.float64)
            found = most_supported(support, count_cast(reader, block.values))
            predicted.labels[block.where], predicted.scores[block.where] = found
        return predicted

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Predict labels after each epoch in a single pass."""
        if reader.has_missing:
            yield from super().after_each_epoch(reader)
            return
        for block in reader.probability_blocks():
            support = np.zeros(block.values.shape[2:])
            labels = np.empty(block.values.shape[1:3], np.intp)
            for epoch in range(reader.epochs):
                support += block.values[:, epoch].sum(axis=0, dtype=np.float64)
                labels[epoch] = support.argmax(axis=-1)
            yield Block(block.start, block.stop, labels)
