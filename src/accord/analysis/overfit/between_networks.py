"""How much the networks agree with each other, epoch by epoch; no labels needed."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError
from accord.store import Rows


def network_agreement(rows: Rows) -> NDArray[np.float64]:
    """Return how often two networks predict the same class, over all pairs and samples (epoch,).

    Raises:
        ChoiceError: there is only one network.
    """
    if rows.networks < 2:
        raise ChoiceError(f"{rows.name}: agreement between networks needs two; there is one")
    equal = np.zeros(rows.epochs, np.intp)
    for block in rows.blocks():
        equal += _equal_pairs(block.values)
    return equal / (rows.samples * rows.networks * (rows.networks - 1) / 2)


def _equal_pairs(labels: NDArray[Any]) -> NDArray[np.intp]:  # (network, epoch, sample) -> (epoch,)
    # Sorted by class, the i-th of a run of equal labels makes i pairs with those before it.
    ranked = np.sort(labels, axis=0)
    run = np.zeros(labels.shape[1:], np.uint32)
    pairs = np.zeros(labels.shape[1], np.intp)
    for before, after in pairwise(ranked):
        run = (run + 1) * (before == after)
        pairs += run.sum(axis=1, dtype=np.intp)
    return pairs
