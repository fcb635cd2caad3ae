"""Tools for analysing predictions during training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, RecordError
from accord.kernels import error_consensus, final_margins, margins, running_winners, winners
from accord.rules import Context, Rule, find_rule, resolve_rule
from accord.rules.majority import Majority
from accord.store import RecordReader

LABELS_AT_ONCE: Final = 1 << 20  # each may be a run, which takes some 40 bytes


@dataclass(frozen=True)
class Persistence:
    """Onsets and lengths of runs of equal predictions.

    A run's onset is its first epoch, its length the number of its epochs. Counts are over all
    networks and samples.
    """

    right_onsets: NDArray[np.intp]  # (epoch,) -> correct runs that begin there
    wrong_onsets: NDArray[np.intp]  # (epoch,) -> wrong runs that begin there
    right_lengths: NDArray[np.intp]  # (epoch,) -> correct runs of length epoch + 1
    wrong_lengths: NDArray[np.intp]  # (epoch,) -> wrong runs of length epoch + 1

    @property
    def mean_right_length(self) -> float:
        """Mean length of correct runs."""
        return _mean_length(self.right_lengths)

    @property
    def mean_wrong_length(self) -> float:
        """Mean length of wrong runs."""
        return _mean_length(self.wrong_lengths)


def persistence(reader: RecordReader) -> Persistence:
    """Count the onsets and lengths of runs of equal predictions."""
    reader.check_complete("persistence")
    counts = np.zeros((2, 2, reader.epochs), np.intp)  # right or wrong; onset or length; epoch
    truth = reader.truth()
    for block in reader.blocks():
        step = max(1, LABELS_AT_ONCE // reader.epochs)
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


@dataclass(frozen=True)
class Forgetting:
    """Samples that are predicted correctly at some epoch but not at the last."""

    forgotten: NDArray[np.intp]  # their positions
    last_known: NDArray[np.intp]  # (forgotten,), the last epoch at which each was correct
    knew: NDArray[np.intp]  # (epoch,), how many of the forgotten samples were correct
    lost: NDArray[np.intp]  # (epoch,), samples correct one epoch before and not at this one
    gained: NDArray[np.intp]  # (epoch,), samples correct at this epoch and not one before
    samples: int
    judged_by: str  # "truth", or the rule whose labels are taken for it

    @property
    def share(self) -> float:
        """Fraction of samples that are forgotten."""
        return len(self.forgotten) / self.samples

    @property
    def best_epoch(self) -> int:
        """First epoch with the most forgotten samples correct."""
        return int(self.knew.argmax())


def forgetting(reader: RecordReader, *, judge: str | Rule | None = None) -> Forgetting:
    """Find samples that are predicted correctly at some epoch but not at the last.

    Correct means the true class or, with `judge`, the class that this rule predicts: use
    "max-agreement" without true labels. Most samples are correct at some epoch by chance; what
    counts is how many forgotten ones are correct at the same epoch: `knew`.

    Raises:
        TruthMissing: there are no true labels and no judge.
    """
    reader.check_complete("forgetting")
    reader = Context.of(reader)
    chosen = None if judge is None else resolve_rule(judge, reader)[0]
    labels = reader.truth() if chosen is None else reader.once(chosen).labels
    forgotten: list[NDArray[np.intp]] = []
    last_known: list[NDArray[np.intp]] = []
    knew, lost, gained = (np.zeros(reader.epochs, np.intp) for _ in range(3))
    for block in Majority().after_each_epoch(reader):
        known = block.values == labels[block.where]  # (epoch, sample)
        gone = np.flatnonzero(known.any(axis=0) & ~known[-1])
        forgotten.append(block.start + gone)
        last_known.append(reader.epochs - 1 - known[::-1, gone].argmax(axis=0))
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
        reader.samples,
        "truth" if chosen is None else chosen.name,
    )


@dataclass(frozen=True)
class Rescued:
    """Samples that max agreement corrects after a wrong and divided vote."""

    name: str  # of the record
    samples: NDArray[np.intp]  # (rescued,), ascending
    agreement: NDArray[np.float64]  # (rescued,) -> the true class's share of all votes
    last_wrong: int  # samples whose last majority vote is wrong, rescued or not

    def typical(self) -> int:
        """Find the sample with the median agreement on the true class."""
        if not len(self.samples):
            raise RecordError(
                f"{self.name}: no sample has a wrong last majority vote, by more than half the "
                "networks but not all, and a correct max agreement. "
                "Did the networks train long enough to overfit?"
            )
        order = np.argsort(self.agreement, kind="stable")
        return int(self.samples[order[(len(order) - 1) // 2]])


@dataclass(frozen=True)
class Story:
    """Predictions for one sample at each epoch."""

    labels: NDArray[Any]  # (network, epoch)
    majority: NDArray[Any]  # (epoch,) -> the vote at that epoch
    max_agreement: NDArray[Any]  # (epoch,) -> the vote over all epochs up to it


def rescued(reader: RecordReader) -> Rescued:
    """Find samples that max agreement corrects.

    The wrong class has more than half of the last votes, so that no tie decides, and not all.
    """
    truth = reader.truth()
    chosen, agreed = np.zeros(reader.samples, bool), np.empty(reader.samples)
    last_wrong = 0
    for block in reader.blocks():
        true = truth[block.where]
        last = winners(block.values[:, -1], classes=reader.classes)
        wrong = last.labels != true
        clear = (2 * last.votes > reader.networks) & (last.votes < reader.networks)
        right = winners(block.values, classes=reader.classes).labels == true
        chosen[block.where] = wrong & clear & right
        agreed[block.where] = (block.values == true).mean(axis=(0, 1))
        last_wrong += int(wrong.sum())
    return Rescued(reader.name, np.flatnonzero(chosen), agreed[chosen], last_wrong)


def story(reader: RecordReader, sample: int) -> Story:
    if not 0 <= sample < reader.samples:
        raise ChoiceError(
            f"{reader.name}: samples must lie in 0..{reader.samples - 1}; got {sample}. "
            "Samples are counted from 0"
        )
    here = slice(sample, sample + 1)
    labels = reader.read_labels(range(reader.networks), range(reader.epochs), here)
    votes = winners(labels[:, :, 0], classes=reader.classes)  # epochs take the place of samples
    running = running_winners(labels, classes=reader.classes)
    return Story(labels[:, :, 0], votes.labels, running[:, 0])


@dataclass(frozen=True)
class MarginHistogram:
    """Histogram of final margins for correct and wrong majority votes."""

    edges: NDArray[np.float64]  # (bin + 1,), from -1 to 1
    right: NDArray[np.intp]  # (bin,)
    wrong: NDArray[np.intp]  # (bin,)


def margin_of(reader: RecordReader) -> NDArray[np.float64]:
    """Compute the margin between the two classes with the most votes."""
    reader.check_complete("the margin")
    return Context.of(reader).once(_measure, margins)


def final_margin_of(reader: RecordReader) -> NDArray[np.float64]:
    """Compute the margin of the majority class at the last epoch.

    Negative where the networks agreed on another class before.
    """
    reader.check_complete("the final margin")
    return Context.of(reader).once(_measure, final_margins)


def _measure(context: Context, margin: Callable[..., NDArray[np.float64]]) -> NDArray[np.float64]:
    values = np.empty(context.samples)
    for block in context.blocks():
        values[block.where] = margin(block.values, classes=context.classes)
    return values


def final_margin_histogram(reader: RecordReader, *, bins: int = 40) -> MarginHistogram:
    """Compute a histogram of the final margins in equal bins from -1 to 1."""
    reader = Context.of(reader)
    right = reader.once(find_rule("majority")).labels == reader.truth()
    values = final_margin_of(reader)
    edges = np.linspace(-1, 1, bins + 1)
    return MarginHistogram(
        edges, np.histogram(values[right], edges)[0], np.histogram(values[~right], edges)[0]
    )


def error_consensus_histogram(reader: RecordReader) -> NDArray[np.intp]:
    """Count wrong predictions by the number of networks that share them.

    Entry k - 1 counts the (sample, network) pairs whose wrong class k networks predicted.
    """
    truth = reader.truth()
    counts = np.zeros(reader.networks, np.intp)
    for block in reader.last().blocks():
        counts += error_consensus(block.values[:, 0], truth[block.where])
    return counts
