"""In which order networks and epochs are asked."""

import numpy as np
from numpy.typing import NDArray

from accord.inference.exits import Exit
from accord.rules.max_agreement import MaxAgreement
from accord.store import Rows

MOST_SAMPLES = 10_000  # of a record, to see which voters go with the others


def order_voters(
    rows: Rows | None,
    size: tuple[int, int],  # networks, epochs
    exit: Exit,  # noqa: A002
    *,
    seed: int,
) -> NDArray[np.intp]:
    """Return the voters, network · epochs + epoch, in the order to ask them.

    By chance where the exit needs that. Else those first that a record shows to vote most often
    with the winner, since the leader's votes should come first; without one, the last epochs.
    """
    networks, epochs = size
    if exit.shuffled:
        return np.random.default_rng(seed).permutation(networks * epochs)
    if rows is None:
        return np.arange(networks * epochs).reshape(size).T[::-1].ravel()
    return np.argsort(-_going_along(rows), kind="stable")


def _going_along(rows: Rows) -> NDArray[np.intp]:  # (network · epoch,)
    some = rows.select(samples=slice(0, min(rows.samples, MOST_SAMPLES)))
    winners = MaxAgreement()(some).labels
    found = np.zeros((some.networks, some.epochs), np.intp)
    for block in some.blocks():
        found += (block.values == winners[block.where]).sum(axis=2)
    return found.ravel()
