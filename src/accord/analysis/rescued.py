"""Samples that max agreement predicts right although the last majority vote is wrong."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, RecordError
from accord.kernels import running_winners, winners
from accord.store import Rows


@dataclass(frozen=True)
class Rescued:
    """Samples whose last vote is wrong and not unanimous, and whose max agreement is right."""

    name: str  # of the record
    samples: NDArray[np.intp]  # (rescued,), ascending
    agreement: NDArray[np.float64]  # (rescued,) -> the true class's share of all votes
    last_wrong: int  # samples whose last majority vote is wrong, rescued or not

    def typical(self) -> int:
        """Return the middle one by agreement on the true class: neither the best nor the worst.

        Of equal ones the smaller comes first; of an even number, the lower of the middle two.

        Raises:
            RecordError: there is none.
        """
        if not len(self.samples):
            raise RecordError(
                f"{self.name}: no sample has a wrong last majority vote, by more than half the "
                "networks but not all, and a right max agreement. "
                "Did the networks train long enough to overfit?"
            )
        order = np.argsort(self.agreement, kind="stable")
        return int(self.samples[order[(len(order) - 1) // 2]])


@dataclass(frozen=True)
class Story:
    """What was predicted for one sample, epoch by epoch."""

    labels: NDArray[Any]  # (network, epoch)
    majority: NDArray[Any]  # (epoch,) -> the vote at that epoch
    max_agreement: NDArray[Any]  # (epoch,) -> the vote over all epochs up to it


def rescued(rows: Rows) -> Rescued:
    """Find the samples that max agreement rescues from a wrong last vote.

    The wrong class has more than half of the last votes, so that no tie decides, and less than
    all of them.

    Raises:
        TruthMissing: the record has no true labels.
    """
    truth = rows.truth()
    chosen, agreed = np.zeros(rows.samples, bool), np.empty(rows.samples)
    last_wrong = 0
    for block in rows.blocks():
        true = truth[block.where]
        last = winners(block.values[:, -1], classes=rows.classes)
        wrong = last.labels != true
        clear = (2 * last.votes > rows.networks) & (last.votes < rows.networks)
        right = winners(block.values, classes=rows.classes).labels == true
        chosen[block.where] = wrong & clear & right
        agreed[block.where] = (block.values == true).mean(axis=(0, 1))
        last_wrong += int(wrong.sum())
    return Rescued(rows.name, np.flatnonzero(chosen), agreed[chosen], last_wrong)


def story(rows: Rows, sample: int) -> Story:
    """Return what each network, their vote and max agreement say of a sample at each epoch.

    Raises:
        ChoiceError: there is no such sample.
    """
    if not 0 <= sample < rows.samples:
        raise ChoiceError(
            f"{rows.name}: samples must lie in 0..{rows.samples - 1}; got {sample}. "
            "Samples are counted from 0"
        )
    here = slice(sample, sample + 1)
    labels = rows.read_labels(range(rows.networks), range(rows.epochs), here)
    votes = winners(labels[:, :, 0], classes=rows.classes)  # epochs take the place of samples
    running = running_winners(labels, classes=rows.classes)
    return Story(labels[:, :, 0], votes.labels, running[:, 0])
