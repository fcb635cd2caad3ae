"""Build the networks, losses and recipes of a spec."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import torch
from torch import Tensor, nn

from accord._recorders.eval_mode import eval_mode
from accord.data import InputSchema
from accord.errors import ChoiceError
from accord.store import check_numbers
from accord.training._hardware import choose_device, uses_bfloat16
from accord.training._loop import Recipe, autocast
from accord.training._losses import build_loss
from accord.training._prepared_data import PreparedData
from accord.training._randomness import derive_seed
from accord.training._spec import NetworkSpec, Spec, network_specs
from accord.training.networks import BatchEnsemble, build, is_user_code, to_batch_ensemble

TRIAL_SAMPLES: Final = 2  # the smallest batch that shows which axis is which
# Draws from the seed of a network: 0 and 1 are the order and the randomness of an epoch.
MEMBER_DRAWS: Final = 2
RESERVED: Final = frozenset({"classes", "channels", "size", "seed", "pretrained"})


def choose_networks(spec: Spec, numbers: Sequence[int] | None) -> list[NetworkSpec]:
    networks = list(network_specs(spec))
    if numbers is None:
        return networks
    check_numbers(spec.name, numbers, [network.number for network in networks])
    return [network for network in networks if network.number in numbers]


def build_network(spec: Spec, network: NetworkSpec, data: PreparedData | InputSchema) -> nn.Module:
    channels, size = data.shape
    _check_options(network.network, network.options, RESERVED)
    pretrained = spec.train.pretrained
    built = build(
        spec.resolve_network(network.network),
        classes=data.classes,
        channels=channels,
        size=size,
        seed=network.seed,
        pretrained=None if pretrained is None else spec.resolve_path(pretrained),
        **network.options,
    )
    if network.members > 1:
        # Another seed than the network's, or the members' weights would repeat its numbers.
        seed = derive_seed(network.seed, 0, MEMBER_DRAWS)
        return to_batch_ensemble(built, members=network.members, seed=seed)
    return built


def loss_for(network: NetworkSpec, data: PreparedData) -> nn.Module:
    samples, classes = len(data.splits["train"]), data.classes
    _check_options(network.loss.kind, network.loss.options, {"samples", "classes"})
    return build_loss(network.loss.kind, samples=samples, classes=classes, **network.loss.options)


def recipe_for(spec: Spec, network: NetworkSpec, device: torch.device) -> Recipe:
    return Recipe(
        epochs=spec.train.epochs,
        batch=spec.train.batch,
        optimizer=network.optimizer,
        schedule=network.schedule,
        augment=spec.train.augment,
        every=spec.record.every,
        bfloat16=uses_bfloat16(spec, device),
    )


def _check_options(name: str, options: Mapping[str, Any], reserved: AbstractSet[str]) -> None:
    used = sorted(reserved & options.keys())
    if used:
        raise ChoiceError(f"{name}: {', '.join(used)} follows from the data and is not an option")


def check_networks(spec: Spec, data: PreparedData, *, user_code: bool = True) -> None:
    """Check that the networks and losses of a spec can be built.

    Networks from user code are also called on two samples; without `user_code`, they are left out.
    """
    checked = []
    for network in network_specs(spec):
        key = (network.network, network.options, network.loss)
        if key not in checked and (user_code or not is_user_code(network.network)):
            built = build_network(spec, network, data)
            if is_user_code(network.network):
                _check_user_network(built, network, spec, data)
            loss_for(network, data)
            checked.append(key)


def _check_user_network(
    built: nn.Module, network: NetworkSpec, spec: Spec, data: PreparedData
) -> None:
    device = choose_device()
    samples = data.first(TRIAL_SAMPLES).batches("train", device=device)
    check_logits(
        built,
        samples.take(torch.arange(len(samples))),
        name=network.network,
        classes=data.classes,
        bfloat16=uses_bfloat16(spec, device),
    )


def check_logits(
    network: nn.Module, batch: Tensor, *, name: str, classes: int, bfloat16: bool = False
) -> None:
    """Check that a network returns logits of shape (sample, class).

    The network computes in evaluation mode on the device of the batch, where it stays. Its modes
    and all random states are left as they were. Its own exceptions pass through.

    >>> import torch
    >>> check_logits(nn.Linear(3, 10), torch.zeros(2, 3), name="mine:net", classes=10)
    """
    if isinstance(network, BatchEnsemble):
        batch = network.tile(batch)
        network = network.network
    network.to(batch.device)
    with eval_mode(network), autocast(batch.device, bfloat16):
        output: object = network(batch)
    expected = len(batch), classes
    if isinstance(output, Tensor) and tuple(output.shape) == expected:
        return
    got = (
        f"a tensor of shape {tuple(output.shape)}"
        if isinstance(output, Tensor)
        else f"a {type(output).__name__}"
    )
    raise ChoiceError(
        f"the network {name} must return one logit for each sample and class, a tensor of shape "
        f"{expected} for {len(batch)} samples of {classes} classes; got {got}. {_cure(output)}"
    )


def _cure(output: object) -> str:
    if not isinstance(output, Tensor):
        return "Return the logits alone."
    if output.ndim == 2:
        return "Does its last layer have as many outputs as the `classes` that its builder takes?"
    return "Return the logits as they are: no argmax, no squeeze, no other axes."
