"""RoG, the robust generative classifier on a trained network's features (Lee and others, 2019)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from accord.errors import ChoiceError
from accord.rivals.features import Sees, extract_features
from accord.rivals.gaussians import Labels, RogHead, Table, check_given, fit_head
from accord.rivals.layers import default_layers
from accord.training.material import Material
from accord.training.seeds import derive_seed

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
    material: Material,
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
