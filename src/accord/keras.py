"""Integration with Keras."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from accord._recorders.callback_recorder import (
    CallbackRecorder,
    FrameworkCallback,
    RecorderOptions,
    import_framework,
)
from accord._recorders.network_outputs import labels_or_scores
from accord.errors import ChoiceError
from accord.store import to_numpy

__all__ = ["RecordPredictions"]


class RecordPredictions(FrameworkCallback):
    """Callback that records the predictions of a Keras network after each epoch.

    The network predicts separate inputs by `predict_on_batch`, without changing its training
    state. Training that resumes (`initial_epoch`, BackupAndRestore) records the rows that are
    missing, and no row is written twice. List this callback before those that save weights: then no
    checkpoint is ahead of the record.

    Args:
        path: the record: a folder, or the URL of an object store, created if missing.
        inputs: the samples to predict: an array, or a list or mapping of arrays for a network
            with several inputs.
        network: the number of the network, from 0. Each training needs a different one.
        classes: the number of classes, with labels from 0.
        every: epochs between two rows: 1, 2 …, or a fraction of an epoch, such as 0.1. The last
            epoch is always recorded.
        forward: returns the scores, by default `network.predict_on_batch(inputs)`.
        batch: samples per batch.
        logits: scores come before a softmax or sigmoid (True) or after it (False). By default
            this follows from the activation of the last layer.
        **options: truth, given, ids, class_names, split, probabilities, metadata: as for
            `accord.Recorder`.

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
        self._recorder = CallbackRecorder(
            path,
            network=network,
            samples=_length(inputs),
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

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
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

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
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
        self._recorder.append(
            np.concatenate(parts),
            progress=progress,
            metrics={name: float(value) for name, value in logs.items()},
            are_logits=self._logits is not False,
        )

    def _parts(self) -> Iterator[NDArray[Any]]:
        forward = self._forward or (lambda network, inputs: network.predict_on_batch(inputs))
        for start in range(0, self._recorder.order.samples, self._batch):
            output = forward(self.model, _slice(self._inputs, start, start + self._batch))
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
    several = inputs.values() if isinstance(inputs, Mapping) else inputs
    arrays = list(several) if isinstance(inputs, Mapping | list | tuple) else [inputs]
    shapes = [getattr(array, "shape", None) for array in arrays]
    if not arrays or not all(shapes):
        raise ChoiceError(
            "inputs must be an array, or a list or mapping of arrays; "
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
