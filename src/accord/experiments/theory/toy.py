"""Toy experiment of figure 9."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, TrainingError
from accord.kernels import winners

Array = NDArray[np.float64]
Labels = NDArray[np.integer]
Flags = NDArray[np.bool_]

CLASSES: Final = 2
NETWORKS: Final = 3
SAMPLES: Final = 40
GAP: Final = 0.12  # between the true boundary and the nearest sample
WRONG_LABEL_NEAR: Final = (0.0, 0.5)  # the sample nearest to this place is mislabelled
LENGTHS: Final = (0.6, 0.15)  # of a network's bumps, along and across its direction
STEP: Final = 2.0
STEPS: Final = 20  # per epoch
MOST_EPOCHS: Final = 2000


@dataclass(frozen=True)
class Toy:
    """Samples with a wrong label and predictions on a grid."""

    samples: Array  # (sample, 2), in -1..1
    truth: Labels  # (sample,)
    given: Labels  # (sample,)
    mislabelled: int  # the sample with the wrong given label
    side: Array  # coordinates of the grid along each axis
    grid_truth: Labels  # (row, column), from bottom to top
    fitted: Flags  # (network, epoch, sample): whether the network predicts the given label
    labels: Labels  # (network, epoch, row, column)

    @property
    def epochs(self) -> int:
        """Number of epochs until every network fits every given label."""
        return int(self.labels.shape[1])

    @property
    def networks_last(self) -> Labels:
        """Predictions after the last epoch, of shape (network, row, column)."""
        return self.labels[:, -1]

    @property
    def majority(self) -> Labels:
        """Majority vote after the last epoch, of shape (row, column)."""
        return self._vote(self.labels[:, -1:])

    @property
    def max_agreement(self) -> Labels:
        """Max agreement over all networks and epochs, of shape (row, column)."""
        return self._vote(self.labels)

    @property
    def sample_agreement(self) -> float:
        """Fraction of all votes for the wrong label at its sample."""
        return float(self.fitted[:, :, self.mislabelled].mean())

    def wrong(self, labels: Labels) -> Array:
        """Compute the fraction of the grid with wrong labels over the last two axes."""
        return np.asarray((labels != self.grid_truth).mean(axis=(-2, -1)))

    def as_json(self) -> dict[str, Any]:
        """Convert the measurements to JSON, without the grid."""
        return {
            "samples": len(self.samples),
            "epochs": self.epochs,
            "false": {
                "at": self.samples[self.mislabelled].tolist(),
                "agreement": self.sample_agreement,
            },
            "wrong": {
                "networks": self.wrong(self.networks_last).tolist(),
                "majority": float(self.wrong(self.majority)),
                "max-agreement": float(self.wrong(self.max_agreement)),
            },
        }

    def _vote(self, labels: Labels) -> Labels:
        flat = labels.reshape(*labels.shape[:2], -1)
        return np.reshape(winners(flat, classes=CLASSES).labels, self.grid_truth.shape)


def run_toy(*, seed: int = 0, points: int = 201) -> Toy:
    """Train three networks until they fit all labels, one of which is wrong.

    Each network is a logistic regression on one bump per sample, trained by gradient descent
    from random weights. Its bumps are elongated in a direction that differs between networks, so
    the networks fit the wrong label in different ways.

    Args:
        seed: of samples, directions and initial weights.
        points: of the grid along each axis.

    Raises:
        ChoiceError: `points` is below 2.
        TrainingError: the labels were not fitted within 2000 epochs.
    """
    if points < 2:
        raise ChoiceError(f"points must be at least 2 along each axis of the grid; got {points}")
    random = np.random.default_rng(seed)
    samples = _draw_samples(random)
    truth = _true_class(samples)
    mislabelled = int(np.linalg.norm(samples - WRONG_LABEL_NEAR, axis=1).argmin())
    given = np.where(np.arange(SAMPLES) == mislabelled, 1 - truth, truth)
    side = np.linspace(-1, 1, points)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    labels = _train(samples, given, np.concatenate([samples, grid]), random)
    return Toy(
        samples=samples,
        truth=truth,
        given=given,
        mislabelled=mislabelled,
        side=side,
        grid_truth=_true_class(grid).reshape(points, points),
        fitted=labels[..., :SAMPLES] == given,
        labels=labels[..., SAMPLES:].reshape(*labels.shape[:2], points, points),
    )


def true_boundary(x: Array) -> Array:
    """Compute the height of the boundary between the true classes."""
    return np.asarray(0.25 * np.sin(2.5 * x))


def _true_class(places: Array) -> Labels:  # (place, 2) -> (place,)
    return (places[:, 1] > true_boundary(places[:, 0])).astype(np.uint8)


def _draw_samples(random: np.random.Generator) -> Array:
    # Farthest-point sampling: no clusters, no holes.
    places = random.uniform(-1, 1, (600, 2))
    places = places[np.abs(places[:, 1] - true_boundary(places[:, 0])) > GAP]
    chosen, apart = [0], np.full(len(places), np.inf)
    while len(chosen) < SAMPLES:
        apart = np.minimum(apart, np.linalg.norm(places - places[chosen[-1]], axis=1))
        chosen.append(int(apart.argmax()))
    return np.asarray(places[chosen])


def _train(samples: Array, given: Labels, places: Array, random: np.random.Generator) -> Labels:
    first = random.uniform(0, np.pi)
    turns = first + np.arange(NETWORKS) * np.pi / NETWORKS
    features = np.stack([_features(places, samples, turn) for turn in turns])
    signs = np.where(given == 1, 1.0, -1.0)
    own = features[:, : len(samples)]
    weights: Array = 0.1 * random.normal(size=(NETWORKS, features.shape[-1], 1))
    epochs: list[Labels] = []
    while not (epochs and (epochs[-1][:, : len(samples)] == given).all()):
        if len(epochs) == MOST_EPOCHS:
            raise TrainingError(f"the toy's labels were not fitted within {MOST_EPOCHS} epochs")
        for _ in range(STEPS):
            weights = weights + STEP * _ascent(own, weights, signs)
        epochs.append(((features @ weights)[..., 0] > 0).astype(np.uint8))
    return np.stack(epochs, axis=1)


def _ascent(features: Array, weights: Array, signs: Array) -> Array:  # (network, bump, 1)
    residual = signs / (1 + np.exp(signs * (features @ weights)[..., 0]))
    return np.asarray(features.swapaxes(1, 2) @ residual[..., None] / len(signs))


def _features(places: Array, centres: Array, turn: float) -> Array:  # (place, feature)
    """Compute a bump around each centre, a constant and the coordinates."""
    cosine, sine = np.cos(turn), np.sin(turn)
    axes = np.array([[cosine, sine], [-sine, cosine]]) / np.array(LENGTHS)[:, None]
    apart = (places @ axes.T)[:, None] - centres @ axes.T
    bumps = np.exp(-np.square(apart).sum(axis=-1) / 2)
    return np.concatenate([bumps, np.ones((len(places), 1)), places], axis=1)
