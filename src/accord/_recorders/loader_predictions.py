"""Predict the samples of a data loader with a torch network."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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

from accord._recorders.eval_mode import eval_mode
from accord._recorders.network_outputs import labels_or_scores
from accord._recorders.record_order import as_ids
from accord.errors import ChoiceError, PredictionError, counted
from accord.store import to_numpy

Forward = Callable[[Any, Any], Any]  # (network, batch) -> logits
FindIds = Callable[[Any], Any]  # batch -> one id for each sample


class SampleWithId(NamedTuple):
    sample: Any
    id: Any


class PositionedBatch(NamedTuple):
    batch: Any
    positions: NDArray[np.int64]  # of its samples in the dataset


class WithIds(Dataset[Any]):
    """Dataset wrapper that adds an id to each item."""

    def __init__(self, dataset: Any, ids: Any = None) -> None:
        self.dataset = dataset
        self.ids = ids

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, position: int) -> Any:
        item = self.dataset[position]
        id = position if self.ids is None else self.ids[position]  # noqa: A001
        if isinstance(item, Mapping):  # the form that collators of transformers expect
            return {**item, "ids": id}
        return SampleWithId(item, id)


def split_ids(batch: Any, find: FindIds | None, *, in_tuples: bool) -> tuple[Any, Any]:
    """Split a batch into its data and ids.

    Ids are what `find` returns; otherwise those added by `with_ids`, those under the key "ids"
    or, if `in_tuples`, the third element of (inputs, labels, ids).
    """
    if find is not None:
        return batch, find(batch)
    if isinstance(batch, SampleWithId):
        return batch
    if isinstance(batch, Mapping) and "ids" in batch:
        return {key: value for key, value in batch.items() if key != "ids"}, batch["ids"]
    if in_tuples and isinstance(batch, tuple | list) and len(batch) == 3:
        return tuple(batch[:2]), batch[2]
    return batch, None


def call_network(network: nn.Module, batch: Any) -> Any:
    """Compute the output of a network for a batch.

    A batch is inputs; (inputs,) or (inputs, labels); or a mapping, passed as keywords without
    "labels". Inputs are a tensor, a tuple or list of arguments, or a mapping of keywords.
    """
    if isinstance(batch, tuple | list):
        if len(batch) > 2 or not batch:
            raise ChoiceError(
                f"a batch must be inputs, (inputs, labels) or (inputs, labels, ids); got "
                f"{len(batch)} parts. Select the inputs: forward=lambda network, batch: …"
            )
        batch = batch[0]
    if isinstance(batch, Mapping):
        return network(**{key: value for key, value in batch.items() if key != "labels"})
    if isinstance(batch, tuple | list):
        return network(*batch)
    return network(batch)


def extract_logits(output: Any) -> Tensor:
    if hasattr(output, "logits"):
        output = output.logits
    elif isinstance(output, Mapping) and "logits" in output:
        output = output["logits"]
    elif isinstance(output, tuple | list) and output:
        output = output[0]
    if not isinstance(output, Tensor):
        raise ChoiceError(
            f"a network must return logits, or an output that contains them; got "
            f"{type(output).__name__}. Select them: forward=lambda network, batch: …"
        )
    return output


def to_device(batch: Any, device: torch.device) -> Any:
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(part, device) for part in batch))
    if isinstance(batch, tuple | list):
        return type(batch)(to_device(part, device) for part in batch)
    return batch


@dataclass(frozen=True)
class LoaderPredictions:
    kept: NDArray[Any]  # labels (sample,) or logits (sample, class)
    ids: NDArray[Any] | None  # (sample,)
    by_position: bool = False  # the ids are positions in the dataset, not the record's ids


@dataclass(frozen=True)
class EvaluateOptions:
    classes: int
    probabilities: bool = False
    forward: Forward | None = None
    ids: FindIds | None = None
    prepare: Callable[[Any], Any] | None = None  # applied before a batch moves to the device


def evaluate(
    network: nn.Module,
    loader: Iterable[Any],
    options: EvaluateOptions,
    *,
    device: torch.device | str | None = None,
) -> LoaderPredictions:
    """Predict all samples of a loader.

    Inputs go to `device`, by default that of the network's first parameter.
    """
    if device is None:
        first = next(network.parameters(), None)
        device = "cpu" if first is None else first.device
    with eval_mode(network, loader):
        parts = list(_parts(network, loader, options, torch.device(device)))
    if not parts:
        raise PredictionError("the evaluation loader gave no batch")
    kept = np.concatenate([part.kept for part in parts])
    if any((part.ids is None) != (parts[0].ids is None) for part in parts):
        raise PredictionError("some batches of the evaluation loader carry ids and others do not")
    known = [part.ids for part in parts if part.ids is not None]
    return LoaderPredictions(kept, np.concatenate(known) if known else None, parts[0].by_position)


def _parts(
    network: nn.Module, loader: Iterable[Any], options: EvaluateOptions, device: torch.device
) -> Iterator[LoaderPredictions]:
    forward = options.forward or call_network
    for number, item in enumerate(loader):
        batch, positions = item if isinstance(item, PositionedBatch) else (item, None)
        batch, ids = split_ids(batch, options.ids, in_tuples=options.forward is None)
        if number == 0 and ids is None and positions is None:
            check_order(loader)
        if options.prepare is not None:
            batch = options.prepare(batch)
        logits = extract_logits(forward(network, to_device(batch, device)))
        kept = labels_or_scores(
            to_numpy(logits), classes=options.classes, probabilities=options.probabilities
        )
        names = positions if ids is None else as_ids(ids)
        if names is not None and len(names) != len(kept):
            raise PredictionError(
                f"a batch holds {counted(len(names), 'id')}, and the network returned "
                f"{counted(len(kept), 'prediction')}. If the third element of a batch is not the "
                "ids, use forward=… and ids=…"
            )
        yield LoaderPredictions(kept, names, by_position=ids is None)


def check_order(loader: object) -> None:
    """Check that a loader without ids returns samples in order."""
    if not isinstance(loader, DataLoader):
        return
    sampler: Any = getattr(loader.batch_sampler, "sampler", None) or loader.sampler
    shuffling = RandomSampler, SubsetRandomSampler, WeightedRandomSampler, DistributedSampler
    if isinstance(sampler, shuffling) or not getattr(loader, "in_order", True):
        raise ChoiceError(
            f"the evaluation loader gives its samples in any order ({type(sampler).__name__}), and "
            "its batches carry no ids. Evaluate with shuffle=False, or with ids: "
            "DataLoader(accord.torch.with_ids(dataset), …)"
        )
    size = loader.batch_size
    if loader.drop_last and size and hasattr(sampler, "__len__") and len(sampler) % size:
        raise ChoiceError(
            f"the evaluation loader drops the last {len(sampler) % size} of {len(sampler)} "
            "samples. Evaluate with drop_last=False"
        )
