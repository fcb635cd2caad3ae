"""Read the batches of a torch loader: what a network is given, and which samples they are."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from accord.errors import ChoiceError

Forward = Callable[[Any, Any], Any]  # (network, batch) -> logits
FindIds = Callable[[Any], Any]  # batch -> one id for each sample


class Identified(NamedTuple):
    """A sample, or a batch of them, together with its id; torch's collation keeps the type."""

    sample: Any
    id: Any


class WithIds(Dataset[Any]):
    """A map-style dataset whose items carry their ids."""

    def __init__(self, dataset: Any, ids: Any = None) -> None:
        self.dataset = dataset
        self.ids = ids

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, position: int) -> Any:
        item = self.dataset[position]
        id = position if self.ids is None else self.ids[position]  # noqa: A001
        if isinstance(item, Mapping):  # as the collators of transformers want it
            return {**item, "ids": id}
        return Identified(item, id)


def take_ids(batch: Any, find: FindIds | None, *, in_tuples: bool) -> tuple[Any, Any]:
    """Return a batch without its ids, and the ids or None.

    They are what `find` returns; or else those of `with_ids`, under the key "ids", or, where
    `in_tuples`, the third of (inputs, labels, ids).
    """
    if find is not None:
        return batch, find(batch)
    if isinstance(batch, Identified):
        return batch
    if isinstance(batch, Mapping) and "ids" in batch:
        return {key: value for key, value in batch.items() if key != "ids"}, batch["ids"]
    if in_tuples and isinstance(batch, tuple | list) and len(batch) == 3:
        return tuple(batch[:2]), batch[2]
    return batch, None


def call_network(network: nn.Module, batch: Any) -> Any:
    """Give a network its inputs: a batch without its labels.

    A batch is inputs; (inputs,) or (inputs, labels); or a mapping, handed on as keywords without
    "labels". Inputs are a tensor, a tuple or list of arguments, or a mapping of keywords.
    """
    if isinstance(batch, tuple | list):
        if len(batch) > 2 or not batch:
            raise ChoiceError(
                f"a batch must be inputs, (inputs, labels) or (inputs, labels, ids); got "
                f"{len(batch)} parts. Say what they are: forward=lambda network, batch: …"
            )
        batch = batch[0]
    if isinstance(batch, Mapping):
        return network(**{key: value for key, value in batch.items() if key != "labels"})
    if isinstance(batch, tuple | list):
        return network(*batch)
    return network(batch)


def logits_in(output: Any) -> Tensor:
    """Return the logits that a network's output is or holds."""
    if hasattr(output, "logits"):
        output = output.logits
    elif isinstance(output, Mapping) and "logits" in output:
        output = output["logits"]
    elif isinstance(output, tuple | list) and output:
        output = output[0]
    if not isinstance(output, Tensor):
        raise ChoiceError(
            f"a network must return logits, or something that holds them; got "
            f"{type(output).__name__}. Say where they are: forward=lambda network, batch: …"
        )
    return output


def move(batch: Any, device: torch.device) -> Any:
    """Return a batch, however nested, with its tensors on a device."""
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: move(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(move(part, device) for part in batch))
    if isinstance(batch, tuple | list):
        return type(batch)(move(part, device) for part in batch)
    return batch
