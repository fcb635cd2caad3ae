"""Follow one network through its rounds of training and write the rows that are due."""

from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from accord._recorder import Recorder
from accord._recorders.record_order import place_columns, positions_of
from accord.errors import ChoiceError, RecordError
from accord.store._validation import to_numpy

_FOLLOWING: WeakSet[Recorder] = WeakSet()


class RoundFollower:
    """Decide, round by round, whether a row is due, and write it.

    Rounds count from 1. Every so many rounds make one row, whose progress is the round. Rounds
    that the record holds already are passed over, so that a training that starts again from
    nothing writes only what is missing.

    Args:
        recorder: follows this one network and no other.
        every: how many rounds make a row.
        classes: the network's classes, in the order of its columns; by default the record's.

    >>> import tempfile, accord
    >>> with accord.Recorder(tempfile.mkdtemp(), network=0, samples=1, classes=2) as recorder:
    ...     follower = RoundFollower(recorder, every=5)
    ...     for training_round in range(1, 12):
    ...         if follower.wants(training_round):
    ...             follower.record(training_round, [1])
    ...     recorder.epochs
    2
    """

    def __init__(self, recorder: Recorder, *, every: int = 1, classes: object = None) -> None:
        if every < 1:
            raise ChoiceError(f"every must be a number of rounds from 1; got {every}")
        sample_info = recorder.sample_info
        self.recorder = recorder
        self.every = every
        self.classes = sample_info.classes
        self.positions = (
            np.arange(sample_info.classes)
            if classes is None
            else positions_of(classes, sample_info)
        )
        _attach(recorder)

    def wants(self, training_round: int) -> bool:
        """Tell whether a row is due after this round and the record lacks it."""
        return training_round % self.every == 0 and self._row(training_round) >= (
            self.recorder.epochs
        )

    def record(self, training_round: int, predicted: object, **told: Any) -> None:
        """Write labels or probabilities, in the record's classes, as this round's row."""
        row = self._row(training_round)
        self.recorder.record(predicted, epoch=row, progress=training_round, **told)

    def record_logits(self, training_round: int, logits: object, **told: Any) -> None:
        """Write scores before the softmax, one column per class of the network.

        One score per sample is that of the second of two classes; the first has 0.
        """
        table = two_columns(to_numpy(logits))
        self._check_columns(table)
        placed = place_columns(table, self.positions, classes=self.classes, logits=True)
        row = self._row(training_round)
        self.recorder.record(logits=placed, epoch=row, progress=training_round, **told)

    def _row(self, training_round: int) -> int:
        return training_round // self.every - 1

    def _check_columns(self, table: NDArray[Any]) -> None:
        columns, classes = table.shape[1], len(self.positions)
        if columns != classes:
            raise ChoiceError(
                f"the network tells {columns} classes apart and {classes} are expected. Say which "
                "it knows, in the order of its columns: classes=np.unique(y)"
            )


def two_columns(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the logits of two classes, if only the second one's are there.

    >>> two_columns(np.array([-1.5, 2.0]))
    array([[ 0. , -1.5],
           [ 0. ,  2. ]])
    """
    if logits.ndim == 2 and logits.shape[1] == 1:
        logits = logits[:, 0]
    if logits.ndim == 1:
        return np.stack([np.zeros_like(logits), logits], axis=1)
    return logits


def _attach(recorder: Recorder) -> None:
    if recorder in _FOLLOWING:
        raise RecordError(
            "this recorder follows a network already. Open one for each network, with a network "
            "number of its own, and give it away once."
        )
    _FOLLOWING.add(recorder)
