"""Oracle rule for the best epoch."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from accord.rules._analysis_context import Context
from accord.rules._base import Prediction, Rule
from accord.rules.majority import Majority
from accord.store import Block, RecordReader


class OracleBestEpoch(Rule):
    """Predict the majority vote at the epoch where it is most accurate.

    It needs the true labels to find that epoch, the first of equals, and shows what perfect early
    stopping would give.
    """

    name = "oracle-best-epoch"
    reads = "all"
    needs = frozenset({"truth"})

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict labels scored by their share of the networks."""
        context = Context.of(reader)
        epoch = int(_hits(context).argmax())
        return replace(Majority()(context.select(epochs=[epoch])), epoch=epoch)

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Predict labels from the best epoch up to each epoch."""
        context = Context.of(reader)
        hits = _hits(context)
        best = [int(hits[: epoch + 1].argmax()) for epoch in range(context.epochs)]
        for block in Majority().after_each_epoch(context):
            yield Block(block.start, block.stop, block.values[best])


def _hits(context: Context) -> NDArray[np.intp]:  # (epoch,)
    truth, hits = context.truth(), np.zeros(context.epochs, np.intp)
    for block in Majority().after_each_epoch(context):
        hits += np.count_nonzero(block.values == truth[block.where], axis=1)
    return hits
