"""A trial of a network on a few samples: a wrong answer is told before training, not in it."""

from typing import Final

from torch import Tensor, nn

from accord.errors import ChoiceError
from accord.recorders.undisturbed import undisturbed
from accord.training.loop import precision
from accord.training.networks import BatchEnsemble

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
    with undisturbed(network), precision(batch.device, bfloat16):
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
