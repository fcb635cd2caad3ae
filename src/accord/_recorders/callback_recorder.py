"""Base classes for the callbacks of frameworks.

A face (`accord.lightning`, `accord.transformers`, `accord.keras`) is a class with its framework's
hooks. It holds a `CallbackRecorder`, which decides by the schedule when a row is due and appends
it, and it inherits from `FrameworkCallback`, which imports the framework with the first instance.
"""

import functools
import importlib
import logging
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, Self, TypedDict

from numpy.typing import NDArray

from accord._recorder import Recorder
from accord._recorders.network_outputs import finite_rows
from accord._recorders.record_order import Order
from accord._recorders.schedule import Schedule
from accord.errors import (
    ChoiceError,
    PredictionError,
    RecordBusy,
    RecordError,
    counted,
    missing_extra,
)
from accord.store import make_sample_info

_logger = logging.getLogger(__name__)


class RecorderOptions(TypedDict, total=False):
    truth: object
    given: object
    ids: object
    class_names: Sequence[str] | None
    split: str
    probabilities: bool
    metadata: Mapping[str, Any] | None
    overwrite: bool


class Recorded(NamedTuple):
    epochs: int = 0
    progress: float = 0.0  # of the last row


class CallbackRecorder:
    """Recorder used by the callbacks of frameworks.

    In distributed training only the first process opens the recorder; the others set `recorded`
    to what the first one reports.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        network: int,
        samples: int,
        classes: int,
        every: float,
        options: RecorderOptions,
    ) -> None:
        unknown = options.keys() - RecorderOptions.__annotations__.keys()
        if unknown:
            raise TypeError(
                f"RecordPredictions got an unexpected argument {sorted(unknown)[0]!r}; "
                f"it passes on to the recorder: {', '.join(RecorderOptions.__annotations__)}"
            )
        self.path = path
        self.network = network
        self.classes = classes
        self.schedule = Schedule(every)
        self.probabilities = options.get("probabilities", False)
        self.recorded = Recorded()
        self._options: RecorderOptions = {**options}
        self._recorder: Recorder | None = None
        self._resumed = Recorded()
        self._reached = 0.0  # the progress of this training
        # Checked now rather than after the first epoch of training.
        names = ("truth", "given", "ids", "class_names")
        arrays: dict[str, Any] = {name: options.get(name) for name in names}
        sample_info = make_sample_info(samples=samples, classes=classes, **arrays)
        self.order = Order(samples, sample_info.ids)

    def open(self) -> Recorded:
        self.close(quiet=True)
        try:
            self._recorder = Recorder(
                self.path,
                network=self.network,
                samples=self.order.samples,
                classes=self.classes,
                **self._options,
            )
        except RecordBusy as error:
            raise RecordBusy(
                f"{error} In one script: is RecordPredictions attached twice, or did an earlier "
                "training end with an error? Then close its callback: callback.close()"
            ) from error
        self._options["overwrite"] = False  # once: training may continue in a second call
        self.recorded = Recorded(self._recorder.epochs, self._recorder.progress)
        self._resumed, self._reached = self.recorded, 0.0
        return self.recorded

    def close(self, *, quiet: bool = False) -> None:
        """Release the network for other recorders.

        Unless `quiet`, log a warning if training recorded nothing.
        """
        if self._recorder is None:
            return
        if not quiet and self.recorded == self._resumed:
            _logger.warning(
                "%s: network %d: training recorded nothing. %s",
                self.path,
                self.network,
                self._why_nothing(),
            )
        self._recorder.close(quiet=True)
        self._recorder = None

    def _why_nothing(self) -> str:
        held = self.recorded.epochs
        if not self._reached:
            return "It ended before its first epoch: check the number of epochs and the data"
        if held:
            return (
                f"It ended at progress {self._reached:g}, and the record already holds "
                f"{counted(held, 'epoch')} of an earlier one, up to {self.recorded.progress:g}. "
                "To record it anew: RecordPredictions(…, overwrite=True)"
            )
        often = 1 if self._reached >= 1 else 1 / max(10, math.ceil(1 / self._reached))
        return (
            f"It ended at progress {self._reached:.3g}, and the first row is due at "
            f"{self.schedule.every:g}. Train longer, or record more often: every={often:.3g}"
        )

    @contextmanager
    def closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close(quiet=True)
            raise

    def check_complete(self, progress: float) -> None:
        """Check that the record has all rows due before `progress`."""
        present = self.schedule.rows_due(self.recorded.progress)
        if self.schedule.rows_due(progress) > present:
            missing = (present + 1) * self.schedule.every
            raise RecordError(
                f"{self.path}: network {self.network} holds "
                f"{counted(self.recorded.epochs, 'epoch')}, and training resumes from progress "
                f"{progress:g}: the row at progress {missing:g} is missing. "
                f"Resume from a checkpoint before progress {missing:g}, or train another network."
            )

    def warn_if_recorded(self) -> None:
        """Log a warning if the record already has rows when training starts."""
        if self.recorded.epochs:
            _logger.warning(
                "%s: network %d already holds %s; training starts from scratch, and only later "
                "epochs are recorded. To record all of them anew: overwrite=True",
                self.path,
                self.network,
                counted(self.recorded.epochs, "epoch"),
            )

    def is_due(self, previous: float, progress: float, *, last: bool = False) -> bool:
        """Check whether a row is due after a step of training.

        With `last`, training ends with a whole epoch, which is recorded in any case.
        """
        self._reached = max(self._reached, progress)
        self.check_complete(previous)
        self.schedule.check_step(previous, progress)
        return self.schedule.is_due(progress, recorded=self.recorded.progress, last=last)

    def append(
        self,
        kept: NDArray[Any],
        *,
        progress: float,
        metrics: Mapping[str, Any],
        are_logits: bool = True,
    ) -> Recorded:
        if self._recorder is None:
            raise ChoiceError(f"{self.path}: RecordPredictions records only while training runs")
        write_row(
            self._recorder,
            kept,
            order=self.order,
            epoch=self.recorded.epochs,
            progress=progress,
            metrics=metrics,
            are_logits=are_logits,
        )
        self.recorded = Recorded(self._recorder.epochs, progress)
        return self.recorded


def write_row(
    recorder: Recorder,
    kept: NDArray[Any],  # (sample,) or (sample, class), in the record's order
    *,
    order: Order,
    epoch: int | None,
    progress: float | None,
    metrics: Mapping[str, Any],
    are_logits: bool = True,
) -> None:
    finite = finite_rows(kept)
    if not finite.all():
        invalid = (~finite).nonzero()[0]
        now = "" if progress is None else f" (progress {progress:g})"
        raise PredictionError(
            f"{recorder.path}: network {recorder.network}, epoch {recorder.epochs}{now}: the "
            f"network returned NaN or infinity for {len(invalid)} of {order.samples} samples: "
            f"{order.names(invalid)}. Has it diverged? Earlier epochs are safe."
        )
    predictions = {"logits" if kept.ndim == 2 and are_logits else "predicted": kept}
    recorder.record(**predictions, epoch=epoch, progress=progress, **metrics)


class FrameworkCallback:
    """Base class for callbacks that import their framework lazily.

    Importing a face therefore does not load its framework. If a framework has two package names
    (Lightning), the one that the script has imported is used.
    """

    modules: ClassVar[tuple[str, ...]]  # modules that may hold the framework's callback class
    base: ClassVar[str]  # the name of that class
    extra: ClassVar[str]

    def __new__(cls, *_: Any, **__: Any) -> Self:
        module = import_framework(cls.modules, cls.extra)
        untyped: Any = cls
        joined: type[Self] = _join(untyped, getattr(module, cls.base))
        return super().__new__(joined)

    def __reduce__(self) -> tuple[Any, ...]:
        # The joined class is created at run time, where pickle cannot find it.
        declared = next(one for one in type(self).__mro__ if one.__module__ != _JOINED)
        return _build, (declared,), self.__dict__


def import_framework(modules: tuple[str, ...], extra: str) -> Any:
    """Import the first available module, preferring modules already loaded."""
    for name in (*(name for name in modules if name in sys.modules), *modules):
        try:
            return importlib.import_module(name)
        except ImportError as error:
            failure = error
    package = modules[-1].partition(".")[0]
    raise missing_extra(f"accord.{extra}", package, extra=extra, cause=failure) from failure


_JOINED = f"{__name__}.joined"


@functools.cache
def _join(declared: Any, base: Any) -> Any:
    if issubclass(declared, base):
        return declared
    return type(
        declared.__name__, (declared, base), {"__module__": _JOINED, "__doc__": declared.__doc__}
    )


def _build(declared: type[FrameworkCallback]) -> FrameworkCallback:
    return declared.__new__(declared)
