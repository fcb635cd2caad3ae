"""How well a ranking finds what it looks for."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RankingScore:
    """A ranking, and a cut through it, against what is true."""

    auroc: float  # how often a wrong label is above a right one; half if equal
    average_precision: float  # the mean precision over the wrong labels, from the top down
    precision: float  # the share of wrong labels above the cut; nan if nothing is there
    recall: float  # the share of wrong labels that are above the cut


def score_ranking(
    scores: NDArray[np.float64],  # (sample,)
    wanted: NDArray[np.bool_],  # (sample,): neither all nor none
    chosen: NDArray[np.bool_],  # (sample,)
) -> RankingScore:
    """Score a ranking by its scores, the highest first, and the samples that it chooses.

    >>> scores, wanted = np.array([0.9, 0.8, 0.3, 0.1]), np.array([True, False, True, False])
    >>> score_ranking(scores, wanted, scores > 0.5)
    RankingScore(auroc=0.75, average_precision=0.8333333333333333, precision=0.5, recall=0.5)
    """
    levels, level = np.unique(-scores, return_inverse=True)  # the highest first
    sizes = np.bincount(level, minlength=len(levels))
    hits = np.bincount(level[wanted], minlength=len(levels))
    misses, found = sizes - hits, hits.cumsum()
    total, others = int(found[-1]), int(misses.sum())
    below = others - misses.cumsum() + misses / 2
    right = int((wanted & chosen).sum())
    return RankingScore(
        auroc=float((hits * below).sum() / (total * others)),
        average_precision=float((hits * found / sizes.cumsum()).sum() / total),
        precision=right / int(chosen.sum()) if chosen.any() else float("nan"),
        recall=right / total,
    )
