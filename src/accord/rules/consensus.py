"""Consensus rule."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError
from accord.kernels import winners
from accord.rules._base import ABSTAINED, Prediction, Rule
from accord.store import Block, RecordReader


class Consensus(Rule):
    """Predict the class that more than half of the networks predict at the last epoch, or abstain.

    Args:
        least: the number of networks that must agree, instead of more than half.
        threshold: the probability that each of them must give the class; above 0, the record
            needs probabilities.
    """

    name = "consensus"
    reads = "last"
    by_sample = True

    def __init__(self, *, least: int | None = None, threshold: float = 0.0) -> None:
        if (least is not None and least < 1) or not 0 <= threshold <= 1:
            raise ChoiceError(
                "consensus needs at least 1 network and a threshold in 0..1; "
                f"got least={least}, threshold={threshold}"
            )
        self.least, self.threshold = least, threshold
        self.needs = frozenset({"probabilities"} if threshold else ())

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict labels scored by the share of networks that agree."""
        last, predicted = reader.last(), Prediction.empty(reader.samples)
        for block in self._probable_labels(last) if self.threshold else last.blocks():
            labels, votes = self._vote(block.values, reader.classes)
            predicted.labels[block.where] = labels
            predicted.scores[block.where] = votes / reader.networks
        return predicted

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Predict labels at each epoch."""
        if self.threshold:
            yield from super().after_each_epoch(reader)
            return
        for block in reader.blocks():
            votes = (self._vote(block.values[:, at], reader.classes) for at in range(reader.epochs))
            yield Block(block.start, block.stop, np.stack([labels for labels, _ in votes]))

    def _vote(
        self,
        labels: NDArray[Any],  # (network, ..., sample)
        classes: int,
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:  # both (sample,)
        if self.threshold:
            counts = (labels[..., None] == np.arange(classes)).sum(axis=0)
            found, votes = counts.argmax(axis=-1), counts.max(axis=-1)
        else:
            found, votes = winners(labels, classes=classes)
        least = len(labels) // 2 + 1 if self.least is None else self.least
        return np.where(votes >= least, found.astype(np.intp), ABSTAINED), votes

    def _probable_labels(self, last: RecordReader) -> Iterator[Block]:
        """Read labels and mask those with a low probability."""
        for block in last.probability_blocks():
            labels = last.read_labels(range(last.networks), [0], block.where)[:, 0].astype(np.intp)
            # Not the argmax: in half precision another class may be as probable as the label.
            found = np.take_along_axis(block.values[:, 0], labels[..., None], axis=-1)[..., 0]
            probable = np.where(found >= self.threshold, labels, ABSTAINED)
            yield Block(block.start, block.stop, probable)
