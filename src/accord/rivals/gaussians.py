"""One Gaussian for each class, all of one covariance, fitted so that wrong labels hurt little."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, PredictionError

# A direction whose variance is a smaller part of the largest one is rounding in float32 features.
LEAST_VARIANCE: Final = 1e6 * float(np.finfo(np.float64).eps)

Table = NDArray[np.floating[Any]]  # (sample, feature)
Labels = NDArray[np.integer[Any]]  # (sample,)
Positions = NDArray[np.intp]  # of samples


@dataclass(frozen=True, eq=False)
class RogHead:
    """A linear classifier on the features of one depth: what the Gaussians come down to.

    A class that no training sample has is never predicted: its bias is minus infinity.
    """

    weights: NDArray[np.float64]  # (class, feature)
    bias: NDArray[np.float64]  # (class,)
    means: NDArray[np.float64]  # (class, feature)
    root: NDArray[np.float64]  # (feature, direction); times its transpose, it is the precision

    def predict_probabilities(self, features: Table) -> NDArray[np.float64]:
        """Return the probability of each class for each sample, (sample, class)."""
        _check_features(features, wanted=self.means.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            logits = features.astype(np.float64) @ self.weights.T + self.bias
            if not (logits < np.inf).all():  # NaN is not
                raise PredictionError(
                    "the features are too large to tell their classes: the largest is "
                    f"{np.abs(features).max():.3g}. Are they scaled as in training?"
                )
            powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
        return probabilities

    def score(self, features: Table, labels: Labels) -> NDArray[np.float64]:
        """Return how typical each sample is of the class it was given, (sample,), at most 0.

        It is minus half its squared Mahalanobis distance to the class; minus infinity for a class
        that the training samples do not have.
        """
        _check_features(features, wanted=self.means.shape[1])
        check_given(labels, samples=len(features), classes=len(self.means))
        scores = _score(features, self.means[labels], self.root)
        return np.where(np.isneginf(self.bias[labels]), -np.inf, scores)


def fit_head(
    features: Table, labels: Labels, *, classes: int, seed: int, share: float = 0.7
) -> RogHead:
    """Fit the Gaussians to each class's most typical samples.

    A random share of each class gives a first estimate. The same share of each class that scores
    best by it gives the second and last one: one step towards the least covariance determinant.
    Covariances are inverted in the directions in which features vary at all, so that a class may
    have fewer samples than there are features. Of each class at least one sample is taken.

    Args:
        features: (sample, feature).
        labels: the given ones, right or wrong.
        classes: how many classes there are.
        seed: decides the first share.
        share: how much of each class to trust, above 0 and at most 1.

    Raises:
        ChoiceError: a share that cannot be.
        PredictionError: features or labels out of shape or range, or features so large that
            their covariance overflows.

    >>> features = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> head = fit_head(features, np.array([0, 0, 1, 1]), classes=2, seed=0, share=1.0)
    >>> head.weights.ravel().tolist(), head.predict_probabilities(features).argmax(axis=1).tolist()
    ([2.0, 18.0], [0, 0, 1, 1])
    """
    _check_fit(features, labels, classes, share)
    members = [np.flatnonzero(labels == number) for number in range(classes)]
    generator = np.random.default_rng(seed)
    drawn = [generator.permutation(some)[: _part(some, share)] for some in members]
    means, root = _describe(features, drawn)
    kept = [
        some[_best(_score(features[some], mean, root), _part(some, share))]
        for some, mean in zip(members, means, strict=True)
    ]
    means, root = _describe(features, kept)
    whitened = means @ root
    bias = -0.5 * np.square(whitened).sum(axis=1) - np.log(classes)
    missing = [not len(some) for some in members]
    return RogHead(whitened @ root.T, np.where(missing, -np.inf, bias), means, root)


def _part(members: Positions, share: float) -> int:
    return max(1, int(share * len(members)))


def _best(scores: NDArray[np.float64], count: int) -> Positions:
    return np.argsort(-scores, kind="stable")[:count]


def _describe(
    features: Table, chosen: Sequence[Positions]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the classes' means, and the root of the inverse of their common covariance."""
    means = np.zeros((len(chosen), features.shape[1]))
    scatter = np.zeros((features.shape[1], features.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        # Class by class: a copy of all features in float64 could be too large.
        for number, some in enumerate(chosen):
            if len(some):
                rows = features[some].astype(np.float64)
                means[number] = rows.mean(axis=0)
                rows -= means[number]
                scatter += rows.T @ rows
        covariance = scatter / sum(len(some) for some in chosen)
    if not np.isfinite(covariance).all():
        raise PredictionError(
            "the covariance of the features overflows: the largest feature is "
            f"{np.abs(features).max():.3g}. Scale them down."
        )
    return means, _root_of_inverse(covariance)


def _root_of_inverse(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    variances, directions = np.linalg.eigh(covariance)
    varies = variances > LEAST_VARIANCE * variances[-1]
    root: NDArray[np.float64] = directions[:, varies] / np.sqrt(variances[varies])
    return root


def _score(
    features: Table, means: NDArray[np.float64], root: NDArray[np.float64]
) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = -0.5 * np.square((features - means) @ root).sum(axis=1)
    return scores


def _check_fit(features: Table, labels: Labels, classes: int, share: float) -> None:
    if not 0 < share <= 1:
        raise ChoiceError(f"the share to trust must lie above 0 and at most at 1; got {share}.")
    _check_features(features)
    check_given(labels, samples=len(features), classes=classes)
    if not len(features):
        raise PredictionError("there are no samples to fit Gaussians to.")


def check_given(labels: Labels, *, samples: int, classes: int) -> None:
    """Refuse labels that are not one class in 0..classes-1 for each sample."""
    if labels.shape != (samples,) or not np.issubdtype(labels.dtype, np.integer):
        raise PredictionError(
            f"labels must be one integer for each of {samples} samples; "
            f"got {labels.dtype} of shape {labels.shape}."
        )
    if samples and not 0 <= labels.min() <= labels.max() < classes:
        raise PredictionError(
            f"labels must lie in 0..{classes - 1} for {classes} classes; "
            f"got {labels.min()}..{labels.max()}. Are they counted from 1?"
        )


def _check_features(features: Table, *, wanted: int | None = None) -> None:
    if features.ndim != 2 or not np.issubdtype(features.dtype, np.floating):
        raise PredictionError(
            "features must be real numbers (sample, feature); "
            f"got {features.dtype} of shape {features.shape}."
        )
    if wanted is not None and features.shape[1] != wanted:
        raise PredictionError(
            f"there must be {wanted} features of each sample, as in training; got "
            f"{features.shape[1]}. Are they of the same layer?"
        )
    if not np.isfinite(features).all():
        raise PredictionError(
            "features must be finite. Did the network's loss become NaN in training?"
        )
