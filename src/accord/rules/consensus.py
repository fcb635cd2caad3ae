"""Consensus: the networks' vote at the last epoch, if enough of them agree."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError
from accord.kernels import winners
from accord.rules._base import ABSTAINED, Definition, Prediction, Rule, Support, predict_blocks
from accord.store import Block, RecordReader


class Consensus(Rule):
    """Predict the class that more than half of the networks say at the last epoch, or abstain.

    Args:
        least: how many networks must agree; by default more than half.
        threshold: how probable each of them must find the class; above 0, the record needs
            probabilities.
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
        """Predict; the score is the share of networks that agree."""
        last = reader.last()
        if not self.threshold:
            return predict_blocks(last.blocks(), self._by_votes(reader), samples=reader.samples)
        reader.check_probabilities()
        return predict_blocks(
            self._sure_labels(last), self._by_probability(reader), samples=reader.samples
        )

    def after_each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        """Ask for consensus at each epoch."""
        yield from super().after_each_epoch(reader) if self.threshold else self._each_epoch(reader)

    def _each_epoch(self, reader: RecordReader) -> Iterator[Block]:
        vote = self._by_votes(reader)
        for block in reader.blocks():
            labels = [vote(block.values[:, epoch])[0] for epoch in range(reader.epochs)]
            yield Block(block.start, block.stop, np.stack(labels))

    def _by_votes(self, reader: RecordReader) -> Callable[[NDArray[Any]], Support]:
        def predict(labels: NDArray[Any]) -> Support:
            won = winners(labels, classes=reader.classes)
            return self._enough(won.labels, won.votes, reader.networks)

        return predict

    def _sure_labels(self, last: RecordReader) -> Iterator[Block]:
        """Read what each network says (network, sample); -1 where it is not probable enough."""
        for block in last.probability_blocks():
            said = last.read_labels(range(last.networks), [0], block.where)[:, 0].astype(np.intp)
            # Not the argmax: in half precision another class may be as probable as the one said.
            found = np.take_along_axis(block.values[:, 0], said[..., None], axis=-1)[..., 0]
            sure = np.where(found >= self.threshold, said, ABSTAINED)
            yield Block(block.start, block.stop, sure)

    def _by_probability(self, reader: RecordReader) -> Callable[[NDArray[Any]], Support]:
        def predict(labels: NDArray[Any]) -> Support:
            votes = (labels[..., None] == np.arange(reader.classes)).sum(axis=0)
            return self._enough(votes.argmax(axis=-1), votes.max(axis=-1), reader.networks)

        return predict

    def _enough(self, labels: NDArray[Any], votes: NDArray[Any], networks: int) -> Support:
        least = networks // 2 + 1 if self.least is None else self.least
        chosen = np.where(votes >= least, labels.astype(np.intp), ABSTAINED)
        return chosen, votes / networks

    @staticmethod
    def by_definition(record: Definition) -> list[int]:
        """Predict as the rule is defined."""
        half = len(record.labels) / 2
        answers = []
        for sample in range(record.labels.shape[2]):
            votes = [(record.labels[:, -1, sample] == c).sum() for c in range(record.classes)]
            sure = [c for c, count in enumerate(votes) if count > half]
            answers.append(sure[0] if sure else ABSTAINED)
        return answers
