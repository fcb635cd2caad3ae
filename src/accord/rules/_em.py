"""Expectation maximisation for the Dawid-Skene model.

Each round estimates annotators from the votes and each sample's expected class, then classes from
annotators, until the classes stay.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.rules._analysis_context import Context
from accord.rules._annotators import MAX_CELLS, Annotators, Posteriors, VoteCounts, small_parts
from accord.rules._epoch_weights import Likeness, Weights, independent_epochs, regression_weights
from accord.store import RecordReader

MAX_ROUNDS: Final = 50
CONVERGED: Final = 1000  # once fewer than one sample in this many changes its class
VOTES_PER_CELL: Final = 10  # that a network's confusion matrix should have on average
MIN_GROUPS: Final = 4  # of epochs, however few samples there are
HELD_CELLS: Final = 2**23  # of the posterior, 64 MiB: so many are kept for the next estimate


@dataclass(frozen=True)
class Fit:
    """Result of expectation maximisation."""

    annotators: Annotators
    labels: NDArray[np.intp]  # (sample,), the most probable class
    scores: NDArray[np.float64]  # (sample,), its posterior probability
    rounds: int
    converged: bool
    lost: tuple[int, ...]  # classes most of whose samples went to one other class

    @property
    def collapsed(self) -> bool:
        """Whether classes have changed their meaning during the fit."""
        return bool(self.lost)


def group_epochs(
    epochs: int, *, samples: int, classes: int
) -> NDArray[np.intp]:  # (epoch,) -> group
    """Group neighbouring epochs for estimating confusion matrices.

    With ten classes and 10,000 samples every epoch is a group; with many classes, neighbours
    share matrices, in at least four groups.

    >>> group_epochs(12, samples=10_000, classes=10).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    >>> group_epochs(12, samples=10_000, classes=45).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    """
    wanted = -(-VOTES_PER_CELL * classes**2 // samples)
    width = max(1, min(wanted, epochs // MIN_GROUPS))
    return np.arange(epochs) // width


def fits_in_memory(reader: RecordReader) -> bool:
    """Check whether the confusion matrices fit into 4 GiB."""
    groups = group_epochs(reader.epochs, samples=reader.samples, classes=reader.classes)
    return reader.networks * (int(groups[-1]) + 1) * reader.classes**2 <= MAX_CELLS


def fit_annotators(
    context: Context,
    start: NDArray[Any],  # (sample,)
    likeness: Likeness,
    weights: Weights,
    *,
    boost: int = 1,
) -> Fit:
    """Fit annotators by expectation maximisation.

    Reads the labels once, and once in each round. `weights` are those of the epochs in the first
    round, and `boost` is a factor on the weight of votes.
    """
    classes = context.classes
    groups = group_epochs(context.epochs, samples=context.samples, classes=classes)
    counts = VoteCounts.empty(networks=context.networks, classes=classes, groups=groups)
    parts = list(small_parts(context.blocks(), classes=classes)) if context.keeps_labels else None
    for part in parts or small_parts(context.blocks(), classes=classes):
        counts.add([(part, np.eye(classes)[start[part.where]])], groups)
    labels, scores = np.array(start, np.intp), np.empty(context.samples)
    # Posteriors that are held are counted when the matrices they came from are gone, which saves
    # half of the memory; and those of the last round are not counted at all.
    held = context.samples * classes <= HELD_CELLS
    for rounds in range(1, MAX_ROUNDS + 1):
        votes = vote_shares(weights, likeness, context.networks, boost=boost)
        annotators = Annotators(counts.prior(), counts.confusion(shared=classes), groups, votes)
        counts = VoteCounts.empty(networks=context.networks, classes=classes, groups=groups)
        posteriors: Posteriors = annotators.posteriors(
            parts or small_parts(context.blocks(), classes=classes)
        )
        posteriors = list(posteriors) if held else posteriors
        before = labels.copy()
        for part, posterior in posteriors:
            labels[part.where], scores[part.where] = posterior.argmax(axis=1), posterior.max(axis=1)
            if not held:
                counts.add([(part, posterior)], groups)
        converged = bool(np.count_nonzero(before != labels) * CONVERGED < len(labels))
        if converged or rounds == MAX_ROUNDS:
            break
        if held:
            del annotators
            counts.add(posteriors, groups)
        weights = regression_weights(likeness.within, counts.reliability(likeness.shares))
    lost = lost_classes(start, labels, classes=classes)
    return Fit(annotators, labels, scores, rounds, converged, lost)


def lost_classes(before: NDArray[Any], after: NDArray[Any], *, classes: int) -> tuple[int, ...]:
    """Find classes that were absorbed by another class.

    >>> lost_classes(np.array([0, 0, 1, 1, 1]), np.array([0, 0, 0, 0, 1]), classes=2)
    (1,)
    """
    moved = np.bincount(before.astype(np.intp) * classes + after, minlength=classes**2)
    moved = moved.reshape(classes, classes)
    kept = np.diag(moved)
    return tuple(int(lost) for lost in np.flatnonzero(moved.max(axis=1) > kept))


def vote_shares(
    weights: Weights, likeness: Likeness, networks: int, *, boost: int = 1
) -> Weights:  # (epoch,), 0..1
    """Convert normalised weights to shares of a full vote.

    Votes are not independent: as full votes they would make every posterior 0 or 1. The
    networks share their training labels, so that together they count as one with as many
    independent epochs as it has, but at least as one vote each. No vote counts as more than one.
    """
    votes = max(independent_epochs(likeness, weights), networks)
    shares = weights * votes / networks
    return np.maximum(shares, np.minimum(boost * shares, 1.0))
