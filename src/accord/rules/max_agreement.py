"""Max agreement: a vote among all networks at all epochs."""

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from accord.kernels import running_winners, winners
from accord.rules._base import Definition, Prediction, Rule, Support, predict_blocks
from accord.store import Block, RecordReader


class MaxAgreement(Rule):
    """Predict the class with the most votes over all networks and all epochs."""

    name = "max-agreement"
    reads = "all"
    by_sample = True
    vote_weights = 1.0

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict; the score is the agreement, the share of votes the class has."""

        def predict(labels: NDArray[Any]) -> Support:
            won = winners(labels, classes=reader.classes)
            return won.labels, won.votes / (reader.networks * reader.epochs)

        return predict_blocks(reader.blocks(), predict, samples=reader.samples)

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Count on from epoch to epoch instead of anew for each."""
        for block in reader.blocks():
            running = running_winners(block.values, classes=reader.classes)
            yield Block(block.start, block.stop, running)

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the paper states it."""
        return [
            max(range(record.classes), key=lambda c: (record.labels[:, :, sample] == c).sum())
            for sample in range(record.labels.shape[2])
        ]
