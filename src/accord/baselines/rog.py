"""RoG, the robust generative classifier on a trained network's features (Lee and others, 2019)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from accord.baselines._features import Sees, default_layers, extract_features
from accord.errors import ChoiceError, PredictionError
from accord.kernels import check_class_range
from accord.training._prepared_data import PreparedData
from accord.training._randomness import derive_seed

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
    check_class_range(labels, classes=classes)


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


EPOCHS: Final = 20
BATCH: Final = 50
RATE: Final = 0.02
TRUSTED: Final = 0.5  # the share of the validation samples to weigh the depths on
LEAST: Final = 1e-10  # added to a probability before its logarithm is taken


@dataclass(frozen=True, eq=False)
class Rog:
    """Heads at several depths of one network, and what each counts."""

    heads: dict[str, RogHead]  # by layer
    weights: NDArray[np.float64]  # (depth,), with sum 1

    def predict_probabilities(self, features: Mapping[str, Table]) -> NDArray[np.float64]:
        """Return the mixture of the depths' probabilities, (sample, class)."""
        parts = zip(self.weights, self.heads.items(), strict=True)
        mixture: NDArray[np.float64] = sum(
            weight * head.predict_probabilities(features[layer]) for weight, (layer, head) in parts
        )
        return mixture


def fit_rog(
    features: Mapping[str, Table],
    labels: Labels,
    *,
    classes: int,
    seed: int,
    share: float = 0.7,
) -> dict[str, RogHead]:
    """Fit one head for each depth to the training samples' features and given labels.

    Each depth draws its own first share of the samples. What is raised, and what happens to small
    classes, is told at `fit_head`.

    Args:
        features: of the training samples, by layer, each (sample, feature).
        labels: (sample,), as they were given.
        classes: how many classes there are.
        seed: where all chance comes from.
        share: how much of each class to trust.
    """
    return {
        layer: fit_head(table, labels, classes=classes, seed=derive_seed(seed, depth), share=share)
        for depth, (layer, table) in enumerate(features.items())
    }


def mix_depths(
    heads: Mapping[str, RogHead],
    features: Mapping[str, Table],
    labels: Labels,
    *,
    seed: int,
) -> Rog:
    """Learn how much each depth counts from samples that the network was not trained on.

    Their labels may be wrong: the half that is most typical of its given class, by the head of
    the last depth, is trusted. The weights, softmax of one number for each depth, minimise the
    negative log-likelihood of the mixture there.

    Args:
        heads: what `fit_rog` gave, the last depth last.
        features: of the validation samples, by layer.
        labels: (sample,), as they were given.
        seed: decides the order of the samples.

    Raises:
        ChoiceError: no validation samples.
    """
    last = list(heads)[-1]
    check_given(labels, samples=len(features[last]), classes=len(heads[last].bias))
    if not len(labels):
        raise _no_validation()
    scores = heads[last].score(features[last], labels)
    trusted = np.argsort(-scores, kind="stable")[: max(1, int(TRUSTED * len(labels)))]
    chances = np.stack(
        [
            head.predict_probabilities(features[layer][trusted])[
                np.arange(len(trusted)), labels[trusted]
            ]
            for layer, head in heads.items()
        ]
    )
    return Rog(dict(heads), _learn_weights(chances, seed=seed))


def _learn_weights(chances: NDArray[np.float64], *, seed: int) -> NDArray[np.float64]:
    """Weigh the probabilities (depth, sample) that the depths give to the given labels."""
    table = torch.from_numpy(chances)
    numbers = torch.ones(len(table), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([numbers], lr=RATE)
    generator = torch.Generator().manual_seed(derive_seed(seed))
    for _ in range(EPOCHS):
        order = torch.randperm(table.shape[1], generator=generator)
        for part in order.split(BATCH):
            loss = -(numbers.softmax(dim=0) @ table[:, part] + LEAST).log().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    weights: NDArray[np.float64] = numbers.detach().softmax(dim=0).numpy()
    return weights


def predict_rog(
    network: nn.Module,
    material: PreparedData,
    sees: Sees,
    *,
    seed: int,
    split: str = "test",
    layers: Sequence[str] | None = None,
    bfloat16: bool = False,
) -> NDArray[np.float64]:
    """Predict the probability of each class for each sample of a split, (sample, class).

    For several networks, ask of each and take the mean, or each one's largest class and a vote.

    Args:
        network: trained on the material's training samples; moved to the samples' device.
        material: must have a validation split, held out before the network was trained.
        sees: gives a split's samples, such as `partial(material.batches, device=device)`.
        seed: where all chance comes from.
        split: what to predict.
        layers: where to take features; by default where `default_layers` says.
        bfloat16: whether to compute features in it where that is safe.

    Raises:
        ChoiceError: no validation split, or no such layer.
        PredictionError: features that are not finite.
    """
    if "validation" not in material.splits:
        raise _no_validation()
    train = sees("train")
    network.to(train.device)
    depths = default_layers(network) if layers is None else layers
    extract = partial(extract_features, network, layers=depths, bfloat16=bfloat16)
    given, held = (material.splits[one].labels for one in ("train", "validation"))
    heads = fit_rog(extract(train), given, classes=material.classes, seed=seed)
    rog = mix_depths(heads, extract(sees("validation")), held, seed=seed)
    return rog.predict_probabilities(extract(sees(split)))


def _no_validation() -> ChoiceError:
    return ChoiceError(
        "RoG weighs its depths on samples that were held out before training, and there are none. "
        "Set data.validation, to 0.01 or more, and train again."
    )
