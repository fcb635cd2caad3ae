"""Integration with PyTorch."""

from collections.abc import Iterable, Sequence
from typing import Any

from accord.errors import ChoiceError, missing_extra

try:
    import torch
except ImportError as error:
    raise missing_extra("accord.torch", "torch", extra="train", cause=error) from error

from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Dataset
from torch.utils.data.distributed import DistributedSampler

from accord._recorder import Recorder
from accord._recorders.callback_recorder import write_row
from accord._recorders.distributed import Processes, assemble_predictions
from accord._recorders.loader_predictions import (
    EvaluateOptions,
    FindIds,
    Forward,
    WithIds,
    evaluate,
)
from accord._recorders.record_order import Order

__all__ = ["record_epoch", "with_ids"]


def record_epoch(
    recorder: Recorder | None,
    network: nn.Module,
    loader: Iterable[Any],
    *,
    device: torch.device | str | None = None,
    ids: FindIds | None = None,
    forward: Forward | None = None,
    gather: bool | None = None,
    epoch: int | None = None,
    progress: float | None = None,
    **metrics: Any,
) -> None:
    """Record the predictions of a network over a loader as one epoch.

    Training state is unchanged: the modes of all modules, gradients, autocast and the random
    states of Python, numpy and torch are restored.

    A batch may be inputs, (inputs, labels), (inputs, labels, ids), or a mapping that is passed
    as keywords without "labels" and "ids". With ids, samples may come in any order and more
    than once, of which the first counts. Without ids, they must come in the record's order.

    Args:
        recorder: an open `accord.Recorder`; None in all but the first of several processes.
        network: returns logits (batch, class), or an object with `logits`; for two classes also
            one logit for class 1. It may also return labels (batch,).
        loader: a DataLoader, or any iterable of batches.
        device: where inputs go, by default the network's device.
        ids: returns the ids of a batch, such as `lambda batch: batch["key"]`.
        forward: returns logits for any other kind of batch: `lambda network, batch: …`. Tuples
            are then passed whole, and ids come only from `ids`, "ids" or `with_ids`.
        gather: every process of distributed training calls this function with its share of the
            data, and the first one writes; by default if the loader has a DistributedSampler.
        epoch: the expected index of this epoch. Recording it twice then raises an error.
        progress: the true epoch, such as 0.1, by default one per row.
        **metrics: stored with the epoch: loss, learning rate …

    Raises:
        ChoiceError: the loader shuffles or drops samples, and its batches carry no ids; or
            network or loader has the wrong type.
        PredictionError: samples are missing or unknown, or the network returned NaN; nothing
            was recorded.

    >>> import tempfile
    >>> from torch.utils.data import DataLoader
    >>> inputs = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    >>> network, loader = nn.Identity(), DataLoader(inputs, batch_size=2)
    >>> with Recorder(tempfile.mkdtemp(), network=0, samples=3, classes=2) as recorder:
    ...     record_epoch(recorder, network, loader, loss=0.31)
    ...     recorder.epochs
    1
    """
    _check_kinds(network, loader)
    if gather is None:
        gather = isinstance(getattr(loader, "sampler", None), DistributedSampler)
    processes = Processes(together=gather)
    classes, probabilities = processes.run_in_first(lambda: _sizes_of(recorder))
    options = EvaluateOptions(classes, probabilities, forward=forward, ids=ids)
    # Unwrapped: DistributedDataParallel would wait for all processes at every batch.
    own = network.module if isinstance(network, DistributedDataParallel) else network
    gathered = processes.gather(own, lambda: evaluate(own, loader, options, device=device))

    def write() -> None:
        present = _check_present(recorder)
        order = Order(present.sample_info.samples, present.sample_info.ids)
        row = assemble_predictions(gathered, order)
        write_row(present, row, order=order, epoch=epoch, progress=progress, metrics=metrics)

    processes.run_in_first(write)


def with_ids(dataset: Dataset[Any], ids: Sequence[Any] | None = None) -> Dataset[Any]:
    """Wrap a dataset to add an id to each item.

    Its loader may shuffle and may be shared among processes, since each batch holds the ids of
    its samples. A mapping gets the key "ids"; any other item becomes (sample, id).

    Args:
        dataset: a map-style dataset.
        ids: one id per item, for a record whose samples have ids, by default the positions.

    >>> from torch.utils.data import DataLoader
    >>> loader = DataLoader(with_ids([0.1, 0.2, 0.3]), batch_size=3)
    >>> next(iter(loader)).id
    tensor([0, 1, 2])
    """
    return WithIds(dataset, ids)


def _check_kinds(network: object, loader: object) -> None:
    swapped = "Are they swapped? " if isinstance(loader, nn.Module) else ""
    iterable = hasattr(loader, "__iter__") or hasattr(loader, "__getitem__")
    if swapped or not isinstance(network, nn.Module) or not iterable:
        raise ChoiceError(
            "record_epoch needs a torch.nn.Module and an iterable of batches; got a "
            f"{type(network).__name__} and a {type(loader).__name__}. "
            f"{swapped}The order is record_epoch(recorder, network, loader)"
        )


def _sizes_of(recorder: Recorder | None) -> tuple[int, bool]:
    present = _check_present(recorder)
    present.check_open()
    return present.sample_info.classes, present.keeps_probabilities


def _check_present(recorder: Recorder | None) -> Recorder:
    if recorder is None:
        raise ChoiceError(
            "record_epoch needs an open accord.Recorder; None is allowed only if another process "
            "records, with a DistributedSampler or gather=True"
        )
    return recorder
