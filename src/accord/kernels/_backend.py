"""The choice between the numpy loops and their numba twins."""

import os
from importlib import import_module
from typing import Protocol, cast

from accord.errors import ChoiceError, missing_extra
from accord.kernels import _numpy_loops as dense
from accord.kernels._blocks import Block, CompactLabels, Votes

VARIABLE = "ACCORD_KERNELS"

# Votes from which numba pays for itself in a fresh process: importing it and compiling takes
# 2 s the first time and 0.6 s once cached. It saves 0.15-2 ns a vote on winners (the most where
# no class holds half of the votes), 2 ns on tables, 4-5 ns on running winners (2 cores).
WINNERS_PAY_FROM = 2**30
TABLES_PAY_FROM = 2**29
RUNNING_PAYS_FROM = 2**27  # a streaming block holds twice as many


class Kernels(Protocol):
    """What `dense` and `fast` both offer."""

    def threads(self) -> int:
        """Return how many threads may call the others at once."""
        ...

    def guess(self, block: Block) -> tuple[CompactLabels, Votes]:
        """Guess each sample's leader; count its votes."""
        ...

    def tabulate(self, block: Block) -> Votes:
        """Count the votes, (sample, class)."""
        ...

    def run(self, block: Block) -> CompactLabels:
        """Find the leaders, (epoch, sample)."""
        ...


def kernels_for(votes: int, *, pays_from: int) -> Kernels:
    """Return numba's loops if they can be imported and so many votes pay for compiling them.

    Raises:
        ChoiceError: ACCORD_KERNELS is neither numpy nor numba.
        ExtraMissing: ACCORD_KERNELS is numba, which is not installed.
    """
    asked = os.environ.get(VARIABLE)
    if asked not in (None, "numpy", "numba"):
        raise ChoiceError(
            f"{VARIABLE} must be numpy or numba; got {asked!r}. Unset it to choose by size."
        )
    if asked == "numpy" or (asked is None and votes < pays_from):
        return dense
    try:
        return cast("Kernels", import_module("accord.kernels._numba_loops"))
    except ImportError as error:
        if asked is None:
            return dense
        raise missing_extra(f"{VARIABLE}=numba", "numba", extra="fast", cause=error) from error
