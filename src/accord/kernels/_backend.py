"""Selection of the numpy or numba backend."""

import os
from importlib import import_module
from typing import Protocol, cast

from accord.errors import ChoiceError, missing_extra
from accord.kernels import _numpy_loops as numpy_loops
from accord.kernels._blocks import Block, CompactLabels, Votes

VARIABLE = "ACCORD_KERNELS"

# Votes from which numba pays for itself in a fresh process: importing it and compiling takes
# 2 s the first time and 0.6 s once cached. It saves 0.15-2 ns a vote on winners (the most where
# no class holds half of the votes), 2 ns on tables, 4-5 ns on running winners (2 cores).
WINNERS_PAY_FROM = 2**30
TABLES_PAY_FROM = 2**29
RUNNING_PAYS_FROM = 2**27  # a streaming block holds twice as many


class Kernels(Protocol):
    def threads(self) -> int: ...

    def guess(self, block: Block) -> tuple[CompactLabels, Votes]:
        """Guess the winner of each sample and count its votes."""

    def tabulate(self, block: Block) -> Votes: ...

    def run(self, block: Block) -> CompactLabels:
        """Find the winners after each epoch."""


def kernels_for(votes: int, *, pays_from: int) -> Kernels:
    """Select the loops for a number of votes."""
    wanted = os.environ.get(VARIABLE)
    if wanted not in (None, "numpy", "numba"):
        raise ChoiceError(
            f"{VARIABLE} must be numpy or numba; got {wanted!r}. Unset it to choose by size."
        )
    if wanted == "numpy" or (wanted is None and votes < pays_from):
        return numpy_loops
    try:
        return cast("Kernels", import_module("accord.kernels._numba_loops"))
    except ImportError as error:
        if wanted is None:
            return numpy_loops
        raise missing_extra(f"{VARIABLE}=numba", "numba", extra="fast", cause=error) from error
