"""Integration with Keras."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from accord._recorders.callback_recorder import (
    CallbackRecorder,
    FrameworkCallback,
    RecorderOptions,
    import_framework,
)
from accord._recorders.network_outputs import labels_or_scores
from accord.errors import ChoiceError, PredictionError
from accord.store import to_numpy

__all__ = ["RecordPredictions"]

INFINITE: Final = -1  # the cardinality of a tf.data.Dataset with repeat()


class RecordPredictions(FrameworkCallback):
    """Callback that records the predictions of a Keras network after each epoch.

    The network predicts separate inputs by `predict_on_batch`, without changing its training
    state. Training that resumes (`initial_epoch`, BackupAndRestore) records the rows that are
    missing, and no row is written twice. List this callback before those that save weights: then no
    checkpoint is ahead of the record.

    Args:
        path: the record: a folder, or the URL of an object store, created if missing.
        inputs: the samples to predict: an array, or a list or mapping of arrays for a network
            with several inputs; or a DataLoader, PyDataset or tf.data.Dataset of batches, which
            are inputs or (inputs, labels, …), in the same order at every epoch.
        network: the number of the network, from 0. Each training needs a different one.
        classes: the number of classes, with labels from 0.
        samples: the number of samples, by default counted.
        every: epochs between two rows: 1, 2 …, or a fraction of an epoch, such as 0.1. The last
            epoch is always recorded.
        forward: returns the scores, by default `network.predict_on_batch(inputs)`.
        batch: samples per batch of arrays.
        logits: scores come before a softmax or sigmoid (True) or after it (False). By default
            this follows from the activation of the last layer.
        **options: truth, given, ids, class_names, split, probabilities, metadata, overwrite: as
            for `accord.Recorder`.

    Raises:
        ExtraMissing: Keras is not installed.
    """

    modules: ClassVar = ("keras.callbacks",)
    base: ClassVar = "Callback"
    extra: ClassVar = "keras"

    def __init__(
        self,
        path: str | os.PathLike[str],
        inputs: Any,
        *,
        network: int,
        classes: int,
        samples: int | None = None,
        every: float = 1.0,
        forward: Callable[[Any, Any], Any] | None = None,
        batch: int = 256,
        logits: bool | None = None,
        **options: Unpack[RecorderOptions],
    ) -> None:
        super().__init__()
        self._inputs = inputs
        self._forward = forward
        self._batch = batch
        self._logits = logits
        self._running: Any = None  # the parameters of the training that runs
        self._epoch = -1
        self._labels: bytes | None = None  # of the batches, in their order
        self._recorder = CallbackRecorder(
            path,
            network=network,
            samples=_length(inputs) if samples is None else samples,
            classes=classes,
            every=every,
            options=options,
        )

    model: Any  # set by Keras, like `params`
    params: Any

    def close(self) -> None:
        """Close the record before the end of training."""
        self._recorder.close()
        self._running = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Open the record."""
        if self._running is not None and self._running is self.params:
            raise ChoiceError(
                f"{self._recorder.path}: RecordPredictions for network {self._recorder.network} is "
                "attached twice; attach it once"
            )
        if self._recorder.schedule.every < 1 and self.params.get("steps") is None:
            raise ChoiceError(
                f"every={self._recorder.schedule.every:g} needs epochs of known length: give fit "
                "steps_per_epoch, or record whole epochs"
            )
        self._recorder.open()
        self._running = self.params
        self._epoch = -1

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Check that the record is complete when training resumes."""
        if self._epoch < 0:
            with self._recorder.closed_on_error():
                self._recorder.check_complete(epoch)
            if epoch == 0:
                self._recorder.warn_if_recorded()
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Record a row within the epoch if it is due."""
        if self._recorder.schedule.every < 1:
            steps = self.params["steps"]
            self._after(self._epoch + batch / steps, self._epoch + (batch + 1) / steps, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Record a row if it is due."""
        if self._recorder.schedule.every >= 1:
            stopped = getattr(self.model, "stop_training", False)
            last = stopped or epoch + 1 == self.params.get("epochs")
            self._after(epoch, epoch + 1, logs, last=last)

    def on_train_end(self, logs: Any = None) -> None:
        """Record the last epoch if training stopped early, and close the record."""
        # EarlyStopping restores the best weights in this hook. If it is listed before this
        # callback, `on_epoch_end` has recorded the epoch; if after it, the weights are unchanged.
        if self._epoch >= 0 and self._recorder.schedule.every >= 1:
            self._after(self._epoch + 1, self._epoch + 1, logs, last=True)
        self.close()

    def _after(
        self,
        previous: float,
        progress: float,
        logs: Mapping[str, Any] | None,
        *,
        last: bool = False,
    ) -> None:
        with self._recorder.closed_on_error():
            if self._recorder.is_due(previous, progress, last=last):
                self._record(progress, logs or {})

    def _record(self, progress: float, logs: Mapping[str, Any]) -> None:
        with _eval_mode(self.model):
            parts = list(self._parts())
        if not parts:
            raise PredictionError("the evaluation data gave no batch")
        self._recorder.append(
            np.concatenate(parts),
            progress=progress,
            metrics={name: float(value) for name, value in logs.items()},
            are_logits=self._logits is not False,
        )

    def _parts(self) -> Iterator[NDArray[Any]]:
        forward = self._forward or (lambda network, inputs: network.predict_on_batch(inputs))
        labels = []
        for inputs, given in self._batches():
            labels.append(b"" if given is None else to_numpy(given).tobytes())
            output = forward(self.model, inputs)
            if isinstance(output, list | tuple | Mapping):
                raise ChoiceError(
                    f"the network returns {len(output)} outputs; select the scores: "
                    "forward=lambda network, inputs: …"
                )
            scores = to_numpy(output)
            # A softmax does not change which of several scores is the largest.
            single = scores.ndim == 1 or scores.shape[1:] == (1,)
            if self._logits is None and (self._recorder.probabilities or single):
                self._logits = _gives_logits(self.model)
            yield labels_or_scores(
                scores,
                classes=self._recorder.classes,
                probabilities=self._recorder.probabilities,
                are_logits=self._logits is not False,
            )
        order, self._labels = self._labels, b"".join(labels)
        if order not in (None, self._labels):
            raise PredictionError(
                "the evaluation data come in another order than at the last recorded epoch. Do "
                "not shuffle them: shuffle=False"
            )

    def _batches(self) -> Iterator[tuple[Any, Any]]:
        if _are_batches(self._inputs):
            yield from map(_split, _iterate(self._inputs))
            return
        for start in range(0, self._recorder.order.samples, self._batch):
            yield _slice(self._inputs, start, start + self._batch), None


def _are_batches(inputs: Any) -> bool:
    plain = isinstance(inputs, Mapping | list | tuple | str) or hasattr(inputs, "shape")
    return not plain and (hasattr(inputs, "__iter__") or hasattr(inputs, "__getitem__"))


def _iterate(batches: Any) -> Iterator[Any]:
    if hasattr(batches, "__getitem__") and hasattr(batches, "__len__"):  # a PyDataset
        return (batches[number] for number in range(len(batches)))
    return iter(batches)


def _split(batch: Any) -> tuple[Any, Any]:
    """Split a batch into arrays of inputs, and labels if it holds any."""
    parts = batch if isinstance(batch, list | tuple) else [batch]
    inputs = parts[0]
    if isinstance(inputs, Mapping):
        inputs = {name: to_numpy(value) for name, value in inputs.items()}
    elif isinstance(inputs, list | tuple):
        inputs = [to_numpy(value) for value in inputs]
    else:
        inputs = to_numpy(inputs)
    return inputs, parts[1] if len(parts) > 1 else None


def _count(batches: Any) -> int:
    """Count the samples of batches that come in the same order at every epoch."""
    if hasattr(batches, "dataset") and hasattr(batches, "batch_sampler"):  # a DataLoader
        from accord._recorders.loader_predictions import check_order

        check_order(batches)
    cardinality = int(batches.cardinality()) if hasattr(batches, "cardinality") else 0
    if cardinality == INFINITE or iter(batches) is batches:
        raise ChoiceError(
            f"a {type(batches).__name__} that is infinite or can be read only once cannot be "
            "predicted at every epoch. Give an array, a DataLoader or a tf.data.Dataset without "
            "repeat()"
        )
    return sum(_length(_split(batch)[0]) for batch in _iterate(batches))


def _eval_mode(network: Any) -> AbstractContextManager[None]:
    if import_framework(("keras",), "keras").config.backend() != "torch":
        return nullcontext()
    from accord._recorders.eval_mode import eval_mode

    return eval_mode(network)


def _slice(inputs: Any, start: int, stop: int) -> Any:
    if isinstance(inputs, Mapping):
        return {name: array[start:stop] for name, array in inputs.items()}
    if isinstance(inputs, list | tuple):
        return [array[start:stop] for array in inputs]
    return inputs[start:stop]


def _length(inputs: Any) -> int:
    if _are_batches(inputs):
        return _count(inputs)
    several = inputs.values() if isinstance(inputs, Mapping) else inputs
    arrays = list(several) if isinstance(inputs, Mapping | list | tuple) else [inputs]
    shapes = [getattr(array, "shape", None) for array in arrays]
    if not arrays or not all(shapes):
        raise ChoiceError(
            "inputs must be an array, a list or mapping of arrays, or a dataset of batches; "
            f"got {type(inputs).__name__} of {', '.join(type(array).__name__ for array in arrays)}"
        )
    lengths = {int(array.shape[0]) for array in arrays}
    if len(lengths) > 1:
        raise ChoiceError(f"inputs must all have the same length; got {sorted(lengths)}")
    return lengths.pop()


def _gives_logits(network: Any) -> bool:
    last = network.layers[-1]
    named = getattr(getattr(last, "activation", None), "__name__", type(last).__name__.lower())
    known = {"linear": True, "softmax": False, "sigmoid": False}
    if named not in known:
        raise ChoiceError(
            f"the network may return logits or probabilities: its last layer is a "
            f"{type(last).__name__}. Set logits=True or logits=False"
        )
    return known[named]
