"""When right and wrong predictions set in, and how long they last."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.store import Rows

LABELS_AT_ONCE: Final = 1 << 20  # each may be a run of its own, and then takes some 40 bytes


@dataclass(frozen=True)
class Persistence:
    """Runs of epochs in which a network keeps predicting one class for a sample.

    A run's onset is its first epoch and its length how many epochs it lasts. The counts are
    over all networks and samples.
    """

    right_onsets: NDArray[np.intp]  # (epoch,) -> right runs that begin there
    wrong_onsets: NDArray[np.intp]  # (epoch,) -> wrong runs that begin there
    right_lengths: NDArray[np.intp]  # (epoch,) -> right runs of length epoch + 1
    wrong_lengths: NDArray[np.intp]  # (epoch,) -> wrong runs of length epoch + 1

    @property
    def mean_right_length(self) -> float:
        """How many epochs a right run lasts on average; nan if there is none."""
        return _mean_length(self.right_lengths)

    @property
    def mean_wrong_length(self) -> float:
        """How many epochs a wrong run lasts on average; nan if there is none."""
        return _mean_length(self.wrong_lengths)


def persistence(rows: Rows) -> Persistence:
    """Find every run of equal predictions and count onsets and lengths, right and wrong apart."""
    counts = np.zeros((2, 2, rows.epochs), np.intp)  # right or wrong; onset or length; epoch
    truth = rows.truth()
    for block in rows.blocks():
        step = max(1, LABELS_AT_ONCE // rows.epochs)
        for start in range(0, block.stop - block.start, step):
            some = slice(start, start + step)
            for labels in block.values[:, :, some]:
                _count_runs(counts, labels, truth[block.where][some])
    (right_onsets, right_lengths), (wrong_onsets, wrong_lengths) = counts
    return Persistence(right_onsets, wrong_onsets, right_lengths, wrong_lengths)


def _count_runs(counts: NDArray[np.intp], labels: NDArray[Any], truth: NDArray[Any]) -> None:
    epochs, samples = labels.shape
    starts = np.ones((samples, epochs), bool)
    starts[:, 1:] = (labels[1:] != labels[:-1]).T
    sample, onset = np.nonzero(starts)  # in order of sample, then epoch
    ends = np.append(onset[1:], epochs)
    ends[np.append(sample[1:] != sample[:-1], True)] = epochs
    right = labels[onset, sample] == truth[sample]
    for side, chosen in enumerate((right, ~right)):
        counts[side, 0] += np.bincount(onset[chosen], minlength=epochs)
        counts[side, 1] += np.bincount((ends - onset)[chosen] - 1, minlength=epochs)


def _mean_length(lengths: NDArray[np.intp]) -> float:
    runs = int(lengths.sum())
    return float((lengths * np.arange(1, len(lengths) + 1)).sum() / runs) if runs else float("nan")
