"""The recording schedule: after which steps of a training predictions are recorded."""

import math
from dataclasses import dataclass

from accord.errors import ChoiceError


@dataclass(frozen=True)
class RecordedEpochs:
    """The evaluations of a training: one every `every` epochs, and one at the end.

    With `every` below 1, an epoch has several, but no more than it has steps.

    Args:
        epochs: the length of the training.
        every: the distance between two evaluations, in epochs.
        steps: the optimizer steps of one epoch.

    >>> schedule = RecordedEpochs(epochs=5, every=2, steps=10)
    >>> [schedule.steps_in(epoch) for epoch in range(5)], len(schedule)
    ([(), (10,), (), (10,), (10,)], 3)
    >>> RecordedEpochs(epochs=2, every=0.1, steps=2).steps_in(0)
    (1, 2)
    """

    epochs: int
    every: float = 1.0
    steps: int = 1

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.every <= 0:
            raise ChoiceError(
                "training needs at least 1 epoch, and a positive distance between evaluations; "
                f"got epochs={self.epochs}, every={self.every}"
            )

    @classmethod
    def of_training(
        cls, epochs: int, every: float, *, batch: int, samples: int | None
    ) -> "RecordedEpochs":
        """Return the schedule of a training on `samples` samples.

        Where `samples` is None, an epoch is assumed to have enough steps for `every`.
        """
        steps = max(1, round(1 / every)) if samples is None else math.ceil(samples / batch)
        return cls(epochs, every, steps)

    def __len__(self) -> int:
        return self.before(self.epochs)

    def steps_in(self, epoch: int) -> tuple[int, ...]:
        """Return after how many steps of an epoch the network is evaluated."""
        if self.every >= 1:
            due = (epoch + 1) % round(self.every) == 0 or epoch == self.epochs - 1
            return (self.steps,) if due else ()
        parts = min(round(1 / self.every), self.steps)
        return tuple(math.ceil(self.steps * part / parts) for part in range(1, parts + 1))

    def before(self, epoch: int) -> int:
        """Return the number of evaluations before an epoch of training begins."""
        return sum(len(self.steps_in(earlier)) for earlier in range(epoch))

    def index(self, epoch: int, step: int) -> int:
        """Return the index in the record of the evaluation after a step of an epoch."""
        return self.before(epoch) + self.steps_in(epoch).index(step)
