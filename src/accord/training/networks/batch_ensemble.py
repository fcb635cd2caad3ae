"""BatchEnsemble (Wen and others, 2020): several members that share almost all their weights.

A member i owns two vectors and a bias for each layer, y = ((x ∘ rᵢ) W) ∘ sᵢ + bᵢ, and shares W
and the batch norms with the others. Inside the network the members lie one after the other
along the batch, (member · sample, …); `BatchEnsemble` puts them there and takes them apart.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from accord.errors import ChoiceError, PredictionError
from accord.training._randomness import seeded

SPREAD: Final = 0.5  # the standard deviation of r and s around 1, at the start
FACTOR: Final = 0.5  # on the gradients of what members own


class _MemberLayer(nn.Module):
    """What both kinds of layer share: r, s and the biases, (member, channel)."""

    def __init__(self, weight: Tensor, bias: Tensor | None, *, members: int, inputs: int) -> None:
        super().__init__()
        if members < 1:
            raise ChoiceError(f"a BatchEnsemble needs at least 1 member; got {members}.")
        self.members = members
        self.weight = nn.Parameter(weight)
        self.r = nn.Parameter((1 + SPREAD * torch.randn(members, inputs)).to(weight))
        self.s = nn.Parameter((1 + SPREAD * torch.randn(members, len(weight))).to(weight))
        self.bias = None if bias is None else nn.Parameter(bias.detach().repeat(members, 1))

    def spread(self, owned: Tensor, *, rows: int) -> Tensor:
        """Repeat what each member owns for each of its samples: (member · sample, channel)."""
        if rows % self.members:
            raise PredictionError(
                f"a batch must hold the samples of {self.members} members, one member after the "
                f"other; got {rows} rows. Call the BatchEnsemble, not the network inside it."
            )
        return owned.repeat_interleave(rows // self.members, dim=0)


class BatchEnsembleLinear(_MemberLayer):
    """A linear layer whose members share its weights.

    Args:
        plain: the layer whose weights are taken over; each member's bias starts as its bias.
        members: how many members there are.
    """

    def __init__(self, plain: nn.Linear, *, members: int) -> None:
        super().__init__(plain.weight, plain.bias, members=members, inputs=plain.in_features)

    def forward(self, batch: Tensor) -> Tensor:  # (member · sample, …, channel)
        """Return what each member makes of its samples, in the same order."""
        rows, between = len(batch), (1,) * (batch.ndim - 2)
        r, s = (self.spread(one, rows=rows).view(rows, *between, -1) for one in (self.r, self.s))
        # In the type of what they scale: under autocast a product would else widen to float32.
        out = functional.linear(batch * r.to(batch), self.weight)
        out = out * s.to(out)
        if self.bias is None:
            return out
        return out + self.spread(self.bias, rows=rows).view(rows, *between, -1).to(out)


class BatchEnsembleConv2d(_MemberLayer):
    """A convolution whose members share its weights; r is per input channel, s per output.

    Args:
        plain: the layer whose weights are taken over; each member's bias starts as its bias.
        members: how many members there are.
    """

    def __init__(self, plain: nn.Conv2d, *, members: int) -> None:
        super().__init__(plain.weight, plain.bias, members=members, inputs=plain.in_channels)
        if plain.padding_mode != "zeros":
            raise ChoiceError(
                "a BatchEnsemble can pad its convolutions with zeros alone; "
                f"got padding_mode={plain.padding_mode!r}."
            )
        self.stride, self.padding = plain.stride, plain.padding
        self.dilation, self.groups = plain.dilation, plain.groups

    def forward(self, batch: Tensor) -> Tensor:  # (member · sample, channel, row, column)
        """Return what each member makes of its samples, in the same order."""
        rows = len(batch)
        r, s = (self.spread(one, rows=rows)[:, :, None, None] for one in (self.r, self.s))
        scaled = batch * r.to(batch)  # in its type: under autocast it would else widen to float32
        out = functional.conv2d(
            scaled, self.weight, None, self.stride, self.padding, self.dilation, self.groups
        )
        out = out * s.to(out)
        if self.bias is None:
            return out
        return out + self.spread(self.bias, rows=rows)[:, :, None, None].to(out)


class BatchEnsemble(nn.Module):
    """A network of member layers that is asked about each sample once for every member.

    Its own prediction is the mean of its members' probabilities; max agreement takes each
    member for a network.
    """

    def __init__(self, network: nn.Module, *, members: int) -> None:
        super().__init__()
        self.network = network
        self.members = members

    def forward(self, samples: Tensor) -> Tensor:  # (sample, …)
        """Return the logits of every member, (member, sample, class)."""
        logits: Tensor = self.network(self.tile(samples)).unflatten(0, (self.members, -1))
        return logits

    def tile(self, samples: Tensor) -> Tensor:  # (sample, …)
        """Return the samples once for every member, (member · sample, …)."""
        return samples.repeat(self.members, *[1] * (samples.ndim - 1))


def to_batch_ensemble(network: nn.Module, *, members: int, seed: int) -> BatchEnsemble:
    """Rebuild a network so that every linear layer and convolution has members.

    The network given is left as it is; its weights are the start of the shared ones. Batch
    norms stay, shared. What members own follows from the seed.

    Raises:
        ChoiceError: no members, no layer that could have any, or a kind that is not known.

    >>> plain = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 5))
    >>> to_batch_ensemble(plain, members=4, seed=0)(torch.zeros(7, 2)).shape
    torch.Size([4, 7, 5])
    """
    inside = deepcopy(network)
    with seeded(seed):
        replaced = [_replace(parent, name, members) for parent, name in list(_plain_layers(inside))]
    if not replaced:
        raise ChoiceError(
            f"{type(network).__name__} has no linear layer or convolution inside, "
            "so its members could not differ."
        )
    return BatchEnsemble(inside, members=members)


def parameter_groups(network: nn.Module, *, lr: float, weight_decay: float) -> list[dict[str, Any]]:
    """Return groups for an optimizer, in which what members own learns at half the rate.

    The authors halve the gradients of r, s and the members' biases. For gradient descent,
    with momentum or without, half the rate is the same and costs nothing; an optimizer that
    divides by the gradient's size, as Adam does, would undo halved gradients, but not this.
    r and s are not decayed; biases are, as all else. The batch norms are shared, and count as
    all else.

    A network without members gives one group. Each group carries its `lr_factor`, for a
    schedule that sets `lr` anew: `group["lr"] = lr * group["lr_factor"]`.

    Args:
        network: a BatchEnsemble, or any other.
        lr: the learning rate.
        weight_decay: as torch's optimizers take it.
    """
    layers = [module for module in network.modules() if isinstance(module, _MemberLayer)]
    vectors = [vector for layer in layers for vector in (layer.r, layer.s)]
    biases = [layer.bias for layer in layers if layer.bias is not None]
    owned = {id(parameter) for parameter in (*vectors, *biases)}
    shared = [parameter for parameter in network.parameters() if id(parameter) not in owned]
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
    # Not isinstance: a subclass may do something else with its weights.
    if type(plain) is nn.Linear:
        layer: nn.Module = BatchEnsembleLinear(plain, members=members)
    elif type(plain) is nn.Conv2d:
        layer = BatchEnsembleConv2d(plain, members=members)
    else:
        raise ChoiceError(
            f"a {type(plain).__name__} cannot be given members: only torch's own Linear and "
            f"Conv2d can. It lies at {name!r} in a {type(parent).__name__}."
        )
    setattr(parent, name, layer)
    return layer
