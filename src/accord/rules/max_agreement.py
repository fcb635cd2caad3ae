"""Max agreement rule."""

from collections.abc import Iterator

from accord.kernels import running_winners, winners
from accord.rules._base import Prediction, Rule, count_cast
from accord.store import Block, RecordReader


class MaxAgreement(Rule):
    """Predict the class with the most votes over all networks and all epochs."""

    name = "max-agreement"
    reads = "all"
    by_sample = True
    vote_weights = 1.0
    plurality = True
    skips_missing = True

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict labels scored by their share of the votes."""
        predicted = Prediction.empty(reader.samples)
        for block in reader.blocks(gaps=True):
            won = winners(block.values, classes=reader.classes, gaps=reader.has_missing)
            predicted.labels[block.where] = won.labels
            predicted.scores[block.where] = won.votes / count_cast(reader, block.values)
        return predicted

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Predict labels after each epoch in a single pass."""
        if reader.has_missing:
            yield from super().after_each_epoch(reader)
            return
        for block in reader.blocks():
            running = running_winners(block.values, classes=reader.classes)
            yield Block(block.start, block.stop, running)
