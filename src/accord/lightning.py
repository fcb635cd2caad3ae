"""Record what a network predicts while Lightning trains it."""

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from accord.errors import ChoiceError, missing_extra

try:
    from torch.utils.data import DataLoader
except ImportError as error:
    raise missing_extra("accord.lightning", "torch", extra="lightning", cause=error) from error

from accord._recorders.callback_recorder import FrameworkCallback, Keeper, RecorderOptions
from accord._recorders.distributed import Processes, record_together
from accord._recorders.distributed_loader import deal_out
from accord._recorders.evaluate import Forward, Reading, Seen, evaluate

__all__ = ["RecordPredictions"]


if TYPE_CHECKING:  # what the class becomes when it is built
    from pytorch_lightning import Callback

    class _Base(FrameworkCallback, Callback): ...
else:
    _Base = FrameworkCallback


class RecordPredictions(_Base):
    """Record a LightningModule's predictions at the end of every epoch of training.

    The module is evaluated over a loader of its own, in the trainer's precision, and left as it
    was; validation is not needed, and its sanity check is not recorded. Processes that train
    together share the evaluation, and the first one writes. A training that goes on from a
    checkpoint records what is missing; rows that are there are not written again.

    Args:
        path: the record: a folder, or the URL of an object store; made if it is not there.
        loader: a DataLoader of the samples to predict, neither shuffled nor augmented; batches
            are read as by `accord.torch.record_epoch`.
        network: this network's number, from 0; each training needs one of its own.
        classes: how many classes there are; labels run from 0.
        samples: how many samples the loader gives, by default the length of its dataset.
        every: epochs between two rows: 1, 2 …, or a part of one, such as 0.1.
        forward: how to get logits, by default `module(inputs)`; for its `predict_step`:
            `lambda module, batch: module.predict_step(batch, 0)`.
        **facts: truth, given, ids, class_names, split, probabilities, about: as for
            `accord.Recorder`.

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
        **facts: Unpack[RecorderOptions],
    ) -> None:
        super().__init__()
        self._loader = loader
        self._forward = forward
        self._keeper = Keeper(
            path,
            network=network,
            samples=_length(loader) if samples is None else samples,
            classes=classes,
            every=every,
            facts=facts,
        )

    def close(self) -> None:
        """Let the network go, as the end of training does by itself."""
        self._keeper.close()

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Open the record; a run that only tries the code (fast_dev_run) is not recorded."""
        _check_once(trainer.callbacks)
        if not trainer.fast_dev_run:
            self._keeper.rows = Processes().agree(self._keeper.open)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Refuse to go on from a checkpoint that is ahead of the record."""
        _check_steps(trainer.num_training_batches, self._keeper.moments.every)
        self._keeper.check_whole(trainer.current_epoch)
        if trainer.global_step == 0 and trainer.is_global_zero:
            self._keeper.note_begin()

    def on_train_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,  # noqa: ARG002
        batch: Any,  # noqa: ARG002
        batch_idx: int,
    ) -> None:
        """Record if a row is due, at the last batch of an epoch at the latest.

        Validation comes between that and `on_train_epoch_end` and may write a checkpoint; no
        checkpoint may be ahead of the record.
        """
        steps = trainer.num_training_batches
        if steps != float("inf"):
            epoch = trainer.current_epoch
            self._after(
                trainer, pl_module, epoch + batch_idx / steps, epoch + (batch_idx + 1) / steps
            )

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Record an epoch whose number of batches was not known, or that skipped its rest."""
        # Not the last batch: training was stopped within the epoch.
        if self._keeper.moments.every >= 1 and trainer.is_last_batch:
            epoch = trainer.current_epoch
            self._after(trainer, pl_module, epoch, epoch + 1)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Close the record."""
        self.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: Any) -> None:  # noqa: ARG002
        """Close the record; what was recorded stays."""
        self.close()

    def _after(self, trainer: Any, module: Any, previous: float, progress: float) -> None:
        if trainer.fast_dev_run or not self._keeper.is_due(previous, progress):
            return
        processes = Processes()
        record_together(
            self._keeper,
            processes,
            module,
            lambda: self._see(trainer, module, processes),
            progress=progress,
            told={"step": trainer.global_step},
        )

    def _see(self, trainer: Any, module: Any, processes: Processes) -> Seen:
        loader: DataLoader[Any] = self._loader
        if processes.number > 1:
            loader = deal_out(loader, rank=processes.rank, processes=processes.number)
        precision = trainer.precision_plugin
        reading = Reading(
            self._keeper.classes,
            self._keeper.probabilities,
            forward=self._forward,
            prepare=precision.convert_input,
        )
        with precision.forward_context():
            return evaluate(module, loader, reading, device=module.device)


def _length(loader: DataLoader[Any]) -> int:
    dataset: Any = loader.dataset
    if not hasattr(dataset, "__len__"):
        raise ChoiceError(
            f"a {type(dataset).__name__} does not say how many samples it has: give samples=…"
        )
    return len(dataset)


def _check_steps(steps: float, every: float) -> None:
    if every < 1 and steps == float("inf"):
        raise ChoiceError(
            f"every={every:g} needs epochs of known length, and the training loader has none. "
            "Give the trainer limit_train_batches, or record whole epochs"
        )


def _check_once(callbacks: list[Any]) -> None:
    mine = [one._keeper for one in callbacks if isinstance(one, RecordPredictions)]  # noqa: SLF001
    claimed = Counter((os.fspath(keeper.path), keeper.network) for keeper in mine)
    for (path, network), times in claimed.items():
        if times > 1:
            raise ChoiceError(
                f"{path}: RecordPredictions for network {network} is attached {times} times; "
                "attach it once"
            )
