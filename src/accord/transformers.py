"""Record what a network predicts while the Trainer of transformers trains it."""

import inspect
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from accord.errors import ChoiceError, missing_extra

try:
    from torch import nn
except ImportError as error:
    raise missing_extra(
        "accord.transformers", "torch", extra="transformers", cause=error
    ) from error

from accord._recorders.callback_recorder import FrameworkCallback, Keeper, RecorderOptions
from accord._recorders.distributed import Processes, record_together
from accord._recorders.distributed_loader import share_of
from accord._recorders.evaluate import Forward, Reading, Seen, evaluate

__all__ = ["RecordPredictions"]


if TYPE_CHECKING:  # what the class becomes when it is built
    from transformers import TrainerCallback

    class _Base(FrameworkCallback, TrainerCallback): ...
else:
    _Base = FrameworkCallback

Collate = Callable[[list[Any]], Any]


class RecordPredictions(_Base):
    """Record a network's predictions at the end of every epoch of a Trainer.

    A callback of the Trainer is shown no predictions, so this one evaluates the network over a
    dataset of its own, with the Trainer's collator, and leaves it as it was. Processes that
    train together share the evaluation, and the first one writes. A training that goes on from a
    checkpoint records what is missing; rows that are there are not written again.

    Args:
        path: the record: a folder, or the URL of an object store; made if it is not there.
        dataset: the samples to predict, of the same form as the Trainer's own: items by
            position, with a length. Single texts, pairs of texts, images: what the collator
            takes.
        network: this network's number, from 0; each training needs one of its own.
        classes: how many classes there are; labels run from 0.
        every: epochs between two rows: 1, 2 …, or a part of one, such as 0.1.
        forward: how to get logits, by default `network(**batch).logits` without the labels.
        batch: samples at a time, by default the Trainer's `per_device_eval_batch_size`.
        collate: what makes a batch of items, by default the Trainer's collator.
        **facts: truth, given, ids, class_names, split, probabilities, about: as for
            `accord.Recorder`.

    Raises:
        ExtraMissing: transformers is not installed.
    """

    modules: ClassVar = ("transformers",)
    base: ClassVar = "TrainerCallback"
    extra: ClassVar = "transformers"

    def __init__(
        self,
        path: str | os.PathLike[str],
        dataset: Any,
        *,
        network: int,
        classes: int,
        every: float = 1.0,
        forward: Forward | None = None,
        batch: int | None = None,
        collate: Collate | None = None,
        **facts: Unpack[RecorderOptions],
    ) -> None:
        super().__init__()
        _check_length(dataset)
        self._dataset = dataset
        self._forward = forward
        self._batch = batch
        self._collate = collate
        self._progress = 0.0
        self._state: Any = None
        self._keeper = Keeper(
            path,
            network=network,
            samples=len(dataset),
            classes=classes,
            every=every,
            facts=facts,
        )

    def close(self) -> None:
        """Let the network go, as the end of training does by itself."""
        self._keeper.close()
        self._state = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Open the record; refuse to go on from a checkpoint that is ahead of it."""
        if self._state is state:
            raise ChoiceError(
                f"{self._keeper.path}: RecordPredictions for network {self._keeper.network} is "
                "attached twice; attach it once"
            )
        self._keeper.rows = Processes().agree(self._keeper.open)
        self._state = state
        self._progress = state.epoch or 0.0
        with self._keeper.closed_on_error():
            self._keeper.check_whole(self._progress)
        if state.global_step == 0 and state.is_world_process_zero:
            self._keeper.note_begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:  # noqa: ARG002
        """Record if a row is due; the Trainer saves its checkpoint after that."""
        previous, self._progress = self._progress, float(state.epoch)
        with self._keeper.closed_on_error():
            if self._keeper.is_due(previous, self._progress):
                self._record(args, state, **given)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Close the record."""
        self.close()

    def _record(
        self, args: Any, state: Any, *, model: Any, train_dataloader: Any, **_: Any
    ) -> None:
        processes = Processes()
        record_together(
            self._keeper,
            processes,
            model,
            lambda: self._see(args, model, train_dataloader, processes),
            progress=self._progress,
            told={"step": state.global_step},
        )

    def _see(self, args: Any, network: nn.Module, training: Any, processes: Processes) -> Seen:
        collate = self._collate or training.collate_fn
        if args.remove_unused_columns:
            collate = _Accepted(collate, network)
        loader = share_of(
            self._dataset,
            collate,
            rank=processes.rank,
            processes=processes.number,
            batch=self._batch or args.per_device_eval_batch_size,
            num_workers=args.dataloader_num_workers,
        )
        reading = Reading(self._keeper.classes, self._keeper.probabilities, forward=self._forward)
        return evaluate(network, loader, reading, device=args.device)


class _Accepted:
    """Leave out of each item what the network does not take, as the Trainer does."""

    def __init__(self, collate: Collate, network: Any) -> None:
        if hasattr(network, "get_base_model"):  # an adapter around the network itself
            network = network.get_base_model()
        # Mixed precision wraps `forward`; the signature is that of the original.
        forward = inspect.unwrap(getattr(network, "_original_forward", network.forward))
        self.names = {*inspect.signature(forward).parameters, "labels", "label", "label_ids"}
        self.collate = collate

    def __call__(self, items: list[Any]) -> Any:
        return self.collate([self._accepted(item) for item in items])

    def _accepted(self, item: Any) -> Any:
        if not isinstance(item, Mapping):
            return item
        return {name: value for name, value in item.items() if name in self.names}


def _check_length(dataset: Any) -> None:
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise ChoiceError(
            "RecordPredictions needs a dataset with a length and items by position; "
            f"got a {type(dataset).__name__}"
        )
