"""Make a recorder a callback of its framework when it is built, not when it is imported."""

import functools
import importlib
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypedDict

from numpy.typing import NDArray

from accord._recorder import Recorder
from accord._recorders.evaluate import finite_rows
from accord._recorders.record_order import Order
from accord._recorders.schedule import Moments
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
    """What every callback hands on to `accord.Recorder`, by the same names."""

    truth: object
    given: object
    ids: object
    class_names: Sequence[str] | None
    split: str
    probabilities: bool
    metadata: Mapping[str, Any] | None


class Keeper:
    """The rows of one network, as far as a callback is concerned.

    In a distributed training the first process opens the recorder, and the others only count
    along: set `rows` there.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        network: int,
        samples: int,
        classes: int,
        every: float,
        facts: RecorderOptions,
    ) -> None:
        _check_names(facts)
        self.path = path
        self.network = network
        self.classes = classes
        self.moments = Moments(every)
        self.probabilities = facts.get("probabilities", False)
        self.rows = 0
        self._facts = facts
        self._recorder: Recorder | None = None
        # Said now, not after the first epoch: truth of the wrong length, ids that are not unique.
        checked = make_sample_info(
            samples=samples,
            classes=classes,
            truth=facts.get("truth"),
            given=facts.get("given"),
            ids=facts.get("ids"),
            class_names=facts.get("class_names"),
        )
        self.order = Order(samples, checked.ids)

    def open(self) -> int:
        """Open the recorder, anew if it was open, and return how many rows there are."""
        self.close()
        try:
            self._recorder = Recorder(
                self.path,
                network=self.network,
                samples=self.order.samples,
                classes=self.classes,
                **self._facts,
            )
        except RecordBusy as error:
            raise RecordBusy(
                f"{error} In one script: is RecordPredictions attached twice, or did an earlier "
                "training end with an error? Then close its callback: callback.close()"
            ) from error
        self.rows = self._recorder.epochs
        return self.rows

    def close(self) -> None:
        """Let the network go; closing twice is harmless."""
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None

    @contextmanager
    def closed_on_error(self) -> Iterator[None]:
        """Close if anything goes wrong, since not every framework tells its callbacks."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def check_whole(self, progress: float) -> None:
        """Refuse to go on from a progress whose rows were not all recorded."""
        if self.moments.passed(progress) > self.rows:
            missing = self.moments.progress_of(self.rows)
            raise RecordError(
                f"{self.path}: network {self.network} holds {counted(self.rows, 'epoch')}, "
                f"and training goes on from progress {progress:g}: the row at progress {missing:g} "
                "is missing. "
                f"Go on from a checkpoint before progress {missing:g}, or train another network."
            )

    def note_begin(self) -> None:
        """Say, where a training begins anew, that its first rows are there already."""
        if self.rows:
            _logger.warning(
                "%s: network %d already holds %s; training begins anew, and only what "
                "comes after them is recorded",
                self.path,
                self.network,
                counted(self.rows, "epoch"),
            )

    def is_due(self, previous: float, progress: float) -> bool:
        """Return whether a row is due after a step that led from one progress to another."""
        self.check_whole(previous)
        self.moments.check_step(previous, progress)
        return self.moments.passed(progress) > self.rows

    def append(
        self,
        kept: NDArray[Any],
        *,
        progress: float,
        told: Mapping[str, Any],
        are_logits: bool = True,
    ) -> int:
        """Append one row, in the record's order; return how many there are once it is safe."""
        if self._recorder is None:
            raise ChoiceError(f"{self.path}: RecordPredictions records while a training runs")
        write_row(
            self._recorder,
            kept,
            order=self.order,
            where=f"{self.path}: network {self.network}",
            epoch=self.rows,
            progress=progress,
            told=told,
            are_logits=are_logits,
        )
        self.rows = self._recorder.epochs
        return self.rows


def write_row(
    recorder: Recorder,
    kept: NDArray[Any],  # (sample,) or (sample, class), in the record's order
    *,
    order: Order,
    where: str,
    epoch: int | None,
    progress: float | None,
    told: Mapping[str, Any],
    are_logits: bool = True,
) -> None:
    """Append one row unless a network returned something that is not a number."""
    finite = finite_rows(kept)
    if not finite.all():
        strange = (~finite).nonzero()[0]
        now = "" if progress is None else f" (progress {progress:g})"
        raise PredictionError(
            f"{where}, epoch {recorder.epochs}{now}: the network returned NaN or infinity for "
            f"{len(strange)} of {order.samples} samples: {order.names(strange)}. Has it diverged? "
            "The epochs before are safe."
        )
    predictions = {"logits" if kept.ndim == 2 and are_logits else "predicted": kept}
    recorder.record(**predictions, epoch=epoch, progress=progress, **told)


def _check_names(facts: RecorderOptions) -> None:
    unknown = facts.keys() - RecorderOptions.__annotations__.keys()
    if unknown:
        raise TypeError(
            f"RecordPredictions takes no {sorted(unknown)[0]!r}; "
            f"it hands on to the recorder: {', '.join(RecorderOptions.__annotations__)}"
        )


class FrameworkCallback:
    """A callback whose framework is imported with the first one that is built.

    So importing it does not load the framework; and where one framework goes by two names, the
    name that a script has imported is taken.
    """

    modules: ClassVar[tuple[str, ...]]  # where the framework's own class of callbacks may be
    base: ClassVar[str]  # what it is called there
    extra: ClassVar[str]

    def __new__(cls, *_: Any, **__: Any) -> Self:
        module = import_framework(cls.modules, cls.extra)
        mine: Any = cls
        joined: type[Self] = _join(mine, getattr(module, cls.base))
        return super().__new__(joined)

    def __reduce__(self) -> tuple[Any, ...]:
        # The joined class is made at run time, where pickle cannot find it.
        mine = next(one for one in type(self).__mro__ if one.__module__ != _JOINED)
        return _build, (mine,), self.__dict__


def import_framework(modules: tuple[str, ...], extra: str) -> Any:
    """Return the first of some modules that is loaded already, or else that can be."""
    for name in (*(name for name in modules if name in sys.modules), *modules):
        try:
            return importlib.import_module(name)
        except ImportError as error:
            failure = error
    package = modules[-1].partition(".")[0]
    raise missing_extra(f"accord.{extra}", package, extra=extra, cause=failure) from failure


_JOINED = f"{__name__}.joined"


@functools.cache
def _join(mine: Any, base: Any) -> Any:
    if issubclass(mine, base):
        return mine
    return type(mine.__name__, (mine, base), {"__module__": _JOINED, "__doc__": mine.__doc__})


def _build(mine: type[FrameworkCallback]) -> FrameworkCallback:
    return mine.__new__(mine)
