"""Record what a torch network predicts over a loader."""

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
from accord._recorders.distributed import Processes, assemble_seen
from accord._recorders.evaluate import FindIds, Forward, Reading, WithIds, evaluate
from accord._recorders.record_order import Order


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
    **told: Any,
) -> None:
    """Evaluate a network over a loader and append what it predicts as one row.

    Training is not disturbed: the modes of all modules, gradients, autocast and the random
    states of Python, numpy and torch are afterwards as they were before.

    A batch may be inputs, (inputs, labels), (inputs, labels, ids), or a mapping that is handed
    on as keywords without "labels" and "ids". With ids, samples may come in any order and more
    than once, of which the first counts. Without, they must come in the record's order.

    Args:
        recorder: an open `accord.Recorder`; None in all but the first of several processes.
        network: returns logits (batch, class), or an object with `logits`; for two classes also
            one logit for class 1. Labels (batch,) will do, too.
        loader: a DataLoader, or anything that gives batches.
        device: where inputs go, by default where the network is.
        ids: how to find a batch's ids, such as `lambda batch: batch["key"]`.
        forward: how to get logits for any other batch: `lambda network, batch: …`. A tuple is
            then handed on whole, and ids are found by `ids`, "ids" or `with_ids` alone.
        gather: every process of a distributed training calls this with its share of the data,
            and the first one writes; by default when the loader has a DistributedSampler.
        epoch: the position you believe this row has; a row written twice is then refused.
        progress: the true epoch, such as 0.1; by default one per row.
        **told: facts to keep with the row: loss, learning rate …

    Raises:
        ChoiceError: the loader shuffles or drops samples, and its batches carry no ids; or
            network and loader are something else.
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
    processes = Processes(together=_is_dealt_out(loader) if gather is None else gather)
    classes, probabilities = processes.agree(lambda: _sizes_of(recorder))
    reading = Reading(classes, probabilities, forward=forward, ids=ids)
    # Unwrapped: the wrapper would wait for all processes at every batch.
    own = network.module if isinstance(network, DistributedDataParallel) else network
    everyone = processes.gather(own, lambda: evaluate(own, loader, reading, device=device))

    def write() -> None:
        there = _check_there(recorder)
        order = Order(there.sample_info.samples, there.sample_info.ids)
        write_row(
            there,
            assemble_seen(everyone, order),
            order=order,
            where=f"{there.path}: network {there.network}",
            epoch=epoch,
            progress=progress,
            told=told,
        )

    processes.agree(write)


def with_ids(dataset: Dataset[Any], ids: Sequence[Any] | None = None) -> Dataset[Any]:
    """Wrap a map-style dataset so that each item carries its position, or its id.

    A loader over it may shuffle and may be dealt out to several processes: what arrives says
    which samples it is. A mapping gets the key "ids"; anything else becomes (sample, id).

    Args:
        dataset: anything with a length and items by position.
        ids: one for each item, for a record whose samples have ids; by default the positions.

    >>> from torch.utils.data import DataLoader
    >>> loader = DataLoader(with_ids([0.1, 0.2, 0.3]), batch_size=3)
    >>> next(iter(loader)).id
    tensor([0, 1, 2])
    """
    return WithIds(dataset, ids)


def _check_kinds(network: object, loader: object) -> None:
    swapped = "Are they swapped? " if isinstance(loader, nn.Module) else ""
    gives = hasattr(loader, "__iter__") or hasattr(loader, "__getitem__")
    if swapped or not isinstance(network, nn.Module) or not gives:
        raise ChoiceError(
            "record_epoch needs a torch.nn.Module and something that gives batches; got a "
            f"{type(network).__name__} and a {type(loader).__name__}. "
            f"{swapped}The order is record_epoch(recorder, network, loader)"
        )


def _is_dealt_out(loader: object) -> bool:
    return isinstance(getattr(loader, "sampler", None), DistributedSampler)


def _sizes_of(recorder: Recorder | None) -> tuple[int, bool]:
    there = _check_there(recorder)
    there.check_open()
    return there.sample_info.classes, there.keeps_probabilities


def _check_there(recorder: Recorder | None) -> Recorder:
    if recorder is None:
        raise ChoiceError(
            "record_epoch needs an open accord.Recorder; None will do only where another process "
            "records, that is with a DistributedSampler or gather=True"
        )
    return recorder
