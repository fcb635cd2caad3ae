"""Integration with Hugging Face Transformers."""

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

from accord._recorders.callback_recorder import CallbackRecorder, FrameworkCallback, RecorderOptions
from accord._recorders.distributed import Processes, record_row, share_dataset
from accord._recorders.loader_predictions import (
    EvaluateOptions,
    Forward,
    LoaderPredictions,
    evaluate,
)
from accord._recorders.schedule import SLACK

__all__ = ["RecordPredictions"]


if TYPE_CHECKING:  # the base class at run time
    from transformers import TrainerCallback

    class _Base(FrameworkCallback, TrainerCallback): ...
else:
    _Base = FrameworkCallback

Collate = Callable[[list[Any]], Any]


class RecordPredictions(_Base):
    """Callback that records predictions after each epoch of a Trainer.

    Callbacks of the Trainer receive no predictions, so this one evaluates the network over a
    separate dataset, with the Trainer's collator and without changing its training state. In
    distributed training all processes share the evaluation and the first one writes. Training
    that resumes from a checkpoint records the rows that are missing, and no row is written twice.

    Args:
        path: the record: a folder, or the URL of an object store, created if missing.
        dataset: the samples to predict: a map-style dataset with a length, whose items have the
            form of the Trainer's training set.
        network: the number of the network, from 0. Each training needs a different one.
        classes: the number of classes, with labels from 0.
        every: epochs between two rows: 1, 2 …, or a fraction of an epoch, such as 0.1. The last
            epoch is always recorded, unless early stopping ends training and
            `load_best_model_at_end` replaces the weights before any callback runs.
        forward: returns logits, by default `network(**batch).logits` without the labels.
        batch: samples per batch, by default the Trainer's `per_device_eval_batch_size`.
        collate: makes a batch of items, by default the Trainer's collator.
        **options: truth, given, ids, class_names, split, probabilities, metadata, overwrite: as
            for `accord.Recorder`.

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
        **options: Unpack[RecorderOptions],
    ) -> None:
        super().__init__()
        if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            raise ChoiceError(
                "RecordPredictions needs a map-style dataset with a length; "
                f"got a {type(dataset).__name__}"
            )
        self._dataset = dataset
        self._forward = forward
        self._batch = batch
        self._collate = collate
        self._progress = 0.0
        self._state: Any = None
        self._recorder = CallbackRecorder(
            path,
            network=network,
            samples=len(dataset),
            classes=classes,
            every=every,
            options=options,
        )

    def close(self) -> None:
        """Close the record before the end of training."""
        self._recorder.close()
        self._state = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Open the record and check that it is complete when training resumes."""
        if self._state is state:
            raise ChoiceError(
                f"{self._recorder.path}: RecordPredictions for network {self._recorder.network} is "
                "attached twice; attach it once"
            )
        self._recorder.recorded = Processes().run_in_first(self._recorder.open)
        self._state = state
        self._progress = state.epoch or 0.0
        with self._recorder.closed_on_error():
            self._recorder.check_complete(self._progress)
        if state.global_step == 0 and state.is_world_process_zero:
            self._recorder.warn_if_recorded()

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Record a row if it is due, before the Trainer saves a checkpoint."""
        previous, self._progress = self._progress, float(state.epoch)
        last = state.global_step >= state.max_steps and self._at_epoch_end()
        self._record_if_due(previous, args, state, last=last, **given)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Record the last epoch if training stopped early, and close the record."""
        # The best weights, where wanted, have replaced those of the last epoch by now.
        if state.global_step and self._at_epoch_end() and not args.load_best_model_at_end:
            self._record_if_due(self._progress, args, state, last=True, **given)
        self.close()

    def _at_epoch_end(self) -> bool:
        return abs(self._progress - round(self._progress)) < SLACK

    def _record_if_due(
        self, previous: float, args: Any, state: Any, *, last: bool, **given: Any
    ) -> None:
        with self._recorder.closed_on_error():
            if self._recorder.is_due(previous, self._progress, last=last):
                self._record(args, state, **given)

    def _record(
        self, args: Any, state: Any, *, model: Any, train_dataloader: Any, **_: Any
    ) -> None:
        processes = Processes()
        record_row(
            self._recorder,
            processes,
            model,
            lambda: self._predict(args, model, train_dataloader, processes),
            progress=self._progress,
            metrics={"step": state.global_step},
        )

    def _predict(
        self, args: Any, network: nn.Module, training: Any, processes: Processes
    ) -> LoaderPredictions:
        collate = self._collate or training.collate_fn
        if args.remove_unused_columns:
            collate = _AcceptedColumns(collate, network)
        loader = share_dataset(
            self._dataset,
            collate,
            rank=processes.rank,
            processes=processes.number,
            batch=self._batch or args.per_device_eval_batch_size,
            num_workers=args.dataloader_num_workers,
        )
        options = EvaluateOptions(
            self._recorder.classes, self._recorder.probabilities, forward=self._forward
        )
        return evaluate(network, loader, options, device=args.device)


class _AcceptedColumns:
    """Dataset wrapper that removes columns the network does not accept."""

    def __init__(self, collate: Collate, network: Any) -> None:
        if hasattr(network, "get_base_model"):  # an adapter around the network
            network = network.get_base_model()
        # Mixed precision wraps `forward`; the original has the signature.
        forward = inspect.unwrap(getattr(network, "_original_forward", network.forward))
        self.names = {*inspect.signature(forward).parameters, "labels", "label", "label_ids"}
        self.collate = collate

    def __call__(self, items: list[Any]) -> Any:
        return self.collate([self._accepted(item) for item in items])

    def _accepted(self, item: Any) -> Any:
        if not isinstance(item, Mapping):
            return item
        return {name: value for name, value in item.items() if name in self.names}
