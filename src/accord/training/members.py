"""The networks of a spec: chosen by number, built, and tried before a run is taken."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import torch
from torch import nn

from accord.errors import ChoiceError
from accord.store.rows import check_numbers
from accord.training.losses import build_loss
from accord.training.material import Material
from accord.training.networks import build, is_own, to_batch_ensemble
from accord.training.seeds import derive_seed
from accord.training.settings import choose_device, recipe_for
from accord.training.spec import Member, Spec, members_of
from accord.training.traits import Traits
from accord.training.trial import SAMPLES, try_network

MEMBERS: Final = 2  # what is drawn of a seed: 0 and 1 are the epochs' order and randomness
RESERVED: Final = frozenset({"classes", "channels", "size", "seed", "pretrained"})


def choose_members(spec: Spec, networks: Sequence[int] | None) -> list[Member]:
    """Return the networks of a spec that have these numbers; None means all.

    Raises:
        ChoiceError: there is no such network, or one is named twice.
    """
    members = list(members_of(spec))
    if networks is None:
        return members
    check_numbers(spec.name, networks, [member.number for member in members])
    return [member for member in members if member.number in networks]


def build_network(spec: Spec, member: Member, material: Material | Traits) -> nn.Module:
    """Build one network of a spec, with its first weights."""
    channels, size = material.shape
    _check_options(member.network, member.options, RESERVED)
    pretrained = spec.train.pretrained
    network = build(
        spec.place_network(member.network),
        classes=material.classes,
        channels=channels,
        size=size,
        seed=member.seed,
        pretrained=None if pretrained is None else spec.place(pretrained),
        **member.options,
    )
    if member.members > 1:
        # Not the network's own seed: what members own would repeat the numbers of its weights.
        seed = derive_seed(member.seed, 0, MEMBERS)
        return to_batch_ensemble(network, members=member.members, seed=seed)
    return network


def loss_of(member: Member, material: Material) -> nn.Module:
    """Build what one network of a spec minimises."""
    samples, classes = len(material.splits["train"]), material.classes
    _check_options(member.loss.kind, member.loss.options, {"samples", "classes"})
    return build_loss(member.loss.kind, samples=samples, classes=classes, **member.loss.options)


def _check_options(name: str, options: Mapping[str, Any], reserved: AbstractSet[str]) -> None:
    taken = sorted(reserved & options.keys())
    if taken:
        raise ChoiceError(f"{name}: {', '.join(taken)} follows from the data, and is no option")


def check_members(spec: Spec, material: Material) -> None:
    """Refuse a spec with a network or a loss that cannot be built; those that are alike, once.

    A network of the user's own is shown a few samples, too.

    Raises:
        ChoiceError, ExtraMissing, SourceError: as `build` does.
        ChoiceError: a network of the user's own answers with something else than logits.
    """
    tried = []
    for member in members_of(spec):
        alike = (member.network, member.options, member.loss)
        if alike not in tried:
            network = build_network(spec, member, material)
            if is_own(member.network):
                _try(network, member, spec, material)
            loss_of(member, material)
            tried.append(alike)


def _try(network: nn.Module, member: Member, spec: Spec, material: Material) -> None:
    device = choose_device()
    samples = material.first(SAMPLES).batches("train", device=device)
    try_network(
        network,
        samples.take(torch.arange(len(samples))),
        name=member.network,
        classes=material.classes,
        bfloat16=recipe_for(spec, member, device).bfloat16,
    )
