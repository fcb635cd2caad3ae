"""Record boosting rounds and epochs of estimators."""

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from accord._recorder import Recorder, record_missing
from accord._recorders.network_outputs import two_columns
from accord._recorders.record_order import place_columns, positions_of
from accord.errors import ChoiceError, RecordError, counted
from accord.store import to_numpy

_IN_USE: WeakSet[Recorder] = WeakSet()


def packages_of(network: object) -> set[str]:
    return {kind.__module__.partition(".")[0] for kind in type(network).__mro__}


class RoundRecorder:
    """Record the rounds of one network at a regular interval.

    Rounds that the record holds are skipped, so that training that starts from scratch writes
    only what is missing. The progress of a row is its round, from 1.

    Args:
        recorder: used for this network only.
        every: rounds per row.
        classes: the network's classes, in the order of its columns, by default the record's.
    """

    def __init__(self, recorder: Recorder, *, every: int = 1, classes: object = None) -> None:
        if every < 1:
            raise ChoiceError(f"every must be a whole number of rounds, at least 1; got {every}")
        if recorder in _IN_USE:
            raise RecordError(
                "this recorder is in use for another network. Open one recorder per network, "
                "each with a different network number."
            )
        _IN_USE.add(recorder)
        info = recorder.sample_info
        self.recorder = recorder
        self.every = every
        self.classes = info.classes
        self.positions = np.arange(info.classes) if classes is None else positions_of(classes, info)

    def record(
        self, number: int, predict: Callable[[], object], *, logits: bool = False, **metrics: Any
    ) -> None:
        """Record the predictions of a round if it is due.

        `predict` is called only then. With `logits`, it returns scores before the softmax, one
        column per class of the network; a single score belongs to the second of two classes.
        """
        if number % self.every == 0:
            record_missing(
                [self.recorder],
                lambda: [self._placed(predict()) if logits else predict()],
                epoch=number // self.every - 1,
                progress=number,
                logits=logits,
                **metrics,
            )

    def check_due(self, rounds: int) -> None:
        if rounds < self.every:
            raise ChoiceError(
                f"every={self.every} and {counted(rounds, 'round')} leave nothing to record. "
                f"Choose every={max(1, rounds // 10)}"
            )

    def _placed(self, logits: object) -> NDArray[Any]:
        table = two_columns(to_numpy(logits))
        if table.shape[1] != len(self.positions):
            raise ChoiceError(
                f"the network has {table.shape[1]} classes and {len(self.positions)} are "
                "expected. List them in the order of its columns: classes=np.unique(y)"
            )
        return place_columns(table, self.positions, classes=self.classes, logits=True)
