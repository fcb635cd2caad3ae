"""Schedules for recording predictions during training.

Callbacks use `Schedule`, since a framework reports progress and may stop at any time. Training
uses `RecordedEpochs`, since it knows its length in advance. Both give the same rows.
"""

import math
from dataclasses import dataclass
from typing import Final

from accord.errors import ChoiceError

SLACK: Final = 1e-6  # of an epoch: 0.3 / 0.1 is slightly less than 3


@dataclass(frozen=True)
class Schedule:
    """Recording schedule by training progress in epochs.

    A row is due whenever progress passes a multiple of `every`, and after the last epoch,
    whether or not that is a multiple: `majority` and `single` read the last epoch alone.

    >>> Schedule(0.5).rows_due(2.0), Schedule(2).rows_due(5)
    (4, 2)
    """

    every: float = 1.0

    def __post_init__(self) -> None:
        unit = 1 / self.every if 0 < self.every < 1 else self.every
        if not (math.isfinite(unit) and unit >= 1 and abs(unit - round(unit)) < SLACK * unit):
            raise ChoiceError(
                "every must be a whole number of epochs or a fraction 1/n of an epoch, such as "
                f"0.1; got {self.every}"
            )

    def rows_due(self, progress: float) -> int:
        return math.floor(progress / self.every + SLACK)

    def is_due(self, progress: float, *, recorded: float, last: bool = False) -> bool:
        """Check whether a row is due at some progress.

        With `last`, training ends here.
        """
        if last:
            return progress > recorded + SLACK
        return self.rows_due(progress) > self.rows_due(recorded)

    def check_step(self, previous: float, progress: float) -> None:
        if self.rows_due(progress) > self.rows_due(previous) + 1:
            raise ChoiceError(
                f"every={self.every:g} requires more rows than training has steps: one step goes "
                f"from progress {previous:g} to {progress:g}. Record less often."
            )


@dataclass(frozen=True)
class RecordedEpochs:
    """Recording schedule by training step.

    With `every` below 1, an epoch has several rows, but at most as many as steps.

    >>> schedule = RecordedEpochs(epochs=5, every=2, steps=10)
    >>> [schedule.steps_in(epoch) for epoch in range(5)], len(schedule)
    ([(), (10,), (), (10,), (10,)], 3)
    >>> RecordedEpochs(epochs=2, every=0.1, steps=2).steps_in(0)
    (1, 2)
    """

    epochs: int
    every: float = 1.0
    steps: int = 1  # of the optimizer, in one epoch

    @classmethod
    def of_training(
        cls, epochs: int, every: float, *, batch: int, samples: int | None
    ) -> "RecordedEpochs":
        """Create the schedule for a number of training samples.

        Where `samples` is None, an epoch is assumed to have enough steps for `every`.
        """
        steps = max(1, round(1 / every)) if samples is None else math.ceil(samples / batch)
        return cls(epochs, every, steps)

    def __len__(self) -> int:
        return self.before(self.epochs)

    def steps_in(self, epoch: int) -> tuple[int, ...]:
        """Return the steps of an epoch after which the network is evaluated."""
        if self.every >= 1:
            due = (epoch + 1) % round(self.every) == 0 or epoch == self.epochs - 1
            return (self.steps,) if due else ()
        parts = min(round(1 / self.every), self.steps)
        return tuple(math.ceil(self.steps * part / parts) for part in range(1, parts + 1))

    def before(self, epoch: int) -> int:
        return sum(len(self.steps_in(earlier)) for earlier in range(epoch))

    def index(self, epoch: int, step: int) -> int:
        return self.before(epoch) + self.steps_in(epoch).index(step)
