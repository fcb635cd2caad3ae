"""The soft regular ensemble: the networks' mean probability at the last epoch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.rules._base import Definition, Prediction, Rule, Support, most_supported, predict_blocks
from accord.store import Block, RecordReader


class ProbabilityAverage(Rule):
    """Predict the class with the highest mean probability over the networks, last epoch."""

    name = "probability-average"
    reads = "last"
    needs = frozenset({"probabilities"})
    by_sample = True

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict; the score is the class's mean probability."""

        def predict(probabilities: NDArray[Any]) -> Support:
            return most_supported(
                probabilities[:, 0].sum(axis=0, dtype=np.float64), reader.networks
            )

        return predict_blocks(reader.last().probability_blocks(), predict, samples=reader.samples)

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Average at each epoch."""
        for block in reader.probability_blocks():
            support = block.values.sum(axis=0, dtype=np.float64)
            yield Block(block.start, block.stop, support.argmax(axis=-1))

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined."""
        return [
            max(
                range(record.classes),
                key=lambda c: sum(float(p) for p in record.probabilities[:, -1, sample, c]),
            )
            for sample in range(record.labels.shape[2])
        ]
