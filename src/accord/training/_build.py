"""The networks of a spec: chosen by number, built, and tried before a run is taken."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import torch
from torch import Tensor, nn

from accord._recorders.eval_mode import eval_mode
from accord.data import InputSchema
from accord.errors import ChoiceError
from accord.store._record_reader import check_numbers
from accord.training._loop import autocast
from accord.training._losses import build_loss
from accord.training._prepared_data import PreparedData
from accord.training._randomness import derive_seed
from accord.training._settings import choose_device, recipe_for
from accord.training.networks import BatchEnsemble, build, is_user_code, to_batch_ensemble
from accord.training.spec import NetworkSpec, Spec, network_specs

SAMPLES: Final = 2  # to try a network on: the smallest batch that shows which axis is which


def try_network(
    network: nn.Module, batch: Tensor, *, name: str, classes: int, bfloat16: bool = False
) -> None:
    """Show a network a batch, and refuse one that does not answer with logits.

    It answers in evaluation mode, on the device of the batch, where it stays; its modes and all
    random states are left as they were. What it raises itself comes through as it is.

    Args:
        network: of a BatchEnsemble, the network inside is asked, as all members.
        batch: (sample, …).
        name: as the spec spells it.
        classes: how many there are.
        bfloat16: whether to compute in bfloat16, as it will be trained.

    Raises:
        ChoiceError: the answer is not one logit for each sample and class.

    >>> import torch
    >>> try_network(nn.Linear(3, 10), torch.zeros(2, 3), name="mine:net", classes=10)
    """
    if isinstance(network, BatchEnsemble):
        batch = network.tile(batch)
        network = network.network
    network.to(batch.device)
    with eval_mode(network), autocast(batch.device, bfloat16):
        answer: object = network(batch)
    _check_answer(answer, name=name, wanted=(len(batch), classes))


def _check_answer(answer: object, *, name: str, wanted: tuple[int, int]) -> None:
    if isinstance(answer, Tensor) and tuple(answer.shape) == wanted:
        return
    got = (
        f"a tensor of shape {tuple(answer.shape)}"
        if isinstance(answer, Tensor)
        else f"a {type(answer).__name__}"
    )
    raise ChoiceError(
        f"the network {name} must return one logit for each sample and class, a tensor of shape "
        f"{wanted} for {wanted[0]} samples of {wanted[1]} classes; got {got}. {_cure(answer)}"
    )


def _cure(answer: object) -> str:
    if not isinstance(answer, Tensor):
        return "Return the logits alone."
    if answer.ndim == 2:
        return "Does its last layer have as many outputs as the `classes` that its builder takes?"
    return "Return the logits as they are: no argmax, no squeeze, no axes beside these two."


MEMBERS: Final = 2  # what is drawn of a seed: 0 and 1 are the epochs' order and randomness
RESERVED: Final = frozenset({"classes", "channels", "size", "seed", "pretrained"})


def choose_networks(spec: Spec, networks: Sequence[int] | None) -> list[NetworkSpec]:
    """Return the networks of a spec that have these numbers; None means all.

    Raises:
        ChoiceError: there is no such network, or one is named twice.
    """
    members = list(network_specs(spec))
    if networks is None:
        return members
    check_numbers(spec.name, networks, [member.number for member in members])
    return [member for member in members if member.number in networks]


def build_network(
    spec: Spec, member: NetworkSpec, material: PreparedData | InputSchema
) -> nn.Module:
    """Build one network of a spec, with its first weights."""
    channels, size = material.shape
    _check_options(member.network, member.options, RESERVED)
    pretrained = spec.train.pretrained
    network = build(
        spec.resolve_network(member.network),
        classes=material.classes,
        channels=channels,
        size=size,
        seed=member.seed,
        pretrained=None if pretrained is None else spec.resolve_path(pretrained),
        **member.options,
    )
    if member.members > 1:
        # Not the network's own seed: what members own would repeat the numbers of its weights.
        seed = derive_seed(member.seed, 0, MEMBERS)
        return to_batch_ensemble(network, members=member.members, seed=seed)
    return network


def loss_for(member: NetworkSpec, material: PreparedData) -> nn.Module:
    """Build what one network of a spec minimises."""
    samples, classes = len(material.splits["train"]), material.classes
    _check_options(member.loss.kind, member.loss.options, {"samples", "classes"})
    return build_loss(member.loss.kind, samples=samples, classes=classes, **member.loss.options)


def _check_options(name: str, options: Mapping[str, Any], reserved: AbstractSet[str]) -> None:
    taken = sorted(reserved & options.keys())
    if taken:
        raise ChoiceError(f"{name}: {', '.join(taken)} follows from the data, and is no option")


def check_networks(spec: Spec, material: PreparedData) -> None:
    """Refuse a spec with a network or a loss that cannot be built; those that are alike, once.

    A network of the user's own is shown a few samples, too.

    Raises:
        ChoiceError, ExtraMissing, SourceError: as `build` does.
        ChoiceError: a network of the user's own answers with something else than logits.
    """
    tried = []
    for member in network_specs(spec):
        alike = (member.network, member.options, member.loss)
        if alike not in tried:
            network = build_network(spec, member, material)
            if is_user_code(member.network):
                _try(network, member, spec, material)
            loss_for(member, material)
            tried.append(alike)


def _try(network: nn.Module, member: NetworkSpec, spec: Spec, material: PreparedData) -> None:
    device = choose_device()
    samples = material.first(SAMPLES).batches("train", device=device)
    try_network(
        network,
        samples.take(torch.arange(len(samples))),
        name=member.network,
        classes=material.classes,
        bfloat16=recipe_for(spec, member, device).bfloat16,
    )
