"""Accuracy curves of a rule."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from accord.analysis._scores import Accuracy, from_hits
from accord.kernels import equally_spaced, subsets_of, winners_by_spacing, winners_by_subset
from accord.rules import ABSTAINED, Context, Rule, resolve_rule
from accord.store import RecordReader

MAX_SUBSETS: Final = 256  # maximum number of subsets of one size


@dataclass(frozen=True)
class Curve:
    """Accuracy of a rule after each epoch."""

    rule: str
    progress: tuple[float, ...]  # the true epoch of each point
    points: tuple[Accuracy, ...]
    reference: Literal["truth", "given"] = "truth"  # labels that predictions are compared with

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Accuracy after each epoch."""
        return np.array([point.accuracy for point in self.points])

    @property
    def balanced_accuracy(self) -> NDArray[np.float64]:
        """Balanced accuracy after each epoch."""
        return np.array([point.balanced_accuracy for point in self.points])

    @property
    def recall(self) -> NDArray[np.float64]:
        """Recall of each class after each epoch."""
        return np.array([point.recall for point in self.points])


@dataclass(frozen=True)
class Sweep:
    """Accuracy of a rule for each ensemble size or number of epochs."""

    rule: str
    sizes: tuple[int, ...]
    accuracies: tuple[tuple[float, ...], ...]  # for each size, one per choice

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean accuracy at each size."""
        return np.array([np.mean(values) for values in self.accuracies])

    @property
    def spread(self) -> NDArray[np.float64]:
        """Standard deviation of the accuracy at each size."""
        return np.array([np.std(values) for values in self.accuracies])


def curve(reader: RecordReader, rule: str | Rule) -> Curve:
    """Compute the accuracy of a rule after each epoch.

    The curve of `single` is the mean over the networks.
    """
    context = Context.of(reader)
    rule, _ = resolve_rule(rule, context)
    views = [context]
    if rule.by_network:
        views = [context.select(networks=[number]) for number in context.numbers]
    truth, classes = context.reference_labels(), context.classes
    hits = np.zeros((context.epochs, classes), np.intp)
    covered = np.zeros(context.epochs, np.intp)
    for view in views:
        for block in rule.after_each_epoch(view):
            right = block.values == truth[block.where]
            cells = truth[block.where].astype(np.intp) + classes * np.arange(len(right))[:, None]
            hits += np.bincount(cells[right], minlength=hits.size).reshape(hits.shape)
            covered += np.count_nonzero(block.values != ABSTAINED, axis=1)
    sizes = np.bincount(truth, minlength=classes) * len(views)
    points = tuple(
        from_hits(counts, sizes, covered=int(labelled))
        for counts, labelled in zip(hits, covered, strict=True)
    )
    progress, reference = context.networks_info()[0].progress, context.sample_info.reference
    return Curve(rule.name, progress, points, reference or "truth")


def by_networks(
    reader: RecordReader, rule: str | Rule, *, most_subsets: int = MAX_SUBSETS, seed: int = 0
) -> Sweep:
    """Compute the accuracy of a rule for each ensemble size.

    All subsets of each size are evaluated, or `most_subsets` random ones drawn with `seed`.
    """
    context = Context.of(reader)
    rule, _ = resolve_rule(rule, context)
    networks, classes = context.networks, context.classes
    sizes = tuple(range(1, networks + 1))
    choices = [subsets_of(networks, size, limit=most_subsets, seed=seed) for size in sizes]
    subsets = [subset for some in choices for subset in some]
    if rule.plurality and not context.has_missing:
        votes = context.last() if rule.reads == "last" else context
        accuracies = _accuracies(
            votes, lambda labels: winners_by_subset(labels, subsets, classes=classes)
        )
    else:
        numbers = [[context.numbers[position] for position in subset] for subset in subsets]
        accuracies = [_accuracy(context.select(networks=some), rule) for some in numbers]
    ends = np.cumsum([len(some) for some in choices])
    groups = np.split(np.array(accuracies), ends[:-1])
    return Sweep(rule.name, sizes, tuple(tuple(float(one) for one in group) for group in groups))


def by_epochs(reader: RecordReader, rule: str | Rule, counts: Sequence[int] | None = None) -> Sweep:
    """Compute the accuracy of a rule by number of equally spaced epochs.

    By default, `counts` is 1, 2, 4 … and the number of epochs.
    """
    context = Context.of(reader)
    rule, _ = resolve_rule(rule, context)
    epochs, classes = context.epochs, context.classes
    powers = (2**power for power in range(epochs.bit_length()) if 2**power < epochs)
    sizes = (*powers, epochs) if counts is None else tuple(counts)
    if rule.plurality and rule.reads == "all" and not context.has_missing:
        accuracies = _accuracies(
            context, lambda labels: winners_by_spacing(labels, sizes, classes=classes)
        )
    else:
        kept = [equally_spaced(epochs, size).tolist() for size in sizes]
        accuracies = [_accuracy(context.select(epochs=some), rule) for some in kept]
    return Sweep(rule.name, sizes, tuple((accuracy,) for accuracy in accuracies))


def _accuracies(
    context: Context,
    predict: Callable[[NDArray[Any]], NDArray[Any]],  # of a block's labels -> (choice, sample)
) -> list[float]:
    truth = context.reference_labels()
    hits = [(predict(one.values) == truth[one.where]).sum(axis=1) for one in context.blocks()]
    return [float(share) for share in np.sum(hits, axis=0) / context.samples]


def _accuracy(context: Context, rule: Rule) -> float:
    return float((rule(context).labels == context.reference_labels()).mean())
