"""The latent classes of NPC: their concentrations, draws from them, and how far two lie apart."""

from torch import Tensor
from torch.nn import functional


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
