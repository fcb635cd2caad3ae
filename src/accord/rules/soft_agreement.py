"""Max agreement with probabilities in place of votes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.rules._base import Definition, Prediction, Rule, Support, most_supported, predict_blocks
from accord.store import Block, RecordReader


class SoftAgreement(Rule):
    """Predict the class with the highest mean probability over all networks and epochs."""

    name = "soft-agreement"
    reads = "all"
    needs = frozenset({"probabilities"})
    by_sample = True

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict; the score is the class's mean probability."""

        def predict(probabilities: NDArray[Any]) -> Support:
            support = probabilities.sum(axis=(0, 1), dtype=np.float64)
            return most_supported(support, reader.networks * reader.epochs)

        return predict_blocks(reader.probability_blocks(), predict, samples=reader.samples)

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Add up from epoch to epoch instead of anew for each."""
        for block in reader.probability_blocks():
            support = np.zeros(block.values.shape[2:])
            labels = np.empty(block.values.shape[1:3], np.intp)
            for epoch in range(reader.epochs):
                support += block.values[:, epoch].sum(axis=0, dtype=np.float64)
                labels[epoch] = support.argmax(axis=-1)
            yield Block(block.start, block.stop, labels)

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined."""
        return [
            max(
                range(record.classes),
                key=lambda c: sum(float(p) for p in record.probabilities[:, :, sample, c].flat),
            )
            for sample in range(record.labels.shape[2])
        ]
