"""Which networks at which epochs a rule has learnt from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from accord.errors import RecordMismatch, SourceError
from accord.store import Rows

NETWORKS: Final = "networks"  # the array that holds the networks' numbers
PROGRESS: Final = "progress"  # the array that holds the true epochs
MOST_NAMED: Final = 6  # networks or epochs that a message names
ALIKE: Final = 1e-6  # of an epoch; a tenth that was added up is not quite a tenth
SAME_ONLY: Final = "It can be used on other samples, but only of the same networks and epochs."


@dataclass(frozen=True)
class Voters:
    """Networks by their own numbers, and epochs by their progress."""

    numbers: tuple[int, ...]
    progress: tuple[float, ...]  # of the first network

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Return the voters of these rows."""
        return cls(rows.numbers, rows.told()[0].progress)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self | None:
        """Return the voters that `arrays` wrote; None if there are none, as in older files.

        Raises:
            SourceError: they are no numbers of networks, or no epochs.
        """
        if NETWORKS not in arrays or PROGRESS not in arrays:
            return None
        numbers, progress = arrays[NETWORKS], arrays[PROGRESS]
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise SourceError(
                f"{NETWORKS} must be whole numbers (network,); got {numbers.dtype} of shape "
                f"{numbers.shape}"
            )
        fits = progress.ndim == 1 and progress.dtype.kind in "iuf"
        if not fits or not np.isfinite(progress).all():
            raise SourceError(
                f"{PROGRESS} must be finite numbers (epoch,); got {progress.dtype} of shape "
                f"{progress.shape}"
            )
        return cls(tuple(map(int, numbers)), tuple(map(float, progress)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what to keep in a file."""
        return {NETWORKS: np.array(self.numbers), PROGRESS: np.array(self.progress)}

    def check(self, rows: Rows, rule: str, *, networks: bool) -> None:
        """Refuse rows of other epochs and, if `networks`, of other networks or another order.

        Raises:
            RecordMismatch: they are others.
        """
        there = Voters.of(rows)
        if networks and there.numbers != self.numbers:
            _refuse(rows, rule, "networks", self.numbers, there.numbers)
        same = len(there.progress) == len(self.progress)
        if not same or not np.allclose(there.progress, self.progress, rtol=0, atol=ALIKE):
            _refuse(rows, rule, "epochs of progress", self.progress, there.progress)


def _refuse(
    rows: Rows, rule: str, what: str, wanted: tuple[float, ...], there: tuple[float, ...]
) -> None:
    raise RecordMismatch(
        f"{rows.name}: {rule} was fitted on {what} {_named(wanted)}; these are {_named(there)}. "
        f"{SAME_ONLY}"
    )


def _named(values: tuple[float, ...]) -> str:
    texts = [f"{value:g}" for value in values]
    if len(texts) > MOST_NAMED:
        texts = [*texts[: MOST_NAMED - 2], "…", texts[-1]]
    return ", ".join(texts)
