"""Autoencoder and prior of NPC."""

from copy import deepcopy
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from accord.baselines._features import find_layer, last_layer
from accord.errors import ChoiceError
from accord.training._randomness import derive_seed, draw_epoch, seeded


def concentrations_of(scores: Tensor) -> Tensor:  # (sample, class)
    """Compute Dirichlet concentrations above 1, for which the mode lies inside the simplex."""
    return functional.softplus(scores) + 1 + 1 / scores.shape[1]


def prior_concentrations(labels: Tensor, *, classes: int, strength: float = 5.0) -> Tensor:
    """Compute prior concentrations of shape (sample, class) that favour one class per sample.

    >>> import torch
    >>> prior_concentrations(torch.tensor([1]), classes=2)
    tensor([[1.5000, 6.5000]])
    """
    return strength * functional.one_hot(labels, classes).float() + 1 + 1 / classes


def draw_latent(concentrations: Tensor, uniform: Tensor) -> Tensor:
    """Draw unnormalised, differentiable class weights of shape (sample, class).

    The random numbers `uniform`, of the same shape, are above 0, where the gradient is NaN.
    """
    return (((uniform * concentrations).log() + concentrations.lgamma()) / concentrations).exp()


def divergence(inferred: Tensor, prior: Tensor) -> Tensor:
    """Compute the Kullback-Leibler divergence of the concentrations of each sample.

    It is that of the Gamma variables of rate 1 that a Dirichlet distribution normalises.

    >>> import torch
    >>> divergence(torch.tensor([[2.0, 1.0]]), torch.tensor([[2.0, 2.0]]))
    tensor([0.5772])
    """
    terms = prior.lgamma() - inferred.lgamma() + (inferred - prior) * inferred.digamma()
    return terms.sum(dim=1)


class Autoencoder(nn.Module):
    """Autoencoder of the predicted class with the true class as latent variable.

    `network` returns logits (sample, class) and is trained with the rest.
    """

    def __init__(self, network: nn.Module, *, classes: int) -> None:
        super().__init__()
        self.network = network
        self.encoder = nn.Linear(2 * classes, classes)
        self.decoder = nn.Linear(2 * classes, classes)

    def encode(self, logits: Tensor, predicted: Tensor) -> Tensor:
        """Compute concentrations of the true class of shape (sample, class).

        Both arguments are (sample, class), with `predicted` one-hot encoded.
        """
        return concentrations_of(self.encoder(torch.cat([logits, predicted], dim=1)))

    def decode(self, logits: Tensor, latent: Tensor) -> Tensor:
        """Compute logits of the predicted class of shape (sample, class)."""
        predicted: Tensor = self.decoder(torch.cat([logits, latent], dim=1))
        return predicted


def build_autoencoder(network: nn.Module, *, classes: int, seed: int) -> Autoencoder:
    """Build an autoencoder around a copy of a trained network, with its last layer reinitialised.

    New weights follow from the seed. Torch's global random state is unchanged.
    """
    copy = deepcopy(network).requires_grad_(True)
    layer = find_layer(copy, last_layer(copy))
    if not isinstance(layer, nn.Linear):
        raise ChoiceError(
            f"the last layer of {type(network).__name__}, {last_layer(copy)!r}, must be linear to "
            f"be reinitialised; it is a {type(layer).__name__}."
        )
    device = layer.weight.device
    with seeded(seed):
        # On the CPU: every device has another random generator.
        layer.cpu().reset_parameters()
        autoencoder = Autoencoder(copy, classes=classes)
    return autoencoder.to(device)


def calibration_loss(
    autoencoder: Autoencoder, logits: Tensor, predicted: Tensor, prior: Tensor, uniform: Tensor
) -> Tensor:
    """Compute the NPC loss, summed over samples and classes.

    All tensors are (sample, class): the output of the autoencoder's network, the predicted classes
    as one-hot, the concentrations of the prior, and random numbers above 0 and at most 1.
    """
    inferred = autoencoder.encode(logits, predicted)
    rebuilt = autoencoder.decode(logits, draw_latent(inferred, uniform))
    missed = functional.binary_cross_entropy_with_logits(rebuilt, predicted, reduction="sum")
    return missed + divergence(inferred, prior).sum()


def calibrate(autoencoder: Autoencoder, logits: Tensor, predicted: Tensor) -> Tensor:
    """Compute calibrated probabilities of shape (sample, class).

    p(y|x) = Σₖ p(y|ŷ=k, x) p(ŷ=k|x), where p(y|ŷ=k, x) is the mode of the Dirichlet
    distribution with the encoder's concentrations. `logits` come from the autoencoder's network,
    which is in evaluation mode, and `predicted` are the logits of the trained network.
    """
    probabilities = predicted.softmax(dim=1)
    total = torch.zeros_like(probabilities)
    # The encoder is linear: the parts of the sample and of the class are computed once and added.
    of_sample, of_class = autoencoder.encoder.weight.split(probabilities.shape[1], dim=1)
    encoded = functional.linear(logits, of_sample, autoencoder.encoder.bias)
    # One class at a time: a (sample, class, class) array could be too large.
    for number in range(probabilities.shape[1]):
        mode = concentrations_of(encoded + of_class[:, number]) - 1
        total += probabilities[:, number, None] * mode / mode.sum(dim=1, keepdim=True)
    return total


CELLS: Final = 2**24  # distances in memory at once


def nearest_classes(
    known: Tensor, labels: Tensor, samples: Tensor, *, classes: int, neighbours: int = 10
) -> Tensor:
    """Predict the class of each sample from its nearest neighbours.

    Neighbours are weighted by the inverse of their distance. Those at distance 0 outvote all
    others. Ties go to the lowest class. `known` are the features (known, feature) of samples with
    labels (known,). `samples` are features (sample, feature).

    >>> known, labels = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([1, 1, 0])
    >>> nearest_classes(known, labels, torch.tensor([[4.9], [2.0]]), classes=2)
    tensor([0, 1])
    """
    centre = known.mean(dim=0)
    around = known - centre
    lengths = around.square().sum(dim=1)
    count = min(neighbours, len(known))
    predicted = []
    for part in samples.split(max(1, min(1024, CELLS // len(known)))):
        # Squared distances up to a constant rank the neighbours. For the nearest, distances are
        # computed exactly, so that a sample is at distance 0 from itself.
        ranks = lengths - 2 * (part - centre) @ around.T
        near = ranks.topk(count, dim=1, largest=False).indices
        distances = (part[:, None] - known[near]).double().square().sum(dim=2).sqrt()
        same = distances == 0
        weights = torch.where(same.any(dim=1, keepdim=True), same.double(), 1 / distances)
        votes = distances.new_zeros((len(part), classes)).scatter_add_(1, labels[near], weights)
        predicted.append(votes.argmax(dim=1))
    return torch.cat(predicted)


Table = NDArray[np.float32]


def similar_classes(
    features: Table, logits: Table, *, seed: int, batch: int, device: torch.device
) -> Tensor:
    """Predict the class of each sample from similar samples.

    The most confident sample of each predicted class in each random batch votes. Features
    (sample, feature) are the input of the network's last layer, logits (sample, class) its output.
    """
    order = draw_epoch(len(logits), seed=derive_seed(seed), epoch=0).order.numpy()
    kept = most_confident(logits[order], batch=batch)
    samples = torch.from_numpy(features).to(device)
    votes = torch.from_numpy(logits.argmax(axis=1)[order[kept]]).to(device)
    known = samples[torch.from_numpy(order[kept]).to(device)]
    return nearest_classes(known, votes, samples, classes=logits.shape[1])


def most_confident(logits: Table, *, batch: int) -> NDArray[np.intp]:
    """Find the most confident sample of each predicted class in each batch.

    Ties go to the first sample.

    >>> most_confident(np.array([[1, 0], [3, 0], [0, 2], [2, 0]], np.float32), batch=2)
    array([1, 3, 2])
    """
    predicted = logits.argmax(axis=1)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    doubt = powers.sum(axis=1)  # the inverse of the largest probability
    found = []
    for start in range(0, len(logits), batch):
        part = slice(start, start + batch)
        by_confidence = np.argsort(doubt[part], kind="stable")
        _, first = np.unique(predicted[part][by_confidence], return_index=True)
        found.append(start + by_confidence[first])
    return np.concatenate(found)
