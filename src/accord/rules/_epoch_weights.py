"""A vote in which epochs weigh differently."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.kernels._blocks import spans, voters_of, width_for
from accord.kernels._pairs import count_matching_pairs
from accord.kernels._votes import WEIGHT_BITS, margins, on_grid
from accord.rules._base import Definition, Prediction, Support, most_supported, predict_blocks
from accord.store import RecordReader

Weights = NDArray[np.float64]  # (epoch,), adding up to 1
Covariance = NDArray[np.float64]  # (epoch, epoch)

# How much a weight costs, as a share of the votes' mean variance. Between 0.03 and 1 the
# development records differ by tenths of a point; above, weights only come closer to equal.
RIDGE = 0.3
APART = 4  # epochs count as far apart from a quarter of the training on
LEAST_EPOCHS = 3  # from which on three epochs' reliabilities can be told from their products
ROUNDS = 300  # of the fixed point for reliabilities; it settles within about fifty
POWER = 4  # of the reliability where votes are in dispute; 2 and 8 do much the same


@dataclass(frozen=True)
class Likeness:
    """How alike the votes of two epochs are beyond chance, by one network or by two.

    Each is the covariance of votes as 0/1 tables, summed over classes: the share of samples
    with equal labels, less the share that the two class distributions give by chance.
    """

    within: Covariance  # of one and the same network, the mean over networks
    across: Covariance  # of two networks, the mean over pairs; zeros if there is only one
    said: NDArray[np.float64]  # (epoch, class), the share of an epoch's votes for a class


def measure_likeness(reader: RecordReader, among: NDArray[np.bool_] | None = None) -> Likeness:
    """Compare all epochs with each other, within networks and across them.

    Reads the rows once. All sums are of whole numbers: the order of the networks is
    without effect.

    Args:
        reader: the votes.
        among: which samples to look at (sample,); all by default.
    """
    networks, epochs = reader.networks, reader.epochs
    among = np.ones(reader.samples, bool) if among is None else among
    samples = int(np.count_nonzero(among))
    pairs = np.zeros((networks * epochs,) * 2, np.intp)
    said = np.zeros((networks * epochs, reader.classes), np.intp)
    for block in reader.blocks():
        labels = block.values[:, :, among[block.where]].reshape(networks * epochs, -1)
        pairs += count_matching_pairs(labels)
        said += np.stack([np.bincount(row, minlength=reader.classes) for row in labels])
    return from_counts(
        pairs.reshape(networks, epochs, networks, epochs),
        said.reshape(networks, epochs, reader.classes),
        samples=samples,
    )


def from_counts(
    pairs: NDArray[np.intp],  # (network, epoch, network, epoch)
    said: NDArray[np.intp],  # (network, epoch, class)
    *,
    samples: int,
) -> Likeness:
    """Turn counts of equal labels, and of labels, into covariances."""
    networks = len(said)
    same = np.einsum("iaib->ab", pairs) * samples - np.einsum("iac,ibc->ab", said, said)
    total = said.sum(axis=0)
    all_pairs = pairs.sum(axis=(0, 2)) * samples - total @ total.T
    others = max(1, networks * (networks - 1))
    return Likeness(
        within=same / (networks * samples**2),
        across=(all_pairs - same) / (others * samples**2),
        said=total / (networks * samples),
    )


def likeness_by_definition(record: Definition) -> Likeness:
    """Compare the epochs of a small record label by label."""
    networks, epochs, samples = record.labels.shape
    voters = [(network, epoch) for network in range(networks) for epoch in range(epochs)]
    pairs = np.zeros((networks, epochs, networks, epochs), np.intp)
    said = np.zeros((networks, epochs, record.classes), np.intp)
    for one in voters:
        for other in voters:
            pairs[one + other] = sum(record.labels[one] == record.labels[other])
        for label in record.labels[one]:
            said[(*one, label)] += 1
    return from_counts(pairs, said, samples=samples)


def repetition(within: Covariance) -> float:
    """Return how alike a network's votes are at two epochs, beyond chance: 1 if the same.

    That is the mean correlation over all pairs of epochs; 1 if there is only one.
    """
    spread = np.sqrt(np.diag(within))
    scale = np.outer(spread, spread)
    alike = np.divide(within, scale, out=np.ones_like(within), where=scale > 0)
    pairs = alike[np.triu_indices(len(within), 1)]
    return float(pairs.mean()) if len(pairs) else 1.0


def best_agreement(likeness: Likeness) -> float:
    """Return how alike two networks vote at the epoch where they do most, beyond chance."""
    own, shared = np.diag(likeness.within), np.diag(likeness.across)
    return float(np.divide(shared, own, out=np.ones_like(own), where=own > 0).max())


def reliability(across: Covariance) -> NDArray[np.float64]:
    """Estimate how well each epoch's votes go with the truth, up to one common factor.

    Two networks far apart in training share little but what is true of a sample, so that
    the covariance of their votes is the product of two reliabilities: one factor is
    fitted to all pairs of epochs at least a quarter of the training apart. Epochs close to
    each other are left out, because networks at the same stage also share mistakes.
    """
    epochs = len(across)
    found = np.sqrt(np.maximum(np.diag(across), 0))
    if epochs < LEAST_EPOCHS:
        return found
    far = _far_apart(epochs)
    products = np.where(far, across, 0)
    for _ in range(ROUNDS):
        squares = far @ found**2
        fitted = np.divide(products @ found, squares, out=np.zeros(epochs), where=squares > 0)
        found = np.sqrt(found * np.maximum(fitted, 0))
    return found


def explained(across: Covariance, reliabilities: NDArray[np.float64]) -> float:
    """Return how much of the covariance of epochs far apart their reliabilities explain.

    That is the share of its sum of squares: 1 if all are products of two reliabilities, 0 or less
    if these tell nothing. Of fewer than three epochs nothing else can be told, and it is 1.
    """
    if len(across) < LEAST_EPOCHS:
        return 1.0
    far = _far_apart(len(across))
    left = (across - np.outer(reliabilities, reliabilities))[far]
    squares = float((across[far] ** 2).sum())
    return 1 - float((left**2).sum()) / squares if squares else 0.0


def _far_apart(epochs: int) -> NDArray[np.bool_]:  # (epoch, epoch)
    distance = np.abs(np.subtract.outer(np.arange(epochs), np.arange(epochs)))
    return np.asarray(distance >= max(1, epochs // APART))


def find_disputed(reader: RecordReader) -> NDArray[np.bool_]:  # (sample,)
    """Tell on which samples the votes are most divided: those below the median margin.

    Where a prediction is decided, the others have no say. If no sample is below the median, as
    when all votes agree, all count.
    """
    found = np.empty(reader.samples)
    for block in reader.blocks():
        found[block.where] = margins(block.values, classes=reader.classes)
    below = found < np.median(found)
    return below if below.any() else ~below


def weigh(within: Covariance, reliabilities: NDArray[np.float64]) -> Weights:
    """Weigh epochs so that the weighted vote of one network goes best with the truth.

    That is a linear regression with a ridge; the votes' covariance within a network tells
    which epochs only repeat each other. Negative weights become zero. Epochs of which
    nothing can be told weigh the same.
    """
    epochs = len(within)
    mean_variance = np.trace(within) / epochs
    if mean_variance <= 0 or not reliabilities.any():
        return equal_weights(epochs)
    weights = np.linalg.solve(within + RIDGE * mean_variance * np.eye(epochs), reliabilities)
    weights = np.maximum(weights, 0)
    return on_grid(weights / weights.sum(), WEIGHT_BITS)


def weigh_by_power(reliabilities: NDArray[np.float64]) -> Weights:
    """Weigh epochs by their reliability, to a power at which poor epochs have next to no say.

    What early networks get wrong, they get wrong alike: poor epochs, however many, do not make up
    for it between them, as voters would whose mistakes are their own.
    """
    largest = reliabilities.max(initial=0)
    if largest <= 0:
        return equal_weights(len(reliabilities))
    weights = (reliabilities / largest) ** POWER
    return on_grid(weights / weights.sum(), WEIGHT_BITS)


def equal_weights(epochs: int) -> Weights:
    """Return the weights of max agreement: all epochs the same."""
    return on_grid(np.full(epochs, 1 / epochs), WEIGHT_BITS)


def independent_epochs(likeness: Likeness, weights: Weights) -> float:
    """Estimate how many epochs with independent errors the weighted epochs are worth.

    A network's own errors are what its votes share with themselves beyond what they share
    with other networks' votes.
    """
    own = likeness.within - likeness.across
    of_one, of_all = weights @ np.diag(own), weights @ own @ weights
    if of_all <= 0 or of_one <= 0:
        return 1.0
    return float(np.clip(of_one / of_all, 1, len(weights)))


def predict_weighted(reader: RecordReader, weights: Weights) -> Prediction:
    """Predict the class with the largest sum of weights; the score is its share of them all."""

    def predict(labels: NDArray[Any]) -> Support:
        supports = [
            most_supported(
                weighted_votes(labels[:, :, span], weights, classes=reader.classes),
                float(weights.sum()) * reader.networks,
            )
            for span in spans(labels.shape[2], width_for(voters_of(labels), reader.classes))
        ]
        found, scores = zip(*supports, strict=True)
        return np.concatenate(found), np.concatenate(scores)

    return predict_blocks(reader.blocks(), predict, samples=reader.samples)


def predict_regressed(reader: RecordReader) -> Prediction:
    """Predict by a vote in which an epoch weighs the less, the more it repeats others."""
    likeness = measure_likeness(reader)
    return predict_weighted(reader, weigh(likeness.within, reliability(likeness.across)))


def weighted_votes(
    labels: NDArray[Any],  # (network, epoch, sample)
    weights: Weights,
    *,
    classes: int,
) -> NDArray[np.float64]:  # (sample, class)
    """Add up the weights of the epochs that voted for each class.

    >>> weighted_votes(np.array([[[0], [1]], [[0], [0]]]), np.array([0.25, 0.75]), classes=2)
    array([[1.25, 0.75]])
    """
    samples = labels.shape[2]
    cells = labels.astype(np.intp) + np.arange(samples) * classes
    each = np.broadcast_to(weights[:, np.newaxis], labels.shape)
    votes = np.bincount(cells.ravel(), weights=each.ravel(), minlength=samples * classes)
    return np.asarray(votes, np.float64).reshape(samples, classes)


def vote_by_definition(record: Definition, weights: Weights) -> list[int]:
    """Predict the samples of a small record one by one, with weights for its epochs."""
    return [
        max(
            range(record.classes),
            key=lambda c: float(((record.labels[:, :, sample] == c) * weights).sum()),
        )
        for sample in range(record.labels.shape[2])
    ]
