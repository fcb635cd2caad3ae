"""Leave-one-out rule."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError, SourceError
from accord.kernels._blocks import spans
from accord.kernels._votes import LOGARITHM_BITS, WEIGHT_BITS, on_grid
from accord.rules._analysis_context import Context
from accord.rules._annotators import (
    Part,
    VoteCounts,
    add_evidence,
    small_parts,
    to_posterior,
    voters_at_once,
)
from accord.rules._base import Prediction
from accord.rules._em import group_epochs
from accord.rules._epoch_weights import (
    Covariance,
    Weights,
    equal_weights,
    predict_weighted,
    reliability,
)
from accord.rules._fitted_rule import Arrays, FittedRule, check_networks, check_numbers, check_sizes
from accord.rules.max_agreement import MaxAgreement
from accord.store import Block, RecordReader

RIDGE: Final = 0.004  # cost of a weight, as a share of the trace of the votes' covariance
SOLUTIONS: Final = 3  # how often the weights are solved for
CALM: Final = 0.01  # they are solved for again once fewer targets than this change in a round
SETTLED: Final = 0.001  # the fit has converged once fewer targets than this change
ROUNDS: Final = 20  # at most; records of 10 to 200 classes need 4 to 17
LEAST: Final = 1e-6  # probability of a label, so that no single vote decides
MAX_BINS: Final = 128  # of epochs that have a weight of their own; neighbours share one beyond
BLOCKS: Final = 32  # of epochs, between which networks are compared
# With this many classes, blocks of epochs count for half of a reliability if all targets are wrong:
# the fewer classes, the more mistakes networks share by chance.
BLOCK_CLASSES: Final = 25
MAX_CLASSES: Final = 512  # with confusion matrices

# A fit needs no more samples than these: twice as many change no label but those at a tie.
FIT_VOTES: Final = 2**25
FIT_CELLS: Final = 2**28  # (epoch, sample, class)
FIT_SAMPLES: Final = 5_000  # at least
CELLS_AT_ONCE: Final = 2**20  # (epoch, sample, class), 8 MiB
EXACT_IN_FLOAT32: Final = 2**24  # whole numbers up to here

ONE_NETWORK: Final = "there is no other network to compare with, so this is max agreement"
MANY_CLASSES: Final = f"with more than {MAX_CLASSES} classes, epochs only have weights"

Tables = NDArray[np.float64]  # (group, label, class)
Targets = NDArray[np.integer]  # (network, sample)


class LeaveOneOut(FittedRule):
    """Predict the class that best explains the votes, judging each network by the others.

    Networks that memorise wrong labels scatter each in its own way. An epoch is therefore reliable
    if a network's votes at that epoch equal what the *other* networks predict. From these targets,
    each epoch gets a weight, by non-negative least squares on the covariance of the votes, and a
    confusion matrix: how often its votes are for each label where the target is each class. The
    weighted votes give new targets, and so on until they settle, starting from max agreement.

    No label is used. With one network it is max agreement. Large records are fitted on evenly
    spaced samples, with a note. Beyond 512 classes there are weights but no confusion matrices.

    Args:
        evidence: of the votes, fitted before by `fit` or `load`.
    """

    name = "leave-one-out"
    reads = "all"
    ordered = True
    arrays = ("weights", "confusion", "groups")

    def __init__(self, evidence: "VoteEvidence | None" = None) -> None:
        self.evidence = evidence

    def __call__(self, reader: RecordReader) -> Prediction:
        """Predict labels scored by posterior probability."""
        if self.evidence is not None:
            _, classes, _ = self.evidence.confusion.shape
            epochs = len(self.evidence.weights)
            check_sizes(reader, self.name, epochs=epochs, classes=classes)
            if self.voters is not None:
                self.voters.check(reader, self.name, networks=False)  # which share the matrices
            return self._with_caution(_predict(reader, self.evidence))
        if reader.networks == 1 or reader.classes == 1:
            note = ONE_NETWORK if reader.networks == 1 else ""
            return replace(MaxAgreement()(reader), note=note)
        return Context.of(reader).once(fit_leave_one_out).prediction

    def fit(self, reader: RecordReader) -> Self:
        """Fit the weights and confusion matrices to a record.

        Raises:
            ChoiceError: there is only one network.
            PredictionError: there are more than 512 classes.
        """
        check_networks(reader, self.name)
        evidence = Context.of(reader).once(fit_leave_one_out).evidence
        if evidence is None:
            raise PredictionError(
                f"{reader.name}: {self.name} has confusion matrices of at most {MAX_CLASSES} "
                f"classes; got {reader.classes}. Fit weighted-agreement."
            )
        return type(self)(evidence).fitted_on(reader)

    def parameters(self) -> Arrays | None:
        """Get the weights and confusion matrices."""
        return None if self.evidence is None else vars(self.evidence)

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Create the rule from its parameters.

        Raises:
            SourceError: the arrays do not fit together, or hold other values.
        """
        found = VoteEvidence(**{name: arrays[name] for name in cls.arrays})
        check_numbers("weights", found.weights, (None,))
        check_numbers("groups", found.groups, found.weights.shape)
        check_numbers("confusion", found.confusion, (None, None, None))
        groups, labels, classes = found.confusion.shape
        if labels != classes or not found.confusion.all():
            raise SourceError("confusion must be square and above 0: no label is impossible")
        if found.groups.dtype.kind == "f" or found.groups.max() >= groups:
            raise SourceError(f"groups must be whole numbers in 0..{groups - 1}")
        if not found.weights.any():
            raise SourceError("weights must not all be 0: no epoch would count")
        return cls(found)


@dataclass(frozen=True)
class VoteEvidence:
    """Weights and confusion matrices of epochs, which all networks share."""

    weights: Weights  # (epoch,)
    confusion: Tables  # (group, label, class), probabilities of each label
    groups: NDArray[np.intp]  # (epoch,) -> the group of neighbouring epochs that share a matrix

    def add_up(self, parts: list[Part] | Iterator[Part]) -> Iterator[tuple[Part, NDArray[Any]]]:
        """Sum the evidence of each network's votes, (network, sample, class), in small parts.

        Sums are exact: neither the order of networks nor that of epochs has an effect.
        """
        logarithms = on_grid(np.log(self.confusion), LOGARITHM_BITS)
        weights, at_once = on_grid(self.weights, WEIGHT_BITS), voters_at_once(logarithms.shape[-1])
        for part in parts:
            samples = part.where.stop - part.where.start
            evidence = np.zeros((len(part.rows), samples, logarithms.shape[-1]))
            for first in range(0, len(weights), at_once):
                some = slice(first, first + at_once)
                if weights[some].any():
                    tables = weights[some, None, None] * logarithms[self.groups[some]]
                    for own, rows in zip(evidence, part.rows, strict=True):
                        add_evidence(own, rows[first // at_once], tables)
            yield part, evidence


@dataclass(frozen=True)
class LeaveOneOutFit:
    """Result of a fit."""

    prediction: Prediction
    evidence: VoteEvidence | None  # None with too many classes for confusion matrices


def fit_leave_one_out(context: Context) -> LeaveOneOutFit:
    """Fit weights and confusion matrices to at least two networks, and predict.

    Takes time linear in the votes of at most `FIT_VOTES`, and reads all others once.
    """
    labels, step = _labels_to_fit(context)
    classes = context.classes
    spaced = f"fitted on one in {step} samples" if step > 1 else ""
    moments = _vote_moments(labels, classes)
    targets = _first_targets(labels, classes)
    if classes > MAX_CLASSES:
        weights = _solve(moments, labels, targets)
        prediction = predict_weighted(context, weights).with_note(MANY_CLASSES)
        return LeaveOneOutFit(prediction.with_note(spaced), None)
    groups = group_epochs(
        context.epochs, samples=2 * context.networks * labels.shape[2], classes=classes
    )
    parts = list(
        small_parts([Block(0, labels.shape[2], labels)], classes=classes, tables=len(labels))
    )
    solved, changed = 0, 0.0
    for _ in range(ROUNDS):
        if solved < SOLUTIONS and changed < CALM:
            weights = _solve(moments, labels, targets)
            solved += 1
        evidence = VoteEvidence(weights, _confusion(parts, targets, groups, classes), groups)
        before = targets.copy()
        for part, own in evidence.add_up(parts):
            targets[:, part.where] = (own.sum(axis=0) - own).argmax(axis=2)
        changed = np.count_nonzero(targets != before) / targets.size
        if solved == SOLUTIONS and changed < SETTLED:
            break
    return LeaveOneOutFit(_predict(context, evidence).with_note(spaced), evidence)


def _predict(reader: RecordReader, evidence: VoteEvidence) -> Prediction:
    predicted = Prediction.empty(reader.samples)
    parts = small_parts(reader.blocks(), classes=reader.classes, tables=reader.networks)
    for part, own in evidence.add_up(parts):
        total = own.sum(axis=0)
        predicted.labels[part.where] = total.argmax(axis=1)
        predicted.scores[part.where] = to_posterior(total).max(axis=1)
    return predicted


def _labels_to_fit(context: Context) -> tuple[NDArray[Any], int]:
    """Read the labels of every n-th sample, and n."""
    voters = context.networks * context.epochs
    most = min(FIT_VOTES // voters, FIT_CELLS // (context.epochs * context.classes))
    step = -(-context.samples // max(FIT_SAMPLES, most))
    while math.gcd(step, context.classes) > 1:  # the classes may stand in turn
        step += 1
    labels = context.load_labels() if step == 1 else None
    if labels is None:
        everything = range(context.networks), range(context.epochs)
        labels = context.read_labels(*everything, slice(None, None, step))
    return labels, step


def _first_targets(labels: NDArray[Any], classes: int) -> Targets:
    """Predict by max agreement of all other networks."""
    targets = np.empty((len(labels), labels.shape[2]), labels.dtype)
    for span in spans(labels.shape[2], max(1, CELLS_AT_ONCE // (len(labels) * classes))):
        cells = np.arange(span.stop - span.start) * classes
        votes = np.zeros((len(labels), len(cells), classes), np.intp)
        for counts, own in zip(votes, labels[:, :, span], strict=True):
            for row in own:
                counts.reshape(-1)[cells + row] += 1
        targets[:, span] = (votes.sum(axis=0) - votes).argmax(axis=2)
    return targets


@dataclass(frozen=True)
class _Moments:
    """Means and covariances of the votes."""

    covariance: Covariance  # (bin, bin), of the mean votes of all networks
    sizes: NDArray[np.float64]  # (epoch, class), number of votes
    distant: NDArray[np.float64]  # (block,), reliability between distant epochs of two networks


def _vote_moments(labels: NDArray[Any], classes: int) -> _Moments:
    """Measure the moments of the votes, summed over classes.

    Sums are of integers up to the last division: what is zero is not nearly zero.

    Neighbouring epochs share a bin if there are more than `MAX_BINS`, and a block if there are more
    than `BLOCKS`, which are made of bins.
    """
    networks, epochs, samples = labels.shape
    bins, blocks = _pools(epochs, MAX_BINS), _pools(epochs, BLOCKS)
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    firsts = np.flatnonzero(np.diff(blocks, prepend=-1))
    products, same = np.zeros((len(starts),) * 2), np.zeros((len(firsts),) * 2)
    width = max(1, CELLS_AT_ONCE // (len(starts) * classes))
    most = max(networks * np.bincount(bins).max(), np.bincount(blocks).max())  # votes of a sample
    kind = np.float32 if width * most**2 <= EXACT_IN_FLOAT32 else np.float64
    for span in spans(samples, width):
        cells = np.arange(span.stop - span.start) * classes
        together = np.zeros((len(starts), len(cells) * classes), kind)
        for own in labels[:, :, span]:
            alone = np.zeros((len(firsts), len(cells) * classes), kind)
            for bin_, block, at in zip(bins, blocks, cells + own, strict=True):
                together[bin_][at] += 1
                alone[block][at] += 1
            same += alone @ alone.T
        products += together @ together.T
    sizes, chance = np.zeros((epochs, classes)), np.zeros_like(same)
    for own in labels:
        counts = np.stack([np.bincount(row, minlength=classes) for row in own])
        sizes += counts
        alone = np.add.reduceat(counts, firsts)
        chance += alone @ alone.T
    both = np.add.reduceat(sizes, starts)
    products = products * samples - both @ both.T
    within = np.searchsorted(starts, firsts)  # the first bin of each block
    between = np.add.reduceat(np.add.reduceat(products, within), within, axis=1)
    between -= same * samples - chance
    votes, lengths = samples * networks * np.bincount(bins), samples * np.bincount(blocks)
    return _Moments(
        products / np.outer(votes, votes),
        sizes,
        reliability(between / np.outer(lengths, lengths)),
    )


def _pools(epochs: int, most: int) -> NDArray[np.intp]:  # (epoch,)
    return np.arange(epochs) * min(epochs, most) // epochs


def _reliability(
    labels: NDArray[Any], targets: Targets, moments: _Moments
) -> NDArray[np.float64]:  # (epoch,)
    """Measure how often votes equal their targets, beyond chance.

    Wrong targets favour the epochs they come from. The more of them are wrong, and the more classes
    there are, the more the agreement between distant epochs counts, which needs no targets.
    """
    epochs, classes = moments.sizes.shape
    equal = np.zeros(epochs)
    for own, wanted in zip(labels, targets, strict=True):
        equal += np.count_nonzero(own == wanted, axis=1)
    frequency = np.bincount(targets.ravel(), minlength=classes)
    found = np.maximum(equal * targets.size - moments.sizes @ frequency, 0) / targets.size**2
    wrong = (1 - equal.max() / targets.size) ** 2
    blocks = _pools(epochs, BLOCKS)
    means = np.bincount(blocks, weights=found) / np.bincount(blocks)
    ratio = np.divide(moments.distant, means, out=np.zeros_like(means), where=means > 0)
    return np.asarray(found * ratio[blocks] ** (wrong / (wrong + BLOCK_CLASSES / classes)))


def _solve(moments: _Moments, labels: NDArray[Any], targets: Targets) -> Weights:
    """Find non-negative weights whose mean vote explains the targets best."""
    found = _reliability(labels, targets, moments)
    bins = _pools(len(found), MAX_BINS)
    sizes = np.bincount(bins)
    penalty = max(RIDGE * float(np.trace(moments.covariance)), 1e-9)
    found = nonnegative_solution(
        moments.covariance + penalty * np.eye(len(sizes)),
        np.bincount(bins, weights=found) / sizes,
    )
    if not found.any():
        return equal_weights(len(bins))
    return on_grid((found / (found.sum() * sizes))[bins], WEIGHT_BITS)


def nonnegative_solution(
    matrix: NDArray[np.float64], right: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Minimise x'Mx - 2r'x over x >= 0 by the active-set method of Lawson and Hanson.

    >>> nonnegative_solution(np.eye(2), np.array([2.0, -1.0]))
    array([2., 0.])
    """
    found, active = np.zeros(len(right)), np.zeros(len(right), bool)
    enough = 1e-12 * max(1.0, float(np.abs(right).max()))
    for _ in range(3 * len(right)):
        gradient = np.where(active, 0.0, right - matrix @ found)
        if gradient.max() <= enough:
            break
        active[gradient.argmax()] = True
        while True:
            wanted = np.zeros(len(right))
            wanted[active] = np.linalg.solve(matrix[np.ix_(active, active)], right[active])
            below = active & (wanted <= 0)
            if not below.any():
                break
            step = (found[below] / (found[below] - wanted[below])).min()
            found += step * (wanted - found)
            active &= found > enough
            found[~active] = 0
        found = wanted
    return found


def _confusion(
    parts: list[Part], targets: Targets, groups: NDArray[np.intp], classes: int
) -> Tables:  # (group, label, class)
    """Estimate the probability of each label where the target is each class.

    To the votes on each class are added as many as there are classes, distributed as all votes of
    the epochs: right as often as they are, and wrong in proportion to what they predict.
    """
    counts = VoteCounts.empty(networks=1, classes=classes, groups=groups)
    one_hot = np.eye(classes)
    for part in parts:
        for rows, own in zip(part.rows, targets[:, part.where], strict=True):
            counts.add([(Part(part.where, [rows]), one_hot[own])], groups)
    votes = counts.votes[0]
    total = votes.sum(axis=(1, 2))[:, None]
    right = np.einsum("gcc->g", votes)[:, None] / total
    wrong = np.repeat((votes.sum(axis=2) / total + 0.1 / classes)[:, :, None], classes, axis=2)
    diagonal = np.arange(classes)
    wrong[:, diagonal, diagonal] = 0
    prior = wrong * ((1 - right) / wrong.sum(axis=1))[:, None, :]
    prior[:, diagonal, diagonal] = right
    found = (votes + classes * prior) / (votes.sum(axis=1, keepdims=True) + classes)
    return np.asarray(np.maximum(found, LEAST))
