"""When a training is recorded: every so many epochs, counted by progress."""

import math
from dataclasses import dataclass
from typing import Final

from accord.errors import ChoiceError

SLACK: Final = 1e-6  # of a moment: 0.3 / 0.1 is a little less than 3


@dataclass(frozen=True)
class Moments:
    """The moments at which rows are due: whenever progress passes a multiple of `every`.

    The number of a row follows from progress alone, so a training that goes on after an
    interruption knows which rows come next.

    >>> Moments(0.5).passed(2.0), Moments(2).passed(5)
    (4, 2)
    """

    every: float = 1.0  # epochs

    def __post_init__(self) -> None:
        unit = 1 / self.every if 0 < self.every < 1 else self.every
        if not (math.isfinite(unit) and unit >= 1 and abs(unit - round(unit)) < SLACK * unit):
            raise ChoiceError(
                "every must be a whole number of epochs, or an epoch divided by one, such as 0.1; "
                f"got {self.every}"
            )

    def passed(self, progress: float) -> int:
        """Return how many rows are due up to and including this progress."""
        return math.floor(progress / self.every + SLACK)

    def progress_of(self, number: int) -> float:
        """Return when the row with this number, from 0, is due."""
        return (number + 1) * self.every

    def check_step(self, previous: float, progress: float) -> None:
        """Refuse one step of training that passes more than one moment."""
        if self.passed(progress) > self.passed(previous) + 1:
            raise ChoiceError(
                f"every={self.every:g} asks for more rows than training has steps: one step goes "
                f"from progress {previous:g} to {progress:g}. Record less often."
            )
