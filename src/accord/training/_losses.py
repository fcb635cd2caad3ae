"""Loss functions for training.

A loss is called with logits (sample, class), labels (sample,) or probabilities (sample, class), and
the positions of the samples in the training split (sample,), without duplicates. It returns the
mean over the batch. It may keep a state for each training sample, part of `state_dict`; in
evaluation mode it is not updated.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from accord.errors import ChoiceError, PredictionError, suggest
from accord.training.networks._registry import call_with_options

CLAMP: Final = 1e-4  # ELR clamps probabilities to [CLAMP, 1 - CLAMP]


class CrossEntropy(nn.Module):
    """Mean cross-entropy of the given labels.

    The logits of a BatchEnsemble, (member, sample, class), are averaged over the members.
    """

    def __init__(self) -> None:  # the signature of nn.Module takes any option
        super().__init__()

    def forward(self, logits: Tensor, labels: Tensor, samples: Tensor) -> Tensor:
        _check_batch(logits, labels, samples, axes=(2, 3))
        given = labels.expand(*logits.shape[:-2], *labels.shape)
        return functional.cross_entropy(logits.flatten(0, -2), given.flatten(0, logits.ndim - 2))


class EarlyLearningRegularization(nn.Module):
    """Early-learning regularisation loss (Liu et al., 2020).

    Keeps for each sample a running mean q of the predicted probabilities p, and penalises
    departures from it::

        q ← β q + (1 - β) p / Σ p                        p clamped; no gradient flows here
        loss = cross-entropy + λ · mean log(1 - ⟨q, p⟩)    with the new q; a gradient through p

    The defaults are the authors' for CIFAR-10 with symmetric noise; asymmetric noise: β 0.9,
    λ 1; CIFAR-100: β 0.9, λ 7.
    `beta` is β, the fraction of q that is kept in each epoch, and `strength` λ.
    """

    q: Tensor  # (sample, class)

    def __init__(
        self, *, samples: int, classes: int, beta: float = 0.7, strength: float = 3.0
    ) -> None:
        super().__init__()
        if not 0 <= beta < 1 or strength < 0:
            raise ChoiceError(
                "elr needs beta in [0, 1) and a strength of at least 0; "
                f"got beta={beta}, strength={strength}."
            )
        self.beta, self.strength = beta, strength
        self.register_buffer("q", torch.zeros(samples, classes))

    def forward(self, logits: Tensor, labels: Tensor, samples: Tensor) -> Tensor:
        _check_batch(logits, labels, samples, axes=(2,))
        logits = logits.to(self.q.dtype)  # q would drift in half precision
        p = logits.softmax(dim=1).clamp(CLAMP, 1 - CLAMP)
        if self.training:
            target = p.detach() / p.detach().sum(dim=1, keepdim=True)
            self.q[samples] = self.beta * self.q[samples] + (1 - self.beta) * target
        departure = (1 - (self.q[samples] * p).sum(dim=1)).log().mean()
        return functional.cross_entropy(logits, labels) + self.strength * departure


LOSSES: Final[Mapping[str, Callable[..., nn.Module]]] = MappingProxyType(
    {"cross-entropy": CrossEntropy, "elr": EarlyLearningRegularization}
)


def build_loss(name: str, *, samples: int, classes: int, **options: Any) -> nn.Module:
    """Build a loss by name.

    >>> loss = build_loss("cross-entropy", samples=2, classes=2)
    >>> loss(torch.zeros(2, 2), torch.tensor([0, 1]), torch.tensor([0, 1]))
    tensor(0.6931)
    """
    if name not in LOSSES:
        raise ChoiceError(f"no loss is called {name!r}. {suggest(name, LOSSES)}")
    arguments = {"samples": samples, "classes": classes}
    return call_with_options(LOSSES[name], name=name, arguments=arguments, options=options)


def _check_batch(logits: Tensor, labels: Tensor, samples: Tensor, *, axes: tuple[int, ...]) -> None:
    fits = logits.ndim in axes and samples.shape == logits.shape[-2:-1]
    if not fits or labels.shape not in (samples.shape, logits.shape[-2:]):
        raise PredictionError(
            "a loss needs logits (sample, class), one label and one position for each sample; "
            f"got logits {tuple(logits.shape)}, labels {tuple(labels.shape)} and samples "
            f"{tuple(samples.shape)}."
        )
