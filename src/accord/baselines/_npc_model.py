"""The prior of NPC: the class that a network's surest predictions of similar samples suggest."""

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
    """Turn any scores into concentrations above 1, so that the most likely class is inside."""
    return functional.softplus(scores) + 1 + 1 / scores.shape[1]


def prior_concentrations(labels: Tensor, *, classes: int, strength: float = 5.0) -> Tensor:
    """Return concentrations (sample, class) that favour one class each.

    >>> import torch
    >>> prior_concentrations(torch.tensor([1]), classes=2)
    tensor([[1.5000, 6.5000]])
    """
    return strength * functional.one_hot(labels, classes).float() + 1 + 1 / classes


def draw_latent(concentrations: Tensor, uniform: Tensor) -> Tensor:
    """Draw classes' weights through which gradients flow; they are not made to sum to 1.

    Args:
        concentrations: (sample, class).
        uniform: of the same shape, above 0: the gradient at 0 would not be a number.
    """
    return (((uniform * concentrations).log() + concentrations.lgamma()) / concentrations).exp()


def divergence(inferred: Tensor, prior: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence of each sample's concentrations, (sample,).

    Each class's weight is a Gamma variable of rate 1, before they are made to sum to 1.

    >>> import torch
    >>> divergence(torch.tensor([[2.0, 1.0]]), torch.tensor([[2.0, 2.0]]))
    tensor([0.5772])
    """
    terms = prior.lgamma() - inferred.lgamma() + (inferred - prior) * inferred.digamma()
    return terms.sum(dim=1)


class Autoencoder(nn.Module):
    """Tells the true class from a sample and its predicted class, and the predicted one back.

    Args:
        network: gives logits (sample, class) of samples; trained along.
        classes: how many classes there are.
    """

    def __init__(self, network: nn.Module, *, classes: int) -> None:
        super().__init__()
        self.network = network
        self.encoder = nn.Linear(2 * classes, classes)
        self.decoder = nn.Linear(2 * classes, classes)

    def encode(self, logits: Tensor, predicted: Tensor) -> Tensor:
        """Return the concentrations of the true class, (sample, class).

        Args:
            logits: what the network inside makes of the samples, (sample, class).
            predicted: the classes that the classifier predicts, one-hot, (sample, class).
        """
        return concentrations_of(self.encoder(torch.cat([logits, predicted], dim=1)))

    def decode(self, logits: Tensor, latent: Tensor) -> Tensor:
        """Return logits of what the classifier predicts, (sample, class)."""
        predicted: Tensor = self.decoder(torch.cat([logits, latent], dim=1))
        return predicted


def build_autoencoder(network: nn.Module, *, classes: int, seed: int) -> Autoencoder:
    """Build an autoencoder around a copy of a trained network, whose last layer starts anew.

    What starts anew follows from the seed; torch's global random state is left as it was.

    Raises:
        ChoiceError: a network without a last linear layer.
    """
    copy = deepcopy(network).requires_grad_(True)
    layer = find_layer(copy, last_layer(copy))
    if not isinstance(layer, nn.Linear):
        raise ChoiceError(
            f"the last layer of {type(network).__name__}, {last_layer(copy)!r}, must be linear to "
            f"start anew; it is a {type(layer).__name__}."
        )
    device = layer.weight.device
    with seeded(seed):
        # On the CPU: another device would draw from random numbers of its own.
        layer.cpu().reset_parameters()
        autoencoder = Autoencoder(copy, classes=classes)
    return autoencoder.to(device)


def calibration_loss(
    autoencoder: Autoencoder, logits: Tensor, predicted: Tensor, prior: Tensor, uniform: Tensor
) -> Tensor:
    """Return what NPC minimises, summed over samples and classes.

    Args:
        autoencoder: to be trained.
        logits: what its network makes of the samples, (sample, class).
        predicted: the classes that the classifier predicts, one-hot, (sample, class).
        prior: the concentrations that are expected, (sample, class).
        uniform: random numbers above 0 and at most 1, (sample, class).
    """
    inferred = autoencoder.encode(logits, predicted)
    rebuilt = autoencoder.decode(logits, draw_latent(inferred, uniform))
    missed = functional.binary_cross_entropy_with_logits(rebuilt, predicted, reduction="sum")
    return missed + divergence(inferred, prior).sum()


def calibrate(autoencoder: Autoencoder, logits: Tensor, answers: Tensor) -> Tensor:
    """Return the probability of each class, (sample, class).

    It is p(y|x) = Σₖ p(y|ŷ=k, x) p(ŷ=k|x), where p(y|ŷ=k, x) is the mode of the Dirichlet
    distribution with the encoder's concentrations.

    Args:
        autoencoder: in evaluation mode.
        logits: what its own network makes of the samples, (sample, class).
        answers: the classifier's logits, (sample, class).
    """
    chances = answers.softmax(dim=1)
    total = torch.zeros_like(chances)
    # What the encoder makes of a sample and of a class adds up, so each is asked for once.
    of_sample, of_class = autoencoder.encoder.weight.split(chances.shape[1], dim=1)
    seen = functional.linear(logits, of_sample, autoencoder.encoder.bias)
    # One class after the other: a (sample, class, class) table could be too large.
    for number in range(chances.shape[1]):
        mode = concentrations_of(seen + of_class[:, number]) - 1
        total += chances[:, number, None] * mode / mode.sum(dim=1, keepdim=True)
    return total


CELLS: Final = 2**24  # distances in memory at once
MOST_ROWS: Final = 1024  # samples asked about at once


def nearest_classes(
    known: Tensor, labels: Tensor, asked: Tensor, *, classes: int, neighbours: int = 10
) -> Tensor:
    """Predict each sample's class by a vote of its nearest neighbours, (sample,).

    A neighbour's vote counts one over its distance; those at distance 0 outvote all others.
    Equal votes go to the smaller class.

    Args:
        known: (known, feature).
        labels: (known,), their classes.
        asked: (sample, feature).
        classes: how many classes there are.
        neighbours: how many vote; all of `known` if they are fewer.

    >>> known, labels = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([1, 1, 0])
    >>> nearest_classes(known, labels, torch.tensor([[4.9], [2.0]]), classes=2)
    tensor([0, 1])
    """
    centre = known.mean(dim=0)
    around = known - centre
    lengths = around.square().sum(dim=1)
    count = min(neighbours, len(known))
    predicted = []
    for rows in asked.split(max(1, min(MOST_ROWS, CELLS // len(known)))):
        # Squared distances, but for what they share. They are good enough to rank by; exact
        # ones are then taken of the few that are nearest, so that a sample is at 0 of itself.
        ranks = lengths - 2 * (rows - centre) @ around.T
        near = ranks.topk(count, dim=1, largest=False).indices
        distances = (rows[:, None] - known[near]).double().square().sum(dim=2).sqrt()
        predicted.append(_vote(distances, labels[near], classes))
    return torch.cat(predicted)


def _vote(distances: Tensor, labels: Tensor, classes: int) -> Tensor:
    same = distances == 0
    weights = torch.where(same.any(dim=1, keepdim=True), same.double(), 1 / distances)
    votes = distances.new_zeros((len(labels), classes)).scatter_add_(1, labels, weights)
    return votes.argmax(dim=1)


Table = NDArray[np.float32]


def similar_classes(
    features: Table, logits: Table, *, seed: int, batch: int, device: torch.device
) -> Tensor:
    """Return the class of each sample by the samples that are like it, (sample,), on the device.

    Args:
        features: (sample, feature), what goes into the network's last layer.
        logits: (sample, class), what comes out.
        seed: decides which samples share a batch.
        batch: among so many samples, the surest one of each predicted class is kept to vote.
        device: where to compute.
    """
    order = draw_epoch(len(logits), seed=derive_seed(seed), epoch=0).order.numpy()
    kept = surest_samples(logits[order], batch=batch)
    asked = torch.from_numpy(features).to(device)
    votes = torch.from_numpy(logits.argmax(axis=1)[order[kept]]).to(device)
    return nearest_classes(
        asked[torch.from_numpy(order[kept]).to(device)], votes, asked, classes=logits.shape[1]
    )


def surest_samples(logits: Table, *, batch: int) -> NDArray[np.intp]:
    """Return the positions of the surest sample of each predicted class in each batch.

    Of equally sure samples, the first.

    >>> surest_samples(np.array([[1, 0], [3, 0], [0, 2], [2, 0]], np.float32), batch=2)
    array([1, 3, 2])
    """
    predicted = logits.argmax(axis=1)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    doubt = powers.sum(axis=1)  # one over the largest probability
    found = []
    for start in range(0, len(logits), batch):
        part = slice(start, start + batch)
        surest_first = np.argsort(doubt[part], kind="stable")
        _, first = np.unique(predicted[part][surest_first], return_index=True)
        found.append(start + surest_first[first])
    return np.concatenate(found)
