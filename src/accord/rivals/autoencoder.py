"""The conditional autoencoder of NPC, its loss, and what it makes of a classifier's answers."""

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional

from accord.errors import ChoiceError
from accord.rivals.dirichlet import concentrations_of, divergence, draw_latent
from accord.rivals.layers import find_layer, last_layer
from accord.training.networks.initialisation import seeded


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
