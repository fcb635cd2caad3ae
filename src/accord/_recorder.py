"""The recorder: three lines in a training loop that keep every epoch's predictions."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

from accord.errors import PredictionError
from accord.store import SampleInfo, Writer, make_sample_info
from accord.store._validation import row_from_logits, row_from_predictions


class Recorder:
    """Write what one network predicts, epoch by epoch, into a record.

    Many recorders may write to one record at the same time, from many processes or
    machines, each with a `network` number of its own. A row is on the disk when `record`
    returns. Opening the same network again goes on after its last row.

    Args:
        path: a folder, or the URL of an object store; made if it is not there.
        network: this network's number, from 0.
        samples: how many samples are predicted at every epoch, always in the same order.
        classes: how many classes there are; labels run from 0.
        truth: the true class of each sample, if known; for scores, never for predictions.
        given: the class that the data assign to each sample, right or wrong.
        ids: a number or name for each sample, all different.
        class_names: a name for each class, all different.
        split: which part of the data the samples are, such as "test" or "train".
        probabilities: keep probabilities (in half precision) beside the labels.
        metadata: anything to keep with the network as JSON: its seed, its settings.

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
        self._keep = probabilities
        self._writer = Writer(
            path, sample_info, network=network, probabilities=probabilities, metadata=metadata
        )

    @property
    def path(self) -> str:
        """Where the record lies."""
        return self._writer.place.name

    @property
    def network(self) -> int:
        """The number of the network that it records."""
        return self._writer.network

    @property
    def epochs(self) -> int:
        """How many epochs this network holds: where a resumed loop begins."""
        return self._writer.epochs

    @property
    def sample_info(self) -> SampleInfo:
        """What was said of the samples and classes when it was opened."""
        return self._writer.sample_info

    @property
    def keeps_probabilities(self) -> bool:
        """Whether probabilities are kept beside the labels."""
        return self._keep

    def record(
        self,
        predicted: object = None,
        *,
        logits: object = None,
        epoch: int | None = None,
        progress: float | None = None,
        **metrics: Any,
    ) -> None:
        """Append one epoch and return once it is safe.

        Args:
            predicted: labels (sample,) or probabilities (sample, class), as any array or tensor.
            logits: scores before the softmax (sample, class), instead of `predicted`.
            epoch: the position you believe this row has; a row written twice is then refused.
            progress: the true epoch, such as 0.1; by default 1 after the first row, and so on.
            **metrics: facts to keep with the row: loss, learning rate …

        Raises:
            PredictionError: wrong shape, labels out of range, NaN, probabilities that do not
                add up to 1.
            RowExists: the epoch was recorded before.
            StorageError: the disk is full or not writable; earlier rows are safe.
        """
        self._check_one(predicted, logits)
        size = {
            "samples": self._writer.sample_info.samples,
            "classes": self._writer.sample_info.classes,
        }
        if logits is not None:
            row = row_from_logits(logits, **size, keep=self._keep)
        else:
            row = row_from_predictions(predicted, **size, probabilities=self._keep)
        self._writer.write(row, epoch=epoch, progress=progress, metrics=metrics)

    def check_open(self) -> None:
        """Refuse to go on if it was closed, before a long evaluation and not after it.

        Raises:
            RecordClosed: it was, or it belongs to another process.
        """
        self._writer.check_open()

    def close(self) -> None:
        """Let the network go; what was recorded stays. Closing twice is harmless."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def _check_one(predicted: object, logits: object) -> None:
        if (predicted is None) == (logits is None):
            raise PredictionError("record takes either predictions or logits=…, not both or none")
