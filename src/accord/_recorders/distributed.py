"""Share an evaluation among the processes of distributed training, and write in the first."""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from accord._recorders.callback_recorder import CallbackRecorder, Recorded
from accord._recorders.loader_predictions import LoaderPredictions, PositionedBatch
from accord._recorders.record_order import Order, assemble
from accord.errors import AccordError, ChoiceError, PredictionError

Result = TypeVar("Result")


class Processes:
    """Process group of distributed training."""

    def __init__(self, *, together: bool = True) -> None:
        present = together and distributed.is_available() and distributed.is_initialized()
        self.number = distributed.get_world_size() if present else 1
        self.rank = distributed.get_rank() if present else 0

    def run_in_first(self, function: Callable[[], Result]) -> Result:
        """Call a function in the first process and broadcast its result."""
        if self.number == 1:
            return function()
        outcome: list[Any] = [None]
        if self.rank == 0:
            try:
                outcome = [function()]
            except Exception as error:
                distributed.broadcast_object_list([_portable(error)], src=0)
                raise
        distributed.broadcast_object_list(outcome, src=0)
        if isinstance(outcome[0], AccordError):
            raise outcome[0]
        result: Result = outcome[0]
        return result

    def gather(
        self, network: nn.Module, predict: Callable[[], LoaderPredictions]
    ) -> list[LoaderPredictions]:
        """Predict in all processes and gather predictions in the first.

        All processes use the first one's buffers. If one fails, the others raise too, so that
        none of them waits forever.
        """
        if self.number == 1:
            return [predict()]
        # Parameters are equal in all processes, but each one keeps its own batch statistics.
        buffers = list(network.buffers())
        own = [buffer.clone() for buffer in buffers]
        first = self.run_in_first(lambda: [buffer.cpu() for buffer in buffers])
        try:
            _copy(first, buffers)
            return self._gather(predict)
        finally:
            _copy(own, buffers)

    def _gather(self, predict: Callable[[], LoaderPredictions]) -> list[LoaderPredictions]:
        failure: Exception | None = None
        mine: LoaderPredictions | AccordError
        try:
            mine = predict()
        except Exception as error:  # noqa: BLE001 -- raised below, once the others know
            failure, mine = error, _portable(error)
        gathered: list[Any] = [None] * self.number
        distributed.gather_object(mine, gathered if self.rank == 0 else None, dst=0)
        try:
            self.run_in_first(lambda: _check_succeeded(gathered))
        except AccordError:
            if failure is not None:
                raise failure from None
            raise
        return gathered if self.rank == 0 else []


def record_row(
    recorder: CallbackRecorder,
    processes: Processes,
    network: nn.Module,
    predict: Callable[[], LoaderPredictions],
    *,
    progress: float,
    metrics: Mapping[str, Any],
) -> None:
    gathered = processes.gather(network, predict)

    def append() -> Recorded:
        row = assemble_predictions(gathered, recorder.order)
        return recorder.append(row, progress=progress, metrics=metrics)

    recorder.recorded = processes.run_in_first(append)


def assemble_predictions(parts: list[LoaderPredictions], order: Order) -> NDArray[Any]:
    if len(parts) > 1 and any(part.ids is None for part in parts):
        raise PredictionError(
            "several processes evaluated, and their batches carry no ids. "
            "Add them: DataLoader(accord.torch.with_ids(dataset), …)"
        )
    kept = np.concatenate([part.kept for part in parts])
    if parts[0].ids is None:
        return assemble(kept, None, order)
    ids = np.concatenate([part.ids for part in parts if part.ids is not None])
    return assemble(kept, ids, Order(order.samples) if parts[0].by_position else order)


def _copy(values: list[Tensor], buffers: list[Tensor]) -> None:
    with torch.no_grad():
        for value, buffer in zip(values, buffers, strict=True):
            buffer.copy_(value)


def _check_succeeded(gathered: list[Any]) -> None:
    for rank, one in enumerate(gathered):
        if isinstance(one, AccordError):
            raise PredictionError(f"process {rank} of {len(gathered)}: {one}")


def _portable(error: Exception) -> AccordError:
    # Other exceptions may not survive pickling on their way to another process.
    if isinstance(error, AccordError):
        return error
    return AccordError(f"it failed with {type(error).__name__}: {error}")


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
        _Share(dataset, positions), batch_size=batch, collate_fn=_Collate(collate), **options
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
