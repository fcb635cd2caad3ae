"""How a rule's accuracy depends on the epoch, the ensemble's size and the number of epochs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._scores import Accuracy, from_hits
from accord.kernels import equally_spaced, subsets_of, winners_by_spacing, winners_by_subset
from accord.rules import ABSTAINED, Rule, find_rule
from accord.rules.max_agreement import MaxAgreement
from accord.rules.single import Single
from accord.store import RecordReader

MOST_SUBSETS: Final = 256  # of one size; above, that many are drawn


@dataclass(frozen=True)
class Curve:
    """A rule's accuracy after each epoch, counting all epochs up to it."""

    rule: str
    progress: tuple[float, ...]  # the true epoch of each point
    points: tuple[Accuracy, ...]

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """The accuracy after each epoch (epoch,)."""
        return np.array([point.accuracy for point in self.points])

    @property
    def balanced_accuracy(self) -> NDArray[np.float64]:
        """The balanced accuracy after each epoch (epoch,)."""
        return np.array([point.balanced_accuracy for point in self.points])

    @property
    def recall(self) -> NDArray[np.float64]:
        """Each class's recall after each epoch (epoch, class)."""
        return np.array([point.recall for point in self.points])


@dataclass(frozen=True)
class Sweep:
    """A rule's accuracy against some size: mean and spread over the choices of that size."""

    rule: str
    sizes: tuple[int, ...]
    accuracies: tuple[tuple[float, ...], ...]  # for each size, one per choice

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean accuracy at each size."""
        return np.array([np.mean(values) for values in self.accuracies])

    @property
    def spread(self) -> NDArray[np.float64]:
        """The standard deviation over the choices at each size."""
        return np.array([np.std(values) for values in self.accuracies])


def curve(reader: RecordReader, rule: str | Rule) -> Curve:
    """Score a rule after each epoch; `single` is the mean over the networks."""
    rule = find_rule(rule)
    hits, covered = _hits_after_each_epoch(reader, rule)
    sizes = np.bincount(reader.truth(), minlength=reader.classes)
    voters = reader.networks if isinstance(rule, Single) else 1
    points = tuple(
        from_hits(counts, sizes * voters, covered=int(labelled))
        for counts, labelled in zip(hits, covered, strict=True)
    )
    return Curve(rule.name, reader.networks_info()[0].progress, points)


def _hits_after_each_epoch(
    reader: RecordReader, rule: Rule
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Count right labels (epoch, class) and labels at all (epoch,)."""
    views = [reader]
    if isinstance(rule, Single):
        views = [reader.select(networks=[network]) for network in reader.numbers]
    hits = np.zeros((reader.epochs, reader.classes), np.intp)
    covered = np.zeros(reader.epochs, np.intp)
    for view in views:
        for block in rule.after_each_epoch(view):
            _add_hits(hits, block.values, reader.truth()[block.where])
            covered += np.count_nonzero(block.values != ABSTAINED, axis=1)
    return hits, covered


def _add_hits(hits: NDArray[np.intp], labels: NDArray[Any], truth: NDArray[Any]) -> None:
    classes = hits.shape[1]
    for epoch, predicted in enumerate(labels):
        hits[epoch] += np.bincount(truth[predicted == truth], minlength=classes)


def by_networks(
    reader: RecordReader, rule: str | Rule, *, most_subsets: int = MOST_SUBSETS, seed: int = 0
) -> Sweep:
    """Score a rule for every ensemble size, over all subsets of the networks of that size.

    Above `most_subsets` subsets of one size, that many are drawn with `seed`.
    """
    sizes = tuple(range(1, reader.networks + 1))
    choices = [subsets_of(reader.networks, size, limit=most_subsets, seed=seed) for size in sizes]
    rule = find_rule(rule)
    votes = {"max-agreement": reader, "majority": reader.last()}
    if rule.name in votes:
        accuracies = _vote_accuracies(votes[rule.name], [one for some in choices for one in some])
    else:
        accuracies = [
            _accuracy(reader.select(networks=[reader.numbers[i] for i in one]), rule)
            for some in choices
            for one in some
        ]
    ends = np.cumsum([len(some) for some in choices])
    groups = np.split(np.array(accuracies), ends[:-1])
    return Sweep(rule.name, sizes, tuple(tuple(float(one) for one in group) for group in groups))


def _vote_accuracies(reader: RecordReader, subsets: Sequence[tuple[int, ...]]) -> list[float]:
    classes = reader.classes
    return _hit_shares(reader, lambda labels: winners_by_subset(labels, subsets, classes=classes))


def _hit_shares(
    reader: RecordReader, predict: Callable[[NDArray[Any]], NDArray[Any]]
) -> list[float]:
    """Return the accuracy of each row of labels (choice, sample) that is predicted of a block."""
    truth = reader.truth()
    hits = [(predict(one.values) == truth[one.where]).sum(axis=1) for one in reader.blocks()]
    return [float(share) for share in np.sum(hits, axis=0) / reader.samples]


def by_epochs(reader: RecordReader, rule: str | Rule, counts: Sequence[int] | None = None) -> Sweep:
    """Score a rule on k equally spaced epochs, for each k in `counts`."""
    sizes = tuple(counts) if counts is not None else _doubling(reader.epochs)
    rule = find_rule(rule)
    if type(rule) is MaxAgreement:
        accuracies = _spaced_accuracies(reader, sizes)
    else:
        kept = [equally_spaced(reader.epochs, size).tolist() for size in sizes]
        accuracies = [_accuracy(reader.select(epochs=epochs), rule) for epochs in kept]
    return Sweep(rule.name, sizes, tuple((accuracy,) for accuracy in accuracies))


def _spaced_accuracies(reader: RecordReader, sizes: Sequence[int]) -> list[float]:
    """Return the accuracy of max agreement for each number of epochs, reading the rows once."""
    classes = reader.classes
    return _hit_shares(reader, lambda labels: winners_by_spacing(labels, sizes, classes=classes))


def _doubling(epochs: int) -> tuple[int, ...]:
    """Return 1, 2, 4 … and the number of epochs itself."""
    return (*(2**power for power in range(epochs.bit_length()) if 2**power < epochs), epochs)


def _accuracy(reader: RecordReader, rule: Rule) -> float:
    return float((rule(reader).labels == reader.truth()).mean())
