"""How good the majority vote is at each epoch, judged without the truth."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError
from accord.rules import Prediction
from accord.rules.dawid_skene import DawidSkene
from accord.rules.majority import Majority
from accord.rules.overfit.equal_pairs import GROUPS, group_sizes, sum_by_group
from accord.rules.weighted_votes import predict_regressed
from accord.store import Rows


@dataclass(frozen=True)
class GoodEpochs:
    """The share of samples on which each epoch's majority says what a rule over all epochs says."""

    shares: NDArray[np.float64]  # (epoch,)
    by_group: NDArray[np.float64]  # (group, epoch): the same on every n-th sample
    sizes: NDArray[np.intp]  # (group,) -> samples

    @property
    def best(self) -> int:
        """The best epoch; of equal ones the first."""
        return int(self.shares.argmax())


def good_epochs(rows: Rows) -> GoodEpochs:
    """Judge every epoch's majority vote by what all these epochs together say.

    What Dawid–Skene makes of many epochs is more often right than the majority of any one, so that
    the majority closest to it is close to the best one. Give it the epochs before overfit:
    later ones would have a say too. Where its matrices would be too large, the weighted vote
    that it would begin with takes its place.
    """
    judge = _judge(rows)
    sizes = group_sizes(rows.samples, groups=min(GROUPS, rows.samples))
    same = np.zeros((len(sizes), rows.epochs), np.intp)
    for block in Majority().after_each_epoch(rows):
        equal = block.values == judge.labels[block.where]
        same += sum_by_group(equal, start=block.start, groups=len(sizes))
    return GoodEpochs(same.sum(axis=0) / rows.samples, same / sizes[:, None], sizes)


def _judge(rows: Rows) -> Prediction:
    try:
        return DawidSkene()(rows)
    except PredictionError:
        return predict_regressed(rows)
