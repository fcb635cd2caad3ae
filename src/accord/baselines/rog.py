"""Robust generative classifier (RoG) on the features of a network (Lee et al., 2019)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from accord.baselines._features import LoadSplit, default_layers, extract_with_logits
from accord.errors import ChoiceError, PredictionError
from accord.kernels import check_class_range
from accord.training._prepared_data import PreparedData
from accord.training._randomness import derive_seed

Table = NDArray[np.floating[Any]]  # (sample, feature)
Labels = NDArray[np.integer[Any]]  # (sample,)
Positions = NDArray[np.intp]  # of samples


@dataclass(frozen=True, eq=False)
class RogHead:
    """Linear discriminant classifier on the features of a layer.

    A class without training samples is never predicted: its bias is minus infinity.
    """

    weights: NDArray[np.float64]  # (class, feature)
    bias: NDArray[np.float64]  # (class,)
    means: NDArray[np.float64]  # (class, feature)
    root: NDArray[np.float64]  # (feature, direction); root @ root.T is the precision matrix

    def predict_probabilities(self, features: Table) -> NDArray[np.float64]:
        """Predict class probabilities of shape (sample, class)."""
        _check_features(features, wanted=self.means.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            logits = features.astype(np.float64) @ self.weights.T + self.bias
            if not (logits < np.inf).all():  # NaN is not
                raise PredictionError(
                    "the features are too large for the classifier: the largest is "
                    f"{np.abs(features).max():.3g}. Are they scaled as in training?"
                )
            powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
        return probabilities

    def score(self, features: Table, labels: Labels) -> NDArray[np.float64]:
        """Compute a typicality score of at most 0 for each sample and its given class.

        Minus half the squared Mahalanobis distance to the class, or minus infinity for a class
        without training samples.
        """
        _check_features(features, wanted=self.means.shape[1])
        check_given(labels, samples=len(features), classes=len(self.means))
        scores = _score(features, self.means[labels], self.root)
        return np.where(np.isneginf(self.bias[labels]), -np.inf, scores)


def fit_head(
    features: Table, labels: Labels, *, classes: int, seed: int, share: float = 0.7
) -> RogHead:
    """Fit Gaussians of equal covariance to the most typical samples of each class.

    A first estimate takes a random share of each class. The second and last one takes the same
    share of each class, those that score best under the first: one step towards the minimum
    covariance determinant. The covariance is inverted in the directions in which features vary,
    so that a class may have fewer samples than features. Every class keeps at least one sample.

    Args:
        features: (sample, feature).
        labels: the given labels, right or wrong.
        classes: the number of classes.
        seed: draws the first share.
        share: the share of each class to use, above 0 and at most 1.

    Raises:
        ChoiceError: the share is out of range.
        PredictionError: features or labels have a wrong shape or range, or their covariance
            overflows.

    >>> features = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> head = fit_head(features, np.array([0, 0, 1, 1]), classes=2, seed=0, share=1.0)
    >>> head.weights.ravel().tolist(), head.predict_probabilities(features).argmax(axis=1).tolist()
    ([2.0, 18.0], [0, 0, 1, 1])
    """
    if not 0 < share <= 1:
        raise ChoiceError(f"the share of each class must be above 0 and at most 1; got {share}")
    _check_features(features)
    check_given(labels, samples=len(features), classes=classes)
    if not len(features):
        raise PredictionError("there are no samples to fit Gaussians to")
    by_class = [np.flatnonzero(labels == number) for number in range(classes)]
    generator = np.random.default_rng(seed)
    counts = [max(1, int(share * len(some))) for some in by_class]
    drawn = [generator.permutation(some)[:n] for some, n in zip(by_class, counts, strict=True)]
    means, root = _describe(features, drawn)
    kept = [
        some[np.argsort(-_score(features[some], mean, root), kind="stable")[:count]]
        for some, mean, count in zip(by_class, means, counts, strict=True)
    ]
    means, root = _describe(features, kept)
    whitened = means @ root
    bias = -0.5 * np.square(whitened).sum(axis=1) - np.log(classes)
    missing = [not len(some) for some in by_class]
    return RogHead(whitened @ root.T, np.where(missing, -np.inf, bias), means, root)


def _describe(
    features: Table, chosen: Sequence[Positions]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the class means and the square root of the precision matrix."""
    means = np.zeros((len(chosen), features.shape[1]))
    scatter = np.zeros((features.shape[1], features.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        # Class by class: a copy of all features in float64 could be too large.
        for number, some in enumerate(chosen):
            if len(some):
                values = features[some].astype(np.float64)
                means[number] = values.mean(axis=0)
                values -= means[number]
                scatter += values.T @ values
        covariance = scatter / sum(len(some) for some in chosen)
    if not np.isfinite(covariance).all():
        raise PredictionError(
            "the covariance of the features overflows: the largest feature is "
            f"{np.abs(features).max():.3g}. Scale them down."
        )
    variances, directions = np.linalg.eigh(covariance)
    # Relative to the largest variance; a smaller one is rounding of float32 features.
    varies = variances > 1e6 * np.finfo(np.float64).eps * variances[-1]
    return means, directions[:, varies] / np.sqrt(variances[varies])


def _score(
    features: Table, means: NDArray[np.float64], root: NDArray[np.float64]
) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = -0.5 * np.square((features - means) @ root).sum(axis=1)
    return scores


def check_given(labels: Labels, *, samples: int, classes: int) -> None:
    """Check that the labels contain one valid class for each sample."""
    if labels.shape != (samples,) or not np.issubdtype(labels.dtype, np.integer):
        raise PredictionError(
            f"labels must hold one integer for each of {samples} samples; "
            f"got {labels.dtype} of shape {labels.shape}."
        )
    check_class_range(labels, classes=classes)


def _check_features(features: Table, *, wanted: int | None = None) -> None:
    if features.ndim != 2 or not np.issubdtype(features.dtype, np.floating):
        raise PredictionError(
            "features must be floating-point numbers (sample, feature); "
            f"got {features.dtype} of shape {features.shape}."
        )
    if wanted is not None and features.shape[1] != wanted:
        raise PredictionError(
            f"each sample must have {wanted} features, as in training; got "
            f"{features.shape[1]}. Are they from the same layer?"
        )
    if not np.isfinite(features).all():
        raise PredictionError("features must be finite. Did the training loss become NaN?")


@dataclass(frozen=True, eq=False)
class Rog:
    """Weighted ensemble of classifiers on several layers of a network."""

    heads: dict[str, RogHead]  # by layer
    weights: NDArray[np.float64]  # (layer,), with sum 1

    def predict_probabilities(self, features: Mapping[str, Table]) -> NDArray[np.float64]:
        """Predict class probabilities of shape (sample, class) as a weighted mean over layers."""
        parts = zip(self.weights, self.heads.items(), strict=True)
        mixture: NDArray[np.float64] = sum(
            weight * head.predict_probabilities(features[layer]) for weight, (layer, head) in parts
        )
        return mixture


def fit_rog(
    features: Mapping[str, Table], labels: Labels, *, classes: int, seed: int, share: float = 0.7
) -> dict[str, RogHead]:
    """Fit a classifier to the training features of each layer.

    Each layer draws its own first share of the samples. See `fit_head` for small classes and
    for errors.

    Args:
        features: the features of the training samples by layer, each (sample, feature).
        labels: the given labels, (sample,).
        classes: the number of classes.
        seed: of all random draws.
        share: the share of each class to use.
    """
    return {
        layer: fit_head(table, labels, classes=classes, seed=derive_seed(seed, depth), share=share)
        for depth, (layer, table) in enumerate(features.items())
    }


def mix_depths(
    heads: Mapping[str, RogHead], features: Mapping[str, Table], labels: Labels, *, seed: int
) -> Rog:
    """Fit the weights of the layers on held-out samples.

    Their labels may be wrong: only the half that is most typical of its given class, by the
    classifier of the last layer, is used. The weights, a softmax of one number for each layer,
    minimise the negative log-likelihood of the mixture on these samples. The last layer comes last.
    """
    last = list(heads)[-1]
    check_given(labels, samples=len(features[last]), classes=len(heads[last].bias))
    if not len(labels):
        raise _no_validation()
    scores = heads[last].score(features[last], labels)
    trusted = np.argsort(-scores, kind="stable")[: max(1, len(labels) // 2)]
    position = np.arange(len(trusted)), labels[trusted]
    given = [  # the probabilities of the given labels, (layer, sample)
        head.predict_probabilities(features[layer][trusted])[position]
        for layer, head in heads.items()
    ]
    return Rog(dict(heads), _learn_weights(np.stack(given), seed=seed))


def _learn_weights(probabilities: NDArray[np.float64], *, seed: int) -> NDArray[np.float64]:
    table = torch.from_numpy(probabilities)
    numbers = torch.ones(len(table), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([numbers], lr=0.02)
    generator = torch.Generator().manual_seed(derive_seed(seed))
    for _ in range(20):  # epochs
        order = torch.randperm(table.shape[1], generator=generator)
        for part in order.split(50):  # samples
            loss = -(numbers.softmax(dim=0) @ table[:, part] + 1e-10).log().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    weights: NDArray[np.float64] = numbers.detach().softmax(dim=0).numpy()
    return weights


def predict_rog(
    network: nn.Module,
    data: PreparedData,
    load: LoadSplit,
    *,
    seed: int,
    split: str = "test",
    layers: Sequence[str] | None = None,
    bfloat16: bool = False,
) -> NDArray[np.float64]:
    """Predict class probabilities of shape (sample, class) for a split.

    For several networks, average their probabilities, or count votes for their largest classes.

    Args:
        network: trained on the training split; moved to the device of the samples.
        data: splits with their labels; "validation" must have been held out from training.
        load: returns the samples of a split, such as `partial(data.batches, device=device)`.
        seed: of all random draws.
        split: the split to predict.
        layers: the layers to take features from, by default those of `default_layers`.
        bfloat16: extract features in bfloat16 under autocast.

    Raises:
        ChoiceError: there is no validation split, or no such layer.
        PredictionError: features are not finite.
    """
    if "validation" not in data.splits:
        raise _no_validation()
    train = load("train")
    network.to(train.device)
    layers = default_layers(network) if layers is None else layers
    extract = partial(extract_with_logits, network, layers=layers, bfloat16=bfloat16)
    given, held = (data.splits[one].labels for one in ("train", "validation"))
    heads = fit_rog(extract(train)[0], given, classes=data.classes, seed=seed)
    rog = mix_depths(heads, extract(load("validation"))[0], held, seed=seed)
    return rog.predict_probabilities(extract(load(split))[0])


def _no_validation() -> ChoiceError:
    return ChoiceError(
        "RoG learns the weights of layers on samples held out from training, and there are none. "
        "Set data.validation to 0.01 or more, and train again."
    )
