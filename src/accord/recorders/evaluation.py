"""Evaluate a torch network over a loader: what it says of each sample, as the samples arrive."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import (
    DataLoader,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from accord.errors import ChoiceError, PredictionError, counted
from accord.recorders.assembly import as_ids
from accord.recorders.batches import (
    FindIds,
    Forward,
    call_network,
    logits_in,
    move,
    take_ids,
)
from accord.recorders.dealing import Dealt
from accord.recorders.scores import keep_of
from accord.recorders.undisturbed import undisturbed
from accord.store.intake import to_numpy

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
