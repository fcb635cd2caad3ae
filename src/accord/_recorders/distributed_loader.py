"""Data loaders for distributed evaluation."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from accord.errors import ChoiceError


class PositionedBatch(NamedTuple):
    batch: Any
    positions: NDArray[np.int64]


def share_loader(
    loader: DataLoader[Any], *, rank: int, processes: int
) -> DataLoader[PositionedBatch]:
    """Create a loader for the samples of one process.

    Shares are of equal size, so that all processes take equally many batches; to even them out,
    the first samples are used twice. Samples must be accessible by position.
    """
    sampler = getattr(loader.batch_sampler, "sampler", None) or loader.sampler
    if isinstance(loader.dataset, IterableDataset) or loader.batch_sampler is None:
        raise ChoiceError(
            "several processes share the evaluation, so its loader needs a map-style dataset and "
            f"a batch size; got a {type(loader.dataset).__name__}"
        )
    whole = SequentialSampler, RandomSampler, DistributedSampler  # they cover the whole dataset
    if not isinstance(sampler, whole):
        raise ChoiceError(
            "several processes share the evaluation, and a "
            f"{type(sampler).__name__} cannot be shared. Pass torch.utils.data.Subset(…) instead"
        )
    return share_dataset(
        loader.dataset,
        loader.collate_fn,
        rank=rank,
        processes=processes,
        batch=loader.batch_size or 1,
        num_workers=loader.num_workers,
        pin_memory=loader.pin_memory,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
    )


def share_dataset(
    dataset: Any,
    collate: Callable[[list[Any]], Any],
    *,
    rank: int,
    processes: int,
    batch: int,
    **options: Any,
) -> DataLoader[PositionedBatch]:
    """Create a loader for the samples of one process from a map-style dataset."""
    share = math.ceil(len(dataset) / processes)
    positions = np.resize(np.arange(len(dataset)), share * processes)[rank::processes]
    return DataLoader(
        _Share(dataset, positions),
        batch_size=batch,
        collate_fn=_Collate(collate),
        **options,
    )


class _Share(Dataset[Any]):
    def __init__(self, dataset: Any, positions: NDArray[np.intp]) -> None:
        self.dataset = dataset
        self.positions = positions

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, index: int) -> tuple[int, Any]:
        position = int(self.positions[index])
        return position, self.dataset[position]


class _Collate:
    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self.collate = collate

    def __call__(self, items: list[tuple[int, Any]]) -> PositionedBatch:
        positions, samples = zip(*items, strict=True)
        return PositionedBatch(self.collate(list(samples)), np.array(positions, np.int64))
