"""Bring what several processes saw to the one that writes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed, nn

from accord._recorders.callback_recorder import Keeper
from accord._recorders.evaluate import Seen
from accord._recorders.record_order import Order, assemble
from accord.errors import AccordError, PredictionError

Answer = TypeVar("Answer")


class Processes:
    """The processes of a distributed training, or, where there is only one, that one."""

    def __init__(self, *, together: bool = True) -> None:
        there = together and distributed.is_available() and distributed.is_initialized()
        self.number = distributed.get_world_size() if there else 1
        self.rank = distributed.get_rank() if there else 0

    def agree(self, act: Callable[[], Answer]) -> Answer:
        """Act in the first process alone; all get its answer, or all raise its error."""
        if self.number == 1:
            return act()
        outcome: list[Any] = [None]
        if self.rank == 0:
            try:
                outcome = [act()]
            except Exception as error:
                distributed.broadcast_object_list([_portable(error)], src=0)
                raise
        distributed.broadcast_object_list(outcome, src=0)
        if isinstance(outcome[0], AccordError):
            raise outcome[0]
        answer: Answer = outcome[0]
        return answer

    def gather(self, network: nn.Module, see: Callable[[], Seen]) -> list[Seen]:
        """See in every process; the first gets what all saw, by rank, and the others nothing.

        All see the first process's network. A process that fails tells the others, so that none
        waits for it.
        """
        if self.number == 1:
            return [see()]
        with self._same_buffers(network):
            return self._gather(see)

    @contextmanager
    def _same_buffers(self, network: nn.Module) -> Iterator[None]:
        # Parameters are the same everywhere, but each process keeps batch statistics of its own.
        buffers = list(network.buffers())
        own = [buffer.clone() for buffer in buffers]
        first = self.agree(lambda: [buffer.cpu() for buffer in buffers])
        try:
            _copy(first, buffers)
            yield
        finally:
            _copy(own, buffers)

    def _gather(self, see: Callable[[], Seen]) -> list[Seen]:
        failure: Exception | None = None
        mine: Seen | AccordError
        try:
            mine = see()
        except Exception as error:  # noqa: BLE001 -- raised below, once the others know
            failure, mine = error, _portable(error)
        everyone: list[Any] = [None] * self.number
        distributed.gather_object(mine, everyone if self.rank == 0 else None, dst=0)
        try:
            self.agree(lambda: _check_all_saw(everyone))
        except AccordError:
            if failure is not None:
                raise failure from None
            raise
        return everyone if self.rank == 0 else []


def record_together(
    keeper: Keeper,
    processes: Processes,
    network: nn.Module,
    see: Callable[[], Seen],
    *,
    progress: float,
    told: Mapping[str, Any],
) -> None:
    """See in every process, write in the first, and count the row in all."""
    everyone = processes.gather(network, see)

    def append() -> int:
        row = assemble_seen(everyone, keeper.order)
        return keeper.append(row, progress=progress, told=told)

    keeper.rows = processes.agree(append)


def assemble_seen(parts: list[Seen], order: Order) -> NDArray[Any]:
    """Put what one process or several saw into the record's order."""
    if len(parts) > 1 and any(part.ids is None for part in parts):
        raise PredictionError(
            "several processes evaluated, and their batches do not say which samples they are. "
            "Give them ids: DataLoader(accord.torch.with_ids(dataset), …)"
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


def _check_all_saw(everyone: list[Any]) -> None:
    for rank, one in enumerate(everyone):
        if isinstance(one, AccordError):
            raise PredictionError(f"process {rank} of {len(everyone)}: {one}")


def _portable(error: Exception) -> AccordError:
    """Return an error that can be sent to another process."""
    if isinstance(error, AccordError):
        return error
    return AccordError(f"it failed with {type(error).__name__}: {error}")
