"""Max agreement: a vote among all networks at all epochs."""

from collections.abc import Iterator

from accord.kernels import running_winners, winners
from accord.rules._base import Prediction, Rule
from accord.store import Block, RecordReader


class MaxAgreement(Rule):
    """Predict the class with the most votes over all networks and all epochs."""

    name = "max-agreement"
    reads = "all"
    by_sample = True
    vote_weights = 1.0
    plurality = True

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict; the score is the agreement, the class's share of the votes."""
        predicted = Prediction.empty(reader.samples)
        for block in reader.blocks():
            won = winners(block.values, classes=reader.classes)
            predicted.labels[block.where] = won.labels
            predicted.scores[block.where] = won.votes / (reader.networks * reader.epochs)
        return predicted

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Count on from epoch to epoch, reading each vote once."""
        for block in reader.blocks():
            running = running_winners(block.values, classes=reader.classes)
            yield Block(block.start, block.stop, running)
