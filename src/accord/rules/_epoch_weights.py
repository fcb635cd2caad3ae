"""Estimation of epoch weights from the similarity of votes.

`measure_likeness` compares every pair of epochs; `reliability` explains the agreement of networks
by one factor per epoch; `regression_weights` and `power_weights` turn factors into weights.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.kernels import margins
from accord.kernels._blocks import spans
from accord.kernels._votes import WEIGHT_BITS, count_matching_pairs, on_grid
from accord.rules._analysis_context import Context
from accord.rules._base import Prediction, most_supported
from accord.store import RecordReader

Weights = NDArray[np.float64]  # (epoch,), adding up to 1
Covariance = NDArray[np.float64]  # (epoch, epoch)

# The cost of a weight, as a share of the votes' mean variance. Between 0.03 and 1 the
# development records differ by tenths of a point; above, weights only come closer to equal.
RIDGE: Final = 0.3
FAR: Final = 4  # epochs are far apart from this part of the training on: a quarter
MIN_EPOCHS: Final = 3  # that reliabilities can be estimated from
CELLS_AT_ONCE: Final = 2**17  # (sample, class) cells of votes, 1 MiB: the L2 cache
ROUNDS: Final = 300  # of the fixed point for reliabilities, about 50 suffice
ROUNDING: Final = 1e-12  # of the terms of a sum
POWER: Final = 4  # of the reliability on disputed samples, 2 and 8 are similar


@dataclass(frozen=True)
class PairCounts:
    """Counts of agreeing voters and predicted classes."""

    equal: NDArray[np.intp]  # (network, epoch, network, epoch) -> samples with equal labels
    sizes: NDArray[np.intp]  # (network, epoch, class) -> samples with that label
    samples: int

    def first(self, epochs: int) -> "PairCounts":
        equal = self.equal[:, :epochs, :, :epochs]
        return PairCounts(equal, self.sizes[:, :epochs], self.samples)


@dataclass(frozen=True)
class Likeness:
    """Similarity of epochs beyond chance.

    Each value is a covariance of votes as 0/1 tables, summed over classes: the share of samples
    with equal labels, minus the share expected from the two class distributions.
    """

    within: Covariance  # of the same network, the mean over networks
    across: Covariance  # between networks, mean over pairs, zeros for one network
    shares: NDArray[np.float64]  # (epoch, class), each class's share of an epoch's votes


def measure_likeness(reader: RecordReader) -> Likeness:
    """Measure the similarity of all pairs of epochs.

    All sums are of integers: the order of the networks has no effect.
    """
    context = Context.of(reader)
    longer = None if context.longer is None else context.longer.computed(count_pairs)
    counts = context.once(count_pairs) if longer is None else longer.first(context.epochs)
    return to_likeness(counts)


def count_pairs(context: Context) -> PairCounts:
    """Count the agreement of all pairs of voters."""
    return _count_pairs(context, np.ones(context.samples, bool))  # a copy of each block is cheap


def likeness_among(context: Context, among: NDArray[np.bool_]) -> Likeness:
    """Measure the similarity of epochs on selected samples."""
    return to_likeness(_count_pairs(context, among))


def disputed_samples(context: Context) -> NDArray[np.bool_]:  # (sample,)
    """Find the samples with margins below the median.

    Where a prediction is clear, no weight changes it. If no sample is below the median, as when
    all votes agree, all are returned.
    """
    found = np.empty(context.samples)
    for block in context.blocks():
        found[block.where] = margins(block.values, classes=context.classes)
    ordered = np.sort(found)  # `np.median` would import masked arrays: 10 ms
    median = (ordered[(len(found) - 1) // 2] + ordered[len(found) // 2]) / 2
    below = np.asarray(found < median)
    return below if below.any() else ~below


def _count_pairs(context: Context, among: NDArray[np.bool_]) -> PairCounts:
    voters = context.networks * context.epochs
    equal = np.zeros((voters, voters), np.intp)
    sizes = np.zeros((voters, context.classes), np.intp)
    for block in context.blocks():
        labels = block.values.compress(among[block.where], axis=2).reshape(voters, -1)
        equal += count_matching_pairs(labels)
        for size, row in zip(sizes, labels, strict=True):
            size += np.bincount(row, minlength=context.classes)
    shape = context.networks, context.epochs
    return PairCounts(
        equal.reshape(*shape, *shape),
        sizes.reshape(*shape, context.classes),
        int(np.count_nonzero(among)),
    )


def to_likeness(counts: PairCounts) -> Likeness:
    """Convert counts to covariances."""
    equal, sizes, samples = counts.equal, counts.sizes, counts.samples
    networks = len(sizes)
    same = np.einsum("iaib->ab", equal) * samples - np.einsum("iac,ibc->ab", sizes, sizes)
    total = sizes.sum(axis=0)
    every = equal.sum(axis=(0, 2)) * samples - total @ total.T
    others = max(1, networks * (networks - 1))
    return Likeness(
        within=same / (networks * samples**2),
        across=(every - same) / (others * samples**2),
        shares=total / (networks * samples),
    )


def repetition(within: Covariance) -> float:
    """Compute the mean correlation between epochs of a network."""
    spread = np.sqrt(np.diag(within))
    scale = np.outer(spread, spread)
    alike = np.divide(within, scale, out=np.ones_like(within), where=scale > 0)
    pairs = alike[np.triu_indices(len(within), 1)]
    return float(pairs.mean()) if len(pairs) else 1.0


def best_agreement(likeness: Likeness) -> float:
    """Find the highest agreement beyond chance over the epochs."""
    own, shared = np.diag(likeness.within), np.diag(likeness.across)
    return float(np.divide(shared, own, out=np.zeros_like(own), where=own > 0).max())


def reliability(across: Covariance) -> NDArray[np.float64]:  # (epoch,)
    """Estimate the reliability of each epoch up to a common factor.

    Two networks far apart in training have little in common but the truth of a sample, so that
    the covariance of their votes is the product of two reliabilities: one factor is
    fitted to all pairs of epochs at least a quarter of the training apart. Epochs close to
    each other are left out, because networks at the same stage also share mistakes.
    """
    epochs = len(across)
    found = np.sqrt(np.maximum(np.diag(across), 0))
    if epochs < MIN_EPOCHS:
        return found
    far = _far_apart(epochs)
    products = np.where(far, across, 0)
    for _ in range(ROUNDS):
        squares, sums = far @ found**2, products @ found
        # What rounding leaves of a sum of zero would be amplified from round to round.
        positive = (squares > 0) & (sums > ROUNDING * (np.abs(products) @ found))
        fitted = np.divide(sums, squares, out=np.zeros(epochs), where=positive)
        found = np.sqrt(found * fitted)
    return found


def explained(across: Covariance, reliabilities: NDArray[np.float64]) -> float:
    """Compute the fraction of covariance explained by reliabilities.

    It is 1 if every covariance is the product of two reliabilities, 0 or less if they explain
    nothing, and 1 for fewer than three epochs.
    """
    if len(across) < MIN_EPOCHS:
        return 1.0
    far = _far_apart(len(across))
    left = (across - np.outer(reliabilities, reliabilities))[far]
    squares = float((across[far] ** 2).sum())
    return 1 - float((left**2).sum()) / squares if squares else 0.0


def _far_apart(epochs: int) -> NDArray[np.bool_]:  # (epoch, epoch)
    distance = np.abs(np.subtract.outer(np.arange(epochs), np.arange(epochs)))
    return np.asarray(distance >= max(1, epochs // FAR))


def regression_weights(within: Covariance, reliabilities: NDArray[np.float64]) -> Weights:
    """Compute epoch weights by regression.

    This is a linear regression with a ridge: the votes' covariance within a network shows
    which epochs only repeat each other. Negative weights become zero. Without any reliability all
    epochs weigh the same.
    """
    epochs = len(within)
    mean_variance = np.trace(within) / epochs
    if mean_variance <= 0 or not reliabilities.any():
        return equal_weights(epochs)
    weights = np.linalg.solve(within + RIDGE * mean_variance * np.eye(epochs), reliabilities)
    weights = np.maximum(weights, 0)
    return on_grid(weights / weights.sum(), WEIGHT_BITS)


def power_weights(reliabilities: NDArray[np.float64]) -> Weights:
    """Compute epoch weights as a power of the reliability.

    Early networks make the same mistakes: many poor epochs do not correct each other, as voters
    with independent mistakes would.
    """
    largest = reliabilities.max(initial=0)
    if largest <= 0:
        return equal_weights(len(reliabilities))
    weights = (reliabilities / largest) ** POWER
    return on_grid(weights / weights.sum(), WEIGHT_BITS)


def equal_weights(epochs: int) -> Weights:
    return on_grid(np.full(epochs, 1 / epochs), WEIGHT_BITS)


def independent_epochs(likeness: Likeness, weights: Weights) -> float:
    """Estimate the effective number of independent epochs.

    A network's own errors are what its votes share with each other beyond what they share
    with other networks' votes.
    """
    own = likeness.within - likeness.across
    alone, together = weights @ np.diag(own), weights @ own @ weights
    if together <= 0 or alone <= 0:
        return 1.0
    return float(np.clip(alone / together, 1, len(weights)))


def predict_weighted(reader: RecordReader, weights: Weights) -> Prediction:
    """Predict the class with the largest sum of weights."""
    predicted, everything = Prediction.empty(reader.samples), float(weights.sum()) * reader.networks
    columns = np.flatnonzero(weights)
    for block in reader.blocks():
        for span in spans(block.stop - block.start, max(1, CELLS_AT_ONCE // reader.classes)):
            cells = np.arange(span.stop - span.start) * reader.classes
            votes = np.zeros(len(cells) * reader.classes)
            for labels in block.values[:, columns, span]:
                for weight, row in zip(weights[columns], labels, strict=True):
                    np.add.at(votes, cells + row, weight)
            where = slice(block.start + span.start, block.start + span.stop)
            found = most_supported(votes.reshape(-1, reader.classes), everything)
            predicted.labels[where], predicted.scores[where] = found
    return predicted
