"""An oracle: the majority vote at the epoch where it is best, as the truth tells."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from accord.rules._base import Definition, Prediction, Rule
from accord.rules.majority import Majority
from accord.store import Block, RecordReader


class OracleBestEpoch(Rule):
    """Predict what the majority says at the epoch where it is most accurate.

    No one can know that epoch without the true labels: it shows what perfect early stopping
    would have given. Of equally good epochs, the first.
    """

    name = "oracle-best-epoch"
    reads = "all"
    needs = frozenset({"truth"})

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict with the majority vote at the best epoch."""
        return Majority()(reader.select(epochs=[self.best_epoch(reader)]))

    def best_epoch(self, reader: RecordReader) -> int:
        """Return the epoch where the majority vote is most accurate."""
        return int(self._hits(reader).argmax())

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Predict with the best epoch so far."""
        hits = self._hits(reader)
        best = [int(hits[: epoch + 1].argmax()) for epoch in range(reader.epochs)]
        for block in Majority().after_each_epoch(reader):
            yield Block(block.start, block.stop, block.values[best])

    def _hits(self, reader: RecordReader) -> NDArray[np.intp]:
        truth = reader.truth()
        hits = np.zeros(reader.epochs, np.intp)
        for block in Majority().after_each_epoch(reader):
            hits += (block.values == truth[block.where]).sum(axis=1)
        return hits

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined."""
        votes = [
            Majority.by_definition(
                Definition(
                    record.labels[:, [epoch]], record.probabilities, record.truth, record.classes
                )
            )
            for epoch in range(record.labels.shape[1])
        ]
        return max(votes, key=lambda labels: (np.array(labels) == record.truth).sum())
