"""Samples that were right and became wrong, and the epochs that knew them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, PredictionError
from accord.kernels import count_votes
from accord.kernels.checks import check_labels
from accord.rules import Rule, find_rule
from accord.rules.majority import Majority
from accord.store import Rows


@dataclass(frozen=True)
class Forgetting:
    """What the majority vote of some epochs knew and that of the last epoch does not."""

    forgotten: NDArray[np.intp]  # the samples that some epoch knew and the last one does not
    last_known: NDArray[np.intp]  # (forgotten,), the last epoch that knew each
    knew: NDArray[np.intp]  # (epoch,), how many of the forgotten samples each epoch knew
    lost: NDArray[np.intp]  # (epoch,), samples known one epoch before and not at this one
    gained: NDArray[np.intp]  # (epoch,), samples known at this epoch and not one before
    samples: int
    judged_by: str  # "truth", or the rule whose labels stood for it

    @property
    def share(self) -> float:
        """The share of all samples that were forgotten."""
        return len(self.forgotten) / self.samples

    @property
    def best_epoch(self) -> int:
        """The epoch that knew most of what was forgotten; of equal ones the first."""
        return int(self.knew.argmax())


def forgetting(rows: Rows, *, judge: str | Rule | None = None) -> Forgetting:
    """Find what the networks knew at some epoch and forgot by the last one.

    A sample is known at an epoch if the majority vote gives it its true class, or, with
    `judge`, the class that this rule predicts: without true labels "max-agreement" will do.
    Most samples that are known once are known at some single epoch by luck too; what
    counts is how many of the forgotten ones one and the same epoch knew: `knew`.

    Raises:
        TruthMissing: there are no true labels and no judge.
    """
    chosen = None if judge is None else find_rule(judge)
    labels = rows.truth() if chosen is None else chosen(rows).labels
    forgotten: list[NDArray[np.intp]] = []
    last_known: list[NDArray[np.intp]] = []
    knew, lost, gained = (np.zeros(rows.epochs, np.intp) for _ in range(3))
    for block in Majority().after_each_epoch(rows):
        known = block.values == labels[block.where]  # (epoch, sample)
        gone = np.flatnonzero(known.any(axis=0) & ~known[-1])
        forgotten.append(block.start + gone)
        last_known.append(rows.epochs - 1 - known[::-1, gone].argmax(axis=0))
        knew += np.count_nonzero(known[:, gone], axis=1)
        lost[1:] += np.count_nonzero(known[:-1] & ~known[1:], axis=1)
        gained[0] += np.count_nonzero(known[0])
        gained[1:] += np.count_nonzero(~known[:-1] & known[1:], axis=1)
    return Forgetting(
        np.concatenate(forgotten),
        np.concatenate(last_known),
        knew,
        lost,
        gained,
        rows.samples,
        "truth" if chosen is None else chosen.name,
    )


def epochs_to_fuse(
    rows: Rows, samples: Sequence[int] | NDArray[Any], labels: NDArray[Any], *, most: int = 10
) -> list[int]:
    """Choose epochs whose votes, added to the last epoch's, repair most of what it forgot.

    Starts from the last epoch and, one by one, adds the epoch with which the joint vote is right
    on most of the labelled samples, as long as that helps; an epoch may be added again to weigh
    more, so that the list may repeat it. The labels may be noisy: a validation split will do.
    Fusing is a rival of max agreement that needs labels; on `rows.select(epochs=…)` of
    the chosen epochs any rule can predict.

    Args:
        rows: networks and epochs.
        samples: which samples are labelled, by position or as a mask over all.
        labels: (labelled,), their labels.
        most: how many epochs to choose at most, the last one included.

    Raises:
        ChoiceError: there is no labelled sample, or `most` is below 1.
        PredictionError: samples and labels do not fit together, samples are neither whole numbers
            nor a mask, or a label is no class.
    """
    positions, wanted = _positions(rows, np.asarray(samples)), np.asarray(labels)
    _check_labelled(rows, positions, wanted, most)
    tables = _votes_by_epoch(rows, positions)  # (epoch, labelled, class)
    chosen = [rows.epochs - 1]
    joint = tables[-1].astype(np.intp)
    hits = int(np.count_nonzero(joint.argmax(axis=1) == wanted))
    while len(chosen) < most:
        found = [
            int(np.count_nonzero((joint + table).argmax(axis=1) == wanted)) for table in tables
        ]
        best = int(np.argmax(found))
        if found[best] <= hits:
            break
        hits = found[best]
        joint += tables[best]
        chosen.append(best)
    return chosen


def _positions(rows: Rows, samples: NDArray[Any]) -> NDArray[np.intp]:
    if samples.dtype == bool:
        if samples.shape != (rows.samples,):
            raise PredictionError(
                f"{rows.name}: a mask of samples must have shape ({rows.samples},); got "
                f"{samples.shape}"
            )
        return np.flatnonzero(samples)
    if samples.size and not np.issubdtype(samples.dtype, np.integer):
        raise PredictionError(
            f"samples must be positions, whole numbers, or a mask; got {samples.dtype}"
        )
    return samples.astype(np.intp)


def _check_labelled(
    rows: Rows, positions: NDArray[np.intp], labels: NDArray[Any], most: int
) -> None:
    if most < 1:
        raise ChoiceError(f"at least one epoch must be chosen; got most={most}")
    if not positions.size:
        raise ChoiceError("fusing epochs needs labelled samples; none were given")
    if positions.shape != labels.shape or positions.ndim != 1:
        raise PredictionError(
            f"one label per labelled sample is wanted; got shapes {positions.shape} and "
            f"{labels.shape}"
        )
    if positions.min() < 0 or positions.max() >= rows.samples:
        raise PredictionError(
            f"{rows.name}: samples must lie in 0..{rows.samples - 1}; got "
            f"{positions.min()}..{positions.max()}"
        )
    check_labels(labels[np.newaxis], classes=rows.classes)


def _votes_by_epoch(rows: Rows, positions: NDArray[np.intp]) -> NDArray[np.uint16]:
    tables = np.empty((rows.epochs, len(positions), rows.classes), np.uint16)
    for block in rows.blocks():
        inside = np.flatnonzero((positions >= block.start) & (positions < block.stop))
        if inside.size:
            some = block.values[:, :, positions[inside] - block.start]
            for epoch in range(rows.epochs):
                tables[epoch, inside] = count_votes(some[:, epoch], classes=rows.classes)
    return tables
