"""Histograms of the paper: final margins of right and wrong labels, and error consensus."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accord.kernels import error_consensus, final_margins, margins
from accord.rules.majority import Majority
from accord.store import Rows


@dataclass(frozen=True)
class MarginHistogram:
    """Final margins, split by whether the majority at the last epoch is right."""

    edges: NDArray[np.float64]  # (bin + 1,), from -1 to 1
    right: NDArray[np.intp]  # (bin,)
    wrong: NDArray[np.intp]  # (bin,)


def margin_of(rows: Rows) -> NDArray[np.float64]:
    """Return best minus second-best agreement for each sample: the confidence in max agreement."""
    values = np.empty(rows.samples)
    for block in rows.blocks():
        values[block.where] = margins(block.values, classes=rows.classes)
    return values


def final_margin_of(rows: Rows) -> NDArray[np.float64]:
    """Return how far the last epoch's majority class is ahead over all epochs, or behind.

    Negative where the networks agreed on another class before.
    """
    values = np.empty(rows.samples)
    for block in rows.blocks():
        values[block.where] = final_margins(block.values, classes=rows.classes)
    return values


def final_margin_histogram(rows: Rows, *, bins: int = 40) -> MarginHistogram:
    """Count final margins of right and of wrong final labels in equal bins from -1 to 1."""
    truth = rows.truth()
    right = Majority()(rows).labels == truth
    values = final_margin_of(rows)
    edges = np.linspace(-1, 1, bins + 1)
    return MarginHistogram(
        edges,
        np.histogram(values[right], edges)[0],
        np.histogram(values[~right], edges)[0],
    )


def error_consensus_histogram(rows: Rows) -> NDArray[np.intp]:
    """Count wrong predictions of the last epoch by how many networks share each.

    Entry k - 1 counts the (sample, network) pairs whose wrong class k networks gave.
    """
    truth = rows.truth()
    counts = np.zeros(rows.networks, np.intp)
    for block in rows.last().blocks():
        counts += error_consensus(block.values[:, 0], truth[block.where])
    return counts
