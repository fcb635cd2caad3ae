"""BatchEnsemble networks (Wen et al., 2020).

Each layer computes y = ((x ∘ rᵢ) W) ∘ sᵢ + bᵢ with two vectors and a bias for member i; W and
batch normalisation are shared. Inside the network the members are stacked along the batch,
(member · sample, …). `BatchEnsemble` stacks the inputs and splits the outputs.
"""

from abc import abstractmethod
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, ClassVar, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from accord.errors import ChoiceError, PredictionError
from accord.training._randomness import seeded

SPREAD: Final = 0.5  # initial standard deviation of r and s around 1
FACTOR: Final = 0.5  # of the learning rate of r, s and biases


class _MemberLayer(nn.Module):
    """Base class for layers with r, s and biases of shape (member, channel)."""

    channel_axis: ClassVar[int]

    def __init__(self, weight: Tensor, bias: Tensor | None, *, members: int, inputs: int) -> None:
        super().__init__()
        if members < 1:
            raise ChoiceError(f"a BatchEnsemble needs at least 1 member; got {members}.")
        self.members = members
        self.weight = nn.Parameter(weight)
        self.r = nn.Parameter((1 + SPREAD * torch.randn(members, inputs)).to(weight))
        self.s = nn.Parameter((1 + SPREAD * torch.randn(members, len(weight))).to(weight))
        self.bias = None if bias is None else nn.Parameter(bias.detach().repeat(members, 1))

    def forward(self, batch: Tensor) -> Tensor:  # (member · sample, …)
        r, s = self._by_sample(self.r, batch), self._by_sample(self.s, batch)
        # Cast to the type of the factor: under autocast the product would be float32.
        out = self._apply_weight(batch * r.to(batch))
        out = out * s.to(out)
        return out if self.bias is None else out + self._by_sample(self.bias, batch).to(out)

    def _by_sample(self, parameter: Tensor, batch: Tensor) -> Tensor:
        """Repeat a parameter of the members for their samples, in the axes of the batch."""
        rows = len(batch)
        if rows % self.members:
            raise PredictionError(
                f"a batch must hold the samples of {self.members} members, one member after the "
                f"other; got {rows} samples. Call the BatchEnsemble, not its inner network."
            )
        repeated = parameter.repeat_interleave(rows // self.members, dim=0)
        shape = [1] * batch.ndim
        shape[0], shape[self.channel_axis] = rows, -1
        return repeated.view(shape)

    @abstractmethod
    def _apply_weight(self, batch: Tensor) -> Tensor: ...


class BatchEnsembleLinear(_MemberLayer):
    """Linear layer with weights shared by all members.

    Args:
        plain: the layer that provides weights and initial biases.
        members: the number of members.
    """

    channel_axis = -1

    def __init__(self, plain: nn.Linear, *, members: int) -> None:
        super().__init__(plain.weight, plain.bias, members=members, inputs=plain.in_features)

    def _apply_weight(self, batch: Tensor) -> Tensor:  # (member · sample, …, channel)
        return functional.linear(batch, self.weight)


class BatchEnsembleConv2d(_MemberLayer):
    """Two-dimensional convolution with weights shared by all members.

    Args:
        plain: the layer that provides weights and initial biases.
        members: the number of members.
    """

    channel_axis = 1

    def __init__(self, plain: nn.Conv2d, *, members: int) -> None:
        super().__init__(plain.weight, plain.bias, members=members, inputs=plain.in_channels)
        if plain.padding_mode != "zeros":
            raise ChoiceError(
                "a BatchEnsemble supports only zero padding; "
                f"got padding_mode={plain.padding_mode!r}."
            )
        self.stride, self.padding = plain.stride, plain.padding
        self.dilation, self.groups = plain.dilation, plain.groups

    def _apply_weight(self, batch: Tensor) -> Tensor:  # (member · sample, channel, row, column)
        return functional.conv2d(
            batch, self.weight, None, self.stride, self.padding, self.dilation, self.groups
        )


class BatchEnsemble(nn.Module):
    """BatchEnsemble network that returns the logits of every member.

    Max agreement counts each member as a network.
    """

    def __init__(self, network: nn.Module, *, members: int) -> None:
        super().__init__()
        self.network = network
        self.members = members

    def forward(self, samples: Tensor) -> Tensor:  # (sample, …)
        """Compute logits of shape (member, sample, class)."""
        logits: Tensor = self.network(self.tile(samples)).unflatten(0, (self.members, -1))
        return logits

    def tile(self, samples: Tensor) -> Tensor:  # (sample, …)
        """Repeat a batch of samples for every member."""
        return samples.repeat(self.members, *[1] * (samples.ndim - 1))


def to_batch_ensemble(network: nn.Module, *, members: int, seed: int) -> BatchEnsemble:
    """Convert a copy of a network to a BatchEnsemble.

    The weights of the network become the shared ones. The parameters of the members follow from
    the seed. Batch normalisation is shared.

    Raises:
        ChoiceError: no members, no layer to convert, or a subclass of a layer.

    >>> plain = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 5))
    >>> to_batch_ensemble(plain, members=4, seed=0)(torch.zeros(7, 2)).shape
    torch.Size([4, 7, 5])
    """
    inner = deepcopy(network)
    with seeded(seed):
        replaced = [_replace(parent, name, members) for parent, name in list(_plain_layers(inner))]
    if not replaced:
        raise ChoiceError(
            f"{type(network).__name__} contains no linear layer or convolution, "
            "so its members could not differ."
        )
    return BatchEnsemble(inner, members=members)


def parameter_groups(network: nn.Module, *, lr: float, weight_decay: float) -> list[dict[str, Any]]:
    """Build parameter groups with half the learning rate for member parameters.

    The authors halve the gradients of r, s and the members' biases. Half the learning rate is the
    same for SGD, and also works for Adam, which would undo halved gradients. r and s have no
    weight decay.

    A network without members has one group. A schedule must scale the rate of each group:
    `group["lr"] = lr * group["lr_factor"]`.

    Args:
        network: a BatchEnsemble, or any other network.
        lr: the learning rate.
        weight_decay: as for torch's optimizers.
    """
    layers = [module for module in network.modules() if isinstance(module, _MemberLayer)]
    vectors = [vector for layer in layers for vector in (layer.r, layer.s)]
    biases = [layer.bias for layer in layers if layer.bias is not None]
    own = {id(parameter) for parameter in (*vectors, *biases)}
    shared = [parameter for parameter in network.parameters() if id(parameter) not in own]
    groups = [(shared, 1.0, weight_decay), (biases, FACTOR, weight_decay), (vectors, FACTOR, 0.0)]
    return [
        {"params": params, "lr": lr * factor, "lr_factor": factor, "weight_decay": decay}
        for params, factor, decay in groups
        if params
    ]


def _plain_layers(network: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    for parent in network.modules():
        for name, child in parent.named_children():
            if isinstance(child, (nn.Linear, nn.Conv2d)):
                yield parent, name


def _replace(parent: nn.Module, name: str, members: int) -> nn.Module:
    plain = getattr(parent, name)
    # Not isinstance: a subclass may use its weights differently.
    if type(plain) is nn.Linear:
        layer: nn.Module = BatchEnsembleLinear(plain, members=members)
    elif type(plain) is nn.Conv2d:
        layer = BatchEnsembleConv2d(plain, members=members)
    else:
        raise ChoiceError(
            f"a {type(plain).__name__} cannot have members: only torch's own Linear and "
            f"Conv2d can. It is {name!r} of a {type(parent).__name__}."
        )
    setattr(parent, name, layer)
    return layer
