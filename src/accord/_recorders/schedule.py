"""When predictions are recorded: every `n` epochs or every `1/n` of one, and at the last epoch."""

import math
from dataclasses import dataclass
from typing import Final

from accord.errors import ChoiceError

SLACK: Final = 1e-6  # of an epoch: 0.3 / 0.1 is slightly less than 3


@dataclass(frozen=True)
class Schedule:
    """The recording schedule of a training, by progress: the true epoch, such as 0.5.

    A row is due whenever progress passes a multiple of `every`, and after the last epoch,
    whether or not that is a multiple: `majority` and `single` read the last epoch alone.

    >>> Schedule(0.5).rows_due(2.0), Schedule(2).rows_due(5)
    (4, 2)
    >>> Schedule(2).recorded_steps(epochs=5, steps=10)
    {1: [10], 3: [10], 4: [10]}
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
        """Return the number of multiples of `every` up to and including this progress."""
        return math.floor(progress / self.every + SLACK)

    def is_due(self, progress: float, *, recorded: float, last: bool = False) -> bool:
        """Return whether a row is due at this progress, given the progress of the last row.

        Args:
            progress: the true epoch after the current step.
            recorded: the progress of the last row in the record; 0 if it has none.
            last: training ends here.
        """
        if last:
            return progress > recorded + SLACK
        return self.rows_due(progress) > self.rows_due(recorded)

    def check_step(self, previous: float, progress: float) -> None:
        """Raise if one training step passes more than one multiple of `every`."""
        if self.rows_due(progress) > self.rows_due(previous) + 1:
            raise ChoiceError(
                f"every={self.every:g} requires more rows than training has steps: one step goes "
                f"from progress {previous:g} to {progress:g}. Record less often."
            )

    def recorded_steps(self, *, epochs: int, steps: int) -> dict[int, list[int]]:
        """Return, for each epoch with rows, the numbers of steps after which they are recorded.

        An epoch has at most as many rows as steps.

        Args:
            epochs: the length of training.
            steps: training steps per epoch.
        """
        if self.every >= 1:
            every, last = round(self.every), epochs - 1
            return {e: [steps] for e in range(epochs) if (e + 1) % every == 0 or e == last}
        parts = min(round(1 / self.every), steps)
        within = [math.ceil(steps * part / parts) for part in range(1, parts + 1)]
        return dict.fromkeys(range(epochs), within)

    def count_rows(self, *, epochs: int, steps: int | None = None) -> int:
        """Return the number of rows of a whole training.

        Args:
            epochs: the length of training.
            steps: training steps per epoch; by default enough for every row.

        >>> Schedule(2).count_rows(epochs=5), Schedule(0.1).count_rows(epochs=1, steps=2)
        (3, 2)
        """
        if steps is None:
            steps = max(1, round(1 / self.every))
        return sum(map(len, self.recorded_steps(epochs=epochs, steps=steps).values()))
