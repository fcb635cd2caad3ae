"""Three networks in the plane that all fit one false label, and what their votes make of it."""

from collections.abc import Callable
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
FALSE_NEAR: Final = (0.0, 0.5)  # the sample nearest to here gets the false label
LENGTHS: Final = (0.6, 0.15)  # of a network's features, along and across its direction
STEP: Final = 2.0
STEPS: Final = 20  # in an epoch
MOST_EPOCHS: Final = 2000


@dataclass(frozen=True)
class Toy:
    """Samples in the plane, one with a false label, and all predictions on a grid."""

    samples: Array  # (sample, 2), in -1..1
    truth: Labels  # (sample,)
    given: Labels  # (sample,)
    false: int  # the sample whose given label is false
    side: Array  # the grid's places along either axis
    grid_truth: Labels  # (row, column); a row lies above the one before it
    fitted: Flags  # (network, epoch, sample): the network predicts the given label
    labels: Labels  # (network, epoch, row, column)

    @property
    def epochs(self) -> int:
        """How many epochs it took until every network fitted every given label."""
        return int(self.labels.shape[1])

    @property
    def networks_last(self) -> Labels:
        """What each network predicts after the last epoch (network, row, column)."""
        return self.labels[:, -1]

    @property
    def majority(self) -> Labels:
        """What most networks predict after the last epoch (row, column)."""
        return self._agreed(self.labels[:, -1:])

    @property
    def max_agreement(self) -> Labels:
        """What most networks predict, over all epochs (row, column)."""
        return self._agreed(self.labels)

    @property
    def sample_agreement(self) -> float:
        """The share of votes, over networks and epochs, for the false label at its sample."""
        return float(self.fitted[:, :, self.false].mean())

    def wrong(self, labels: Labels) -> Array:
        """Return the share of the grid that labels (..., row, column) get wrong (...,)."""
        return np.asarray((labels != self.grid_truth).mean(axis=(-2, -1)))

    def as_json(self) -> dict[str, Any]:
        """Return what was measured, without the grid."""
        return {
            "samples": len(self.samples),
            "epochs": self.epochs,
            "false": {"at": self.samples[self.false].tolist(), "agreement": self.sample_agreement},
            "wrong": {
                "networks": self.wrong(self.networks_last).tolist(),
                "majority": float(self.wrong(self.majority)),
                "max-agreement": float(self.wrong(self.max_agreement)),
            },
        }

    def _agreed(self, labels: Labels) -> Labels:
        flat = labels.reshape(*labels.shape[:2], -1)
        return np.reshape(winners(flat, classes=CLASSES).labels, self.grid_truth.shape)


def run_toy(*, seed: int = 0, points: int = 201) -> Toy:
    """Train three networks on samples with one false label, until all fit every label.

    Each network is a logistic regression on one bump per sample, trained by gradient descent
    from random weights. Its bumps are long in one direction and short across, and that direction
    is its own: so each gives way to the false label along another line.

    Args:
        seed: decides on samples, directions and starts.
        points: how many places the grid has along each axis.

    Raises:
        ChoiceError: the grid has fewer than two places on a side.
        TrainingError: the labels were not fitted in 2000 epochs.
    """
    if points < 2:
        raise ChoiceError(f"points must be at least 2 on each side of the grid; got {points}")
    random = np.random.default_rng(seed)
    samples = _draw_samples(random)
    truth = _true_class(samples)
    false = int(np.linalg.norm(samples - FALSE_NEAR, axis=1).argmin())
    given = np.where(np.arange(SAMPLES) == false, 1 - truth, truth)
    side = np.linspace(-1, 1, points)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    everywhere = _train(samples, given, np.concatenate([samples, grid]), random)
    return Toy(
        samples=samples,
        truth=truth,
        given=given,
        false=false,
        side=side,
        grid_truth=_true_class(grid).reshape(points, points),
        fitted=everywhere[..., :SAMPLES] == given,
        labels=everywhere[..., SAMPLES:].reshape(*everywhere.shape[:2], points, points),
    )


def true_boundary(across: Array) -> Array:
    """Return how high the line between the true classes lies at each place."""
    return np.asarray(0.25 * np.sin(2.5 * across))


def _true_class(places: Array) -> Labels:  # (place, 2) -> (place,)
    return (places[:, 1] > true_boundary(places[:, 0])).astype(np.uint8)


def _draw_samples(random: np.random.Generator) -> Array:
    # Of many places, each next one is the farthest from those chosen: no crowds, no holes.
    places = random.uniform(-1, 1, (600, 2))
    places = places[np.abs(places[:, 1] - true_boundary(places[:, 0])) > GAP]
    chosen, apart = [0], np.full(len(places), np.inf)
    while len(chosen) < SAMPLES:
        apart = np.minimum(apart, np.linalg.norm(places - places[chosen[-1]], axis=1))
        chosen.append(int(apart.argmax()))
    return np.asarray(places[chosen])


def _train(samples: Array, given: Labels, places: Array, random: np.random.Generator) -> Labels:
    """Return the labels of all places at every epoch (network, epoch, place); samples first."""
    first = random.uniform(0, np.pi)
    turns = first + np.arange(NETWORKS) * np.pi / NETWORKS
    features = np.stack([_bumps(samples, turn)(places) for turn in turns])  # (network, place, bump)
    signs = np.where(given == 1, 1.0, -1.0)
    own = features[:, : len(samples)]
    weights: Array = 0.1 * random.normal(size=(NETWORKS, features.shape[-1], 1))
    epochs: list[Labels] = []
    while not (epochs and (epochs[-1][:, : len(samples)] == given).all()):
        if len(epochs) == MOST_EPOCHS:
            raise TrainingError(f"the toy's labels were not fitted in {MOST_EPOCHS} epochs")
        for _ in range(STEPS):
            weights = weights + STEP * _uphill(own, weights, signs)
        epochs.append(((features @ weights)[..., 0] > 0).astype(np.uint8))
    return np.stack(epochs, axis=1)


def _uphill(features: Array, weights: Array, signs: Array) -> Array:  # (network, bump, 1)
    doubt = signs / (1 + np.exp(signs * (features @ weights)[..., 0]))
    return np.asarray(features.swapaxes(1, 2) @ doubt[..., None] / len(signs))


def _bumps(centres: Array, turn: float) -> Callable[[Array], Array]:
    """Return what gives places a bump around each centre, a constant and the two coordinates."""
    cosine, sine = np.cos(turn), np.sin(turn)
    axes = np.array([[cosine, sine], [-sine, cosine]]) / np.array(LENGTHS)[:, None]

    def features(places: Array) -> Array:
        apart = (places @ axes.T)[:, None] - centres @ axes.T
        bumps = np.exp(-np.square(apart).sum(axis=-1) / 2)
        return np.concatenate([bumps, np.ones((len(places), 1)), places], axis=1)

    return features
