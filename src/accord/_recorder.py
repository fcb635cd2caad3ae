"""Record predictions during training."""

import logging
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from accord.errors import PredictionError, counted
from accord.store import (
    SampleInfo,
    Writer,
    make_sample_info,
    open_storage,
    row_from_logits,
    row_from_predictions,
)
from accord.store._storage import busy

_logger = logging.getLogger(__name__)
_OPEN: weakref.WeakValueDictionary[str, Writer] = weakref.WeakValueDictionary()  # of this process


class Recorder:
    """Record the predictions of one network, epoch by epoch.

    Several recorders may write to one record at the same time, from different processes or
    machines, each with a different `network` number. When `record` returns, the epoch is on
    disk. Opening the same network again resumes after its last epoch.

    Args:
        path: a folder, or the URL of an object store, created if missing.
        network: the network's number, from 0.
        samples: the number of samples predicted at every epoch, always in the same order.
        classes: the number of classes, with labels from 0.
        truth: the true class of each sample, if known; used for scores, never for predictions.
        given: the class that the data assign to each sample, right or wrong.
        ids: a unique number or name for each sample.
        class_names: a unique name for each class.
        split: the part of the data that the samples come from, such as "test" or "train".
        probabilities: store probabilities (in half precision) beside the labels.
        metadata: stored with the network as JSON: its seed, its settings.
        overwrite: remove the network's earlier epochs first, and the whole record if its samples,
            classes or labels differ. Without it, other settings than the recorded ones are refused.

    >>> import tempfile
    >>> with Recorder(tempfile.mkdtemp(), network=0, samples=3, classes=2) as recorder:
    ...     for epoch in range(recorder.epochs, 2):
    ...         recorder.record([0, 1, 1], loss=0.31)
    ...     recorder.epochs
    2
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        network: int,
        samples: int,
        classes: int,
        truth: object = None,
        given: object = None,
        ids: object = None,
        class_names: Sequence[str] | None = None,
        split: str = "test",
        probabilities: bool = False,
        metadata: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        sample_info = make_sample_info(
            samples=samples,
            classes=classes,
            split=split,
            truth=truth,
            given=given,
            ids=ids,
            class_names=class_names,
        )
        key = f"{open_storage(path).name}: network {network}"
        other = _OPEN.get(key)
        if other is not None and other.is_open:  # object stores have no locks
            raise busy(key)
        self._probabilities = probabilities
        self._writer = Writer(
            path,
            sample_info,
            network=network,
            probabilities=probabilities,
            metadata=metadata,
            overwrite=overwrite,
        )
        # Reports a recorder that is dropped, too, at the end of the process at the latest.
        self._close = weakref.finalize(self, _close, self._writer, self._writer.epochs)
        _OPEN[key] = self._writer

    @property
    def path(self) -> str:
        """Path or URL of the record."""
        return self._writer.storage.name

    @property
    def network(self) -> int:
        """Number of the network."""
        return self._writer.network

    @property
    def epochs(self) -> int:
        """Number of recorded epochs."""
        return self._writer.epochs

    @property
    def progress(self) -> float:
        """Progress of the last recorded epoch, 0 before the first."""
        return self._writer.progress

    @property
    def sample_info(self) -> SampleInfo:
        """Information about the samples and classes of the record."""
        return self._writer.sample_info

    @property
    def keeps_probabilities(self) -> bool:
        """Whether probabilities are stored beside the labels."""
        return self._probabilities

    def record(
        self,
        predicted: object = None,
        *,
        logits: object = None,
        epoch: int | None = None,
        progress: float | None = None,
        **metrics: Any,
    ) -> None:
        """Record the predictions of one epoch.

        Args:
            predicted: labels (sample,) or probabilities (sample, class), as an array or tensor.
                Labels are class indices, or names if the recorder was opened with class_names.
            logits: scores before the softmax (sample, class), instead of `predicted`.
            epoch: the expected index of this epoch. Recording it twice then raises an error.
            progress: the true epoch, such as 0.1, by default 1 for the first row, and so on.
            **metrics: stored with the epoch: loss, learning rate …

        Raises:
            PredictionError: wrong shape, labels out of range, NaN, or probabilities that do not
                sum to 1.
            RowExists: the epoch has been recorded.
            StorageError: the disk is full or not writable; earlier epochs are safe.
        """
        if (predicted is None) == (logits is None):
            raise PredictionError("record takes either predictions or logits=…, not both or none")
        info = self.sample_info
        size = {"samples": info.samples, "classes": info.classes}
        if logits is not None:
            row = row_from_logits(logits, **size, keep=self._probabilities)
        else:
            row = row_from_predictions(
                predicted, **size, probabilities=self._probabilities, class_names=info.class_names
            )
        self._writer.write(row, epoch=epoch, progress=progress, metrics=metrics)

    def check_open(self) -> None:
        """Check that the recorder is open.

        Raises:
            RecordClosed: it is closed, or belongs to another process.
        """
        self._writer.check_open()

    def close(self, *, quiet: bool = False) -> None:
        """Release the network for other recorders.

        Unless `quiet`, a recorder that recorded nothing logs a warning.
        """
        if quiet:
            self._close.detach()
            self._writer.close()
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self.close(quiet=error is not None)


def _close(writer: Writer, resumed: int) -> None:
    if writer.is_open and writer.epochs == resumed:
        already = "no epoch was recorded"
        if resumed:
            already = (
                f"nothing was recorded, as it already holds {counted(resumed, 'epoch')} of an "
                "earlier training. To record it anew: Recorder(…, overwrite=True)"
            )
        _logger.warning("%s: network %d: %s", writer.storage.name, writer.network, already)
    writer.close()


def record_missing(
    recorders: Sequence[Recorder],
    predict: Callable[[], Iterable[object]],
    *,
    epoch: int,
    logits: bool = False,
    **options: Any,
) -> None:
    """Record one epoch in all recorders where it is missing.

    Args:
        recorders: those of one network, or of the members of one BatchEnsemble.
        predict: returns one array of predictions per recorder; called only if one lacks the epoch.
        epoch: the index of the epoch.
        logits: the arrays are scores before the softmax.
        **options: progress and metrics, as for `Recorder.record`.
    """
    missing = [recorder.epochs <= epoch for recorder in recorders]
    if any(missing):
        for recorder, array, lacks in zip(recorders, predict(), missing, strict=True):
            if lacks:
                scores, labels = (array, None) if logits else (None, array)
                recorder.record(labels, logits=scores, epoch=epoch, **options)
