"""Where to cut a ranking in two, from the scores alone."""

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

BINS: Final = 64
OWN_FROM: Final = 100  # samples that a class needs for its own cut to count as much as the common
FURTHEST: Final = 1 / 3  # from an even vote
# How fast the odds that a label is wrong grow with its score: by e for each 1/5.5 of the votes.
# Fitted to the truth, the development records would like 4.5 to 8.2.
STEEPNESS: Final = 5.5


def class_cutoffs(
    scores: NDArray[np.float64],  # (sample,)
    given: NDArray[Any],  # (sample,)
    *,
    classes: int,
) -> NDArray[np.float64]:  # (class,)
    """Find, for each given class, the score above which a label is more likely wrong than right.

    Each class has the cut that splits its own scores best, drawn towards the cut of all
    classes where it has few samples. Such a split lies halfway between right and wrong
    labels; if few are wrong, a score halfway is more likely that of a right one, and the cut
    moves up. No cut is further than a third of the votes from where two classes have equal
    votes: scores of labels that are all right have a best split too, but far from there.
    """
    edges = np.linspace(scores.min(), scores.max(), BINS + 1)
    step = max(edges[1] - edges[0], np.finfo(np.float64).tiny)
    bins = np.minimum(((scores - edges[0]) / step).astype(np.intp), BINS - 1)
    cells = given.astype(np.intp) * BINS + bins
    table = np.bincount(cells, minlength=classes * BINS).reshape(classes, BINS)
    common = best_split(table.sum(axis=0), edges)
    own = np.array([best_split(counts, edges) for counts in table])
    sizes = table.sum(axis=1)
    halfway = (sizes * own + OWN_FROM * common) / (sizes + OWN_FROM)
    above = int((scores > halfway[given]).sum())
    return np.asarray(np.clip(halfway + odds_shift(above, len(scores)), -FURTHEST, FURTHEST))


def odds_shift(wrong: int, samples: int) -> float:
    """Return how far the even odds move up from halfway if so many labels are wrong.

    >>> odds_shift(50, 100), round(odds_shift(10, 100), 2)
    (0.0, 0.38)
    """
    return math.log((samples - wrong + 1) / (wrong + 1)) / STEEPNESS


def best_split(counts: NDArray[np.intp], edges: NDArray[np.float64]) -> float:
    """Return the edge between bins that leaves the least variance on its two sides (Otsu).

    Among empty bins it is the middle; of several splits that are equally good, the first.

    >>> best_split(np.array([5, 1, 0, 7]), np.array([0.0, 1.0, 2.0, 3.0, 4.0]))
    2.5
    """
    middles = (edges[:-1] + edges[1:]) / 2
    below, total = counts.cumsum(), counts.sum()
    summed = (counts * middles).cumsum()
    sides = below * (total - below)
    # The variance between the two sides, times the square of all samples.
    spread = (summed[-1] * below - summed * total) ** 2
    between = np.divide(spread, sides, out=np.zeros(len(counts)), where=sides > 0)
    first = 1 + int((between >= between.max() * (1 - 1e-9)).argmax())
    last = first + int((below[first - 1 :] == below[first - 1]).sum()) - 1
    return float(edges[first] + edges[min(last, len(counts))]) / 2
