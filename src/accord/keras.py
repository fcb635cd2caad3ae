"""Record what a network predicts while Keras trains it."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from accord._recorders.callback_recorder import (
    FrameworkCallback,
    Keeper,
    RecorderOptions,
    import_framework,
)
from accord._recorders.evaluate import keep_of
from accord.errors import ChoiceError
from accord.store._validation import to_numpy

__all__ = ["RecordPredictions"]


class RecordPredictions(FrameworkCallback):
    """Record a Keras network's predictions at the end of every epoch of `fit`.

    The network is asked about inputs of its own, as `predict_on_batch` asks it, and left as it
    was. A training that goes on (`initial_epoch`, BackupAndRestore) records what is missing;
    rows that are there are not written again. List it before the callbacks that save: then no
    checkpoint is ahead of the record.

    Args:
        path: the record: a folder, or the URL of an object store; made if it is not there.
        inputs: the samples to predict: an array, or a list or mapping of arrays for a network
            with several inputs.
        network: this network's number, from 0; each training needs one of its own.
        classes: how many classes there are; labels run from 0.
        every: epochs between two rows: 1, 2 …, or a part of one, such as 0.1.
        forward: how to get the scores, by default `network.predict_on_batch(inputs)`.
        batch: samples at a time.
        logits: the scores come before a softmax or sigmoid (True) or after it (False); by
            default as the activation of the last layer says.
        **facts: truth, given, ids, class_names, split, probabilities, about: as for
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
        **facts: Unpack[RecorderOptions],
    ) -> None:
        super().__init__()
        self._inputs = inputs
        self._forward = forward
        self._batch = batch
        self._logits = logits
        self._began: Any = None
        self._epoch = -1
        self._keeper = Keeper(
            path,
            network=network,
            samples=_length(inputs),
            classes=classes,
            every=every,
            facts=facts,
        )

    model: Any  # as Keras sets them
    params: Any

    def close(self) -> None:
        """Let the network go, as the end of training does by itself."""
        self._keeper.close()
        self._began = None

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Open the record."""
        if self._began is not None and self._began is self.params:
            raise ChoiceError(
                f"{self._keeper.path}: RecordPredictions for network {self._keeper.network} is "
                "attached twice; attach it once"
            )
        if self._keeper.moments.every < 1 and self.params.get("steps") is None:
            raise ChoiceError(
                f"every={self._keeper.moments.every:g} needs epochs of known length: give fit "
                "steps_per_epoch, or record whole epochs"
            )
        self._keeper.open()
        self._began = self.params
        self._epoch = -1

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Refuse to go on from an epoch that is ahead of the record."""
        if self._epoch < 0:
            with self._keeper.closed_on_error():
                self._keeper.check_whole(epoch)
            if epoch == 0:
                self._keeper.note_begin()
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Record if a part of an epoch is due."""
        if self._keeper.moments.every < 1:
            steps = self.params["steps"]
            self._after(self._epoch + batch / steps, self._epoch + (batch + 1) / steps, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Record if a row is due."""
        if self._keeper.moments.every >= 1:
            self._after(epoch, epoch + 1, logs)

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """Close the record."""
        self.close()

    def _after(self, previous: float, progress: float, logs: Mapping[str, Any] | None) -> None:
        with self._keeper.closed_on_error():
            if self._keeper.is_due(previous, progress):
                self._record(progress, logs or {})

    def _record(self, progress: float, logs: Mapping[str, Any]) -> None:
        with _undisturbed(self.model):
            parts = list(self._parts())
        self._keeper.append(
            np.concatenate(parts),
            progress=progress,
            told={name: float(value) for name, value in logs.items()},
            are_logits=self._logits is not False,
        )

    def _parts(self) -> Iterator[NDArray[Any]]:
        forward = self._forward or (lambda network, inputs: network.predict_on_batch(inputs))
        for start in range(0, self._keeper.order.samples, self._batch):
            output = forward(self.model, _slice(self._inputs, start, start + self._batch))
            _check_single(output)
            scores = to_numpy(output)
            if self._logits is None and self._must_know(scores):
                self._logits = _gives_logits(self.model)
            yield keep_of(
                scores,
                classes=self._keeper.classes,
                probabilities=self._keeper.probabilities,
                are_logits=self._logits is not False,
            )

    def _must_know(self, scores: NDArray[Any]) -> bool:
        # The largest of several scores is the largest before and after a softmax.
        return self._keeper.probabilities or scores.ndim == 1 or scores.shape[1:] == (1,)


def _undisturbed(network: Any) -> AbstractContextManager[None]:
    if import_framework(("keras",), "keras").config.backend() != "torch":
        return nullcontext()
    from accord._recorders.eval_mode import undisturbed

    return undisturbed(network)


def _arrays(inputs: Any) -> list[Any]:
    if isinstance(inputs, Mapping):
        return list(inputs.values())
    return list(inputs) if isinstance(inputs, list | tuple) else [inputs]


def _slice(inputs: Any, start: int, stop: int) -> Any:
    if isinstance(inputs, Mapping):
        return {name: array[start:stop] for name, array in inputs.items()}
    if isinstance(inputs, list | tuple):
        return [array[start:stop] for array in inputs]
    return inputs[start:stop]


def _length(inputs: Any) -> int:
    arrays = _arrays(inputs)
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


def _check_single(output: Any) -> None:
    if isinstance(output, list | tuple | Mapping):
        raise ChoiceError(
            f"the network returns {len(output)} outputs; say which are the scores: "
            "forward=lambda network, inputs: …"
        )


def _gives_logits(network: Any) -> bool:
    last = network.layers[-1]
    named = getattr(getattr(last, "activation", None), "__name__", type(last).__name__.lower())
    known = {"linear": True, "softmax": False, "sigmoid": False}
    if named not in known:
        raise ChoiceError(
            f"cannot tell whether the network returns logits or probabilities: its last layer is "
            f"a {type(last).__name__}. Say logits=True or logits=False"
        )
    return known[named]
