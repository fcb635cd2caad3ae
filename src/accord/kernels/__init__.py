"""Functions for counting votes in arrays.

`labels` are integers from 0 with the axes (network, epoch, sample); where only the voters matter,
every axis before the last is a voter axis. `classes` is the number of classes. Labels of another
shape, type or range raise `PredictionError`. Equal votes always go to the smaller class. Large
work is done by numba where it is installed; `ACCORD_KERNELS=numpy` or `numba` forces one.
"""

from accord.kernels._checks import check_class_range, check_labels
from accord.kernels._subsets import (
    equally_spaced,
    subsets_of,
    winners_by_spacing,
    winners_by_subset,
)
from accord.kernels._votes import agreement, count_votes, error_consensus, final_margins, margins
from accord.kernels._winners import Winners, running_winners, winners

__all__ = [
    "Winners",
    "agreement",
    "check_class_range",
    "check_labels",
    "count_votes",
    "equally_spaced",
    "error_consensus",
    "final_margins",
    "margins",
    "running_winners",
    "subsets_of",
    "winners",
    "winners_by_spacing",
    "winners_by_subset",
]
