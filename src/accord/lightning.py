"""Integration with Lightning."""

import logging
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from accord.errors import ChoiceError, missing_extra

try:
    from torch.utils.data import DataLoader
except ImportError as error:
    raise missing_extra("accord.lightning", "torch", extra="lightning", cause=error) from error

from accord._recorders.callback_recorder import CallbackRecorder, FrameworkCallback, RecorderOptions
from accord._recorders.distributed import Processes, record_row, share_loader
from accord._recorders.loader_predictions import (
    EvaluateOptions,
    Forward,
    LoaderPredictions,
    evaluate,
)

__all__ = ["RecordPredictions"]

_logger = logging.getLogger(__name__)

if TYPE_CHECKING:  # the base class at run time
    from pytorch_lightning import Callback

    class _Base(FrameworkCallback, Callback): ...
else:
    _Base = FrameworkCallback


class RecordPredictions(_Base):
    """Callback that records the predictions of a LightningModule after each epoch.

    The module is evaluated over a separate loader, in the trainer's precision and without
    changing its training state; no validation loop is required. In distributed training all
    processes share the evaluation and the first one writes. Training that resumes from a
    checkpoint records the rows that are missing, and no row is written twice.

    Args:
        path: the record: a folder, or the URL of an object store, created if missing.
        loader: a DataLoader of the samples to predict, neither shuffled nor augmented; batches
            are read as in `accord.torch.record_epoch`.
        network: the number of the network, from 0. Each training needs a different one.
        classes: the number of classes, with labels from 0.
        samples: the number of samples, by default the length of the loader's dataset.
        every: epochs between two rows: 1, 2 …, or a fraction of an epoch, such as 0.1. The last
            epoch is always recorded.
        forward: returns logits, by default `module(inputs)`; to use `predict_step`:
            `lambda module, batch: module.predict_step(batch, 0)`.
        **options: truth, given, ids, class_names, split, probabilities, metadata, overwrite: as
            for `accord.Recorder`.

    Raises:
        ExtraMissing: Lightning is not installed.
    """

    modules: ClassVar = ("lightning.pytorch", "pytorch_lightning")
    base: ClassVar = "Callback"
    extra: ClassVar = "lightning"

    def __init__(
        self,
        path: str | os.PathLike[str],
        loader: DataLoader[Any],
        *,
        network: int,
        classes: int,
        samples: int | None = None,
        every: float = 1.0,
        forward: Forward | None = None,
        **options: Unpack[RecorderOptions],
    ) -> None:
        super().__init__()
        dataset: Any = loader.dataset
        if samples is None and not hasattr(dataset, "__len__"):
            raise ChoiceError(
                f"a {type(dataset).__name__} has no length: give the number of samples, samples=…"
            )
        self._loader = loader
        self._forward = forward
        self._complete: int | None = None  # epochs trained, while no step of the next was taken
        self._recorder = CallbackRecorder(
            path,
            network=network,
            samples=len(dataset) if samples is None else samples,
            classes=classes,
            every=every,
            options=options,
        )

    def close(self) -> None:
        """Close the record before the end of training."""
        self._recorder.close()

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Open the record."""
        _check_once(trainer.callbacks)
        if trainer.fast_dev_run:
            _logger.warning("%s: a fast_dev_run is not recorded", self._recorder.path)
        else:
            self._recorder.recorded = Processes().run_in_first(self._recorder.open)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Check that the record is complete when training resumes."""
        every = self._recorder.schedule.every
        if every < 1 and trainer.num_training_batches == float("inf"):
            raise ChoiceError(
                f"every={every:g} needs epochs of known length, and the training loader has none. "
                "Give the trainer limit_train_batches, or record whole epochs"
            )
        self._recorder.check_complete(trainer.current_epoch)
        self._complete = None
        if trainer.global_step == 0 and trainer.is_global_zero:
            self._recorder.warn_if_recorded()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Record if a row is due.

        The last batch of an epoch comes before `on_train_epoch_end`, and validation, which may
        write a checkpoint, between the two: no checkpoint may be ahead of the record.
        """
        self._complete = None
        steps = trainer.num_training_batches
        if steps != float("inf"):
            epoch, step = trainer.current_epoch, batch_idx + 1
            last = step == steps and epoch + 1 == trainer.max_epochs
            self._after(
                trainer, pl_module, epoch + batch_idx / steps, epoch + step / steps, last=last
            )

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Record an epoch of unknown or reduced length."""
        # Without the last batch, training was stopped within the epoch.
        if self._recorder.schedule.every >= 1 and trainer.is_last_batch:
            epoch = trainer.current_epoch
            self._complete = epoch + 1
            self._after(trainer, pl_module, epoch, epoch + 1, last=epoch + 1 == trainer.max_epochs)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Record the last epoch if training stopped early."""
        if self._complete is not None:
            self._after(trainer, pl_module, self._complete, self._complete, last=True)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Close the record."""
        self.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: Any) -> None:
        """Close the record after an exception."""
        self._recorder.close(quiet=True)

    def _after(
        self, trainer: Any, module: Any, previous: float, progress: float, *, last: bool
    ) -> None:
        if trainer.fast_dev_run or not self._recorder.is_due(previous, progress, last=last):
            return
        processes = Processes()
        record_row(
            self._recorder,
            processes,
            module,
            lambda: self._predict(trainer, module, processes),
            progress=progress,
            metrics={"step": trainer.global_step},
        )

    def _predict(self, trainer: Any, module: Any, processes: Processes) -> LoaderPredictions:
        loader: DataLoader[Any] = self._loader
        if processes.number > 1:
            loader = share_loader(loader, rank=processes.rank, processes=processes.number)
        precision = trainer.precision_plugin
        options = EvaluateOptions(
            self._recorder.classes,
            self._recorder.probabilities,
            forward=self._forward,
            prepare=precision.convert_input,
        )
        with precision.forward_context():
            return evaluate(module, loader, options, device=module.device)


def _check_once(callbacks: list[Any]) -> None:
    recorders = [one._recorder for one in callbacks if isinstance(one, RecordPredictions)]  # noqa: SLF001
    attached = Counter((os.fspath(recorder.path), recorder.network) for recorder in recorders)
    for (path, network), times in attached.items():
        if times > 1:
            raise ChoiceError(
                f"{path}: RecordPredictions for network {network} is attached {times} times; "
                "attach it once"
            )
