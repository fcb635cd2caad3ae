"""Evaluate a torch network over a loader: what it says of each sample, as the samples arrive."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from accord._recorders.distributed_loader import Dealt
from accord._recorders.eval_mode import undisturbed
from accord._recorders.record_order import as_ids
from accord.errors import ChoiceError, PredictionError, counted
from accord.store._validation import to_numpy

NOT_FINITE: Final = np.iinfo(np.int64).min  # in place of a label: the scores were not numbers


def keep_of(
    values: NDArray[Any], *, classes: int, probabilities: bool, are_logits: bool = True
) -> NDArray[Any]:
    """Return labels (sample,), or the scores (sample, class) where probabilities are kept.

    Args:
        values: scores (sample, class); for two classes also the score of class 1 alone,
            (sample,) or (sample, 1); or labels (sample,), as whole numbers.
        classes: how many classes there are.
        probabilities: the record keeps probabilities, so the scores are needed.
        are_logits: scores are logits; or else probabilities.

    Raises:
        PredictionError: none of these shapes.

    >>> keep_of(np.array([[0.5, 2.0], [0.1, np.nan]]), classes=2, probabilities=False)
    array([                   1, -9223372036854775808])
    >>> keep_of(np.array([-0.3, 0.2]), classes=2, probabilities=True)
    array([[ 0. , -0.3],
           [ 0. ,  0.2]])
    """
    if values.ndim == 1 and values.dtype.kind in "iu":
        return values.astype(np.int64)
    scores = _as_scores(values, classes, are_logits=are_logits)
    if probabilities:
        return scores
    finite = np.isfinite(scores).all(axis=1)
    return np.where(finite, scores.argmax(axis=1), NOT_FINITE)


def finite_rows(kept: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which samples' scores were numbers, from what `keep_of` returned.

    >>> finite_rows(np.array([1, NOT_FINITE]))
    array([ True, False])
    """
    if kept.ndim == 1:
        return np.asarray(kept != NOT_FINITE)
    return np.asarray(np.isfinite(kept).all(axis=1))


def _as_scores(values: NDArray[Any], classes: int, *, are_logits: bool) -> NDArray[Any]:
    if values.dtype.kind in "fiu":
        if values.ndim == 2 and values.shape[1] == classes:
            return values
        if classes == 2 and (values.ndim == 1 or values.shape[1:] == (1,)):
            column = values.reshape(-1)
            # A probability leaves 1 - p to class 0. A logit leaves 0: the softmax of (0, z) is
            # the sigmoid of z. Ties go to class 0.
            other = np.zeros_like(column) if are_logits else 1 - column
            return np.stack([other, column], axis=1)
    raise PredictionError(
        f"for {classes} classes a network must return logits of shape (batch, {classes}); "
        f"got {values.dtype} of shape {values.shape}. "
        "If it returns more than logits, say which they are with forward=…"
    )


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


SHUFFLING = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler, DistributedSampler)


@dataclass(frozen=True)
class Seen:
    """What a network said of the samples that one process saw, in order of arrival."""

    kept: NDArray[Any]  # labels (sample,) or logits (sample, class)
    ids: NDArray[Any] | None  # (sample,)
    by_position: bool = False  # the ids are positions, whatever the record calls its samples


@dataclass(frozen=True)
class Reading:
    """How the batches of a loader are read, and what is kept of the network's answer."""

    classes: int
    probabilities: bool = False
    forward: Forward | None = None
    ids: FindIds | None = None
    prepare: Callable[[Any], Any] | None = None  # before a batch goes to the device


def evaluate(
    network: nn.Module,
    loader: Iterable[Any],
    reading: Reading,
    *,
    device: torch.device | str | None = None,
) -> Seen:
    """Evaluate a network over a loader without disturbing its training.

    Args:
        network: answers in evaluation mode and is left as it was.
        loader: gives the batches; a DataLoader, or anything that can be iterated over.
        reading: how its batches are read.
        device: where inputs go, by default where the network's first parameter is.

    Raises:
        ChoiceError: the loader shuffles or drops samples, and its batches carry no ids.
        PredictionError: the network returns something else than logits or labels.
    """
    target = device_of(network) if device is None else torch.device(device)
    with undisturbed(network, loader):
        parts = list(_parts(network, loader, reading, target))
    if not parts:
        raise PredictionError("the evaluation loader gave no batch")
    kept = np.concatenate([part.kept for part in parts])
    if any((part.ids is None) != (parts[0].ids is None) for part in parts):
        raise PredictionError("some batches of the evaluation loader carry ids and others do not")
    known = [part.ids for part in parts if part.ids is not None]
    return Seen(kept, np.concatenate(known) if known else None, parts[0].by_position)


def device_of(network: nn.Module) -> torch.device:
    """Return where a network's first parameter is."""
    first = next(network.parameters(), None)
    return torch.device("cpu") if first is None else first.device


def _parts(
    network: nn.Module, loader: Iterable[Any], reading: Reading, device: torch.device
) -> Iterator[Seen]:
    forward = reading.forward or call_network
    for number, whole in enumerate(loader):
        batch, positions = whole if isinstance(whole, Dealt) else (whole, None)
        batch, ids = take_ids(batch, reading.ids, in_tuples=reading.forward is None)
        if number == 0 and ids is None and positions is None:
            check_order(loader)
        if reading.prepare is not None:
            batch = reading.prepare(batch)
        logits = logits_in(forward(network, move(batch, device)))
        kept = keep_of(
            to_numpy(logits), classes=reading.classes, probabilities=reading.probabilities
        )
        names = positions if ids is None else as_ids(ids)
        _check_length(len(kept), names)
        yield Seen(kept, names, by_position=ids is None)


def check_order(loader: object) -> None:
    """Refuse a loader without ids that is known not to give every sample once, in one order."""
    if not isinstance(loader, DataLoader):
        return
    sampler: Any = getattr(loader.batch_sampler, "sampler", None) or loader.sampler
    if isinstance(sampler, SHUFFLING) or not getattr(loader, "in_order", True):
        raise ChoiceError(
            f"the evaluation loader gives its samples in any order ({type(sampler).__name__}), and "
            "its batches do not say which samples they are. Evaluate with shuffle=False, or with "
            "ids: DataLoader(accord.torch.with_ids(dataset), …)"
        )
    size = loader.batch_size
    if loader.drop_last and size and hasattr(sampler, "__len__") and len(sampler) % size:
        raise ChoiceError(
            f"the evaluation loader drops the last {len(sampler) % size} of {len(sampler)} "
            "samples. Evaluate with drop_last=False"
        )


def _check_length(predicted: int, ids: NDArray[Any] | None) -> None:
    if ids is not None and len(ids) != predicted:
        raise PredictionError(
            f"a batch holds {counted(len(ids), 'id')}, and the network returned "
            f"{counted(predicted, 'prediction')}. "
            "If the third part of a batch is something else than ids: forward=…, ids=…"
        )
