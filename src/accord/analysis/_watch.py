"""Watch a record while networks are still writing it, reading rows again only where in doubt."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accord._files import storage_errors
from accord.errors import ChoiceError, NotARecord, RecordMissing, UnequalNetworks
from accord.rules._overfitting import (
    LEAST_FALL,
    SURE,
    EqualPairs,
    Verdict,
    count_equal_pairs,
    good_epochs,
    judge_record,
    judge_rows,
    smooth,
)
from accord.store import RecordReader, open_reader
from accord.store._storage import EXAMPLE, Folder, open_storage


@dataclass(frozen=True)
class Watch:
    """What the agreement between networks tells of overfit."""

    alarm: bool
    epoch: int | None  # the epoch before overfit; None without an alarm
    best_epoch: int  # the one to use, alarm or not
    fall: float  # of agreement, from its peak to the lowest stretch after it
    sure: float  # 1 minus the chance of such a fall where there is none
    reason: str  # why there is an alarm, or none
    agreement: NDArray[np.float64]  # (epoch,), the mean over pairs of networks and samples
    smoothed: NDArray[np.float64]  # (epoch,)


def watch(
    reader: RecordReader, *, sure: float = SURE, least_fall: float = LEAST_FALL, seed: int = 0
) -> Watch:
    """Tell whether overfit has set in, and the epoch before it, from the predictions alone.

    Networks that learn what is true of the data come to agree; networks that learn wrong labels
    by heart part again, each in its own way. The alarm is raised if agreement falls after its
    peak, for a stretch of at least five epochs, and the fall

    - is at least `least_fall`,
    - remains so whichever network is left out, so that none causes it alone,
    - is larger than the samples' differences explain (a test over groups of samples), and
    - is larger than the epochs' wobble explains (curves that wobble as much and never fall).

    The last two say how sure they are; both must reach `sure`, and the lesser is told. The epoch
    before overfit is the one before that stretch whose majority vote is closest to what all
    epochs before it together say; see `good_epochs`.

    Where sureness alone is missing, the majority votes are asked too; see `judge_rows`. A fall
    that agreement made up for later, as networks do that settle while their rate goes to nothing,
    counts as well, as does any alarm that agreement alone raised while the record grew; which of
    the majority's do, see `judge_record`.

    Args:
        reader: at least two networks.
        sure: between 0 and 1.
        least_fall: of agreement, between 0 and 1.
        seed: of the curves that are drawn.

    Raises:
        ChoiceError: there is one network, or an option is out of range.
    """
    _check_options(sure, least_fall)
    pairs = count_equal_pairs(reader)
    verdict = judge_record(reader, pairs, sure=sure, least_fall=least_fall, seed=seed)
    best = best_epoch(reader, verdict)
    return Watch(
        alarm=verdict.alarm,
        epoch=best if verdict.alarm else None,
        best_epoch=best,
        fall=verdict.fall,
        sure=verdict.sure,
        reason=verdict.reason,
        agreement=pairs.agreement,
        smoothed=smooth(pairs.agreement),
    )


def best_epoch(reader: RecordReader, verdict: Verdict) -> int:
    """Return the epoch to use: of all, or if there is an alarm of those before the fall."""
    if verdict.alarm and verdict.before is not None:
        reader = reader.select(epochs=range(verdict.before))
    return good_epochs(reader).best


def _check_options(sure: float, least_fall: float) -> None:
    if not 0 < sure < 1:
        raise ChoiceError(f"sure must lie between 0 and 1, as 0.99 does; got {sure}")
    if not 0 <= least_fall < 1:
        raise ChoiceError(f"least_fall must lie in 0..1, as 0.01 does; got {least_fall}")


@dataclass(frozen=True)
class Seen:
    """One more epoch that all networks have recorded, and what it changed."""

    epoch: int
    agreement: float
    verdict: Verdict  # as of this epoch
    best_epoch: int | None  # the epoch before overfit, told with the first alarm alone


def check_folder(path: str | os.PathLike[str]) -> None:
    """Refuse to wait for a record where not even the folder around it is there.

    Nothing is asked of an object store, which has no folders.

    Raises:
        RecordMissing: there is no such folder.
    """
    place = open_storage(path)
    if not isinstance(place, Folder):
        return
    parent = place.path.parent
    with storage_errors(parent, "read"):
        there = parent.exists()
    if not there:
        raise RecordMissing(
            f"{path}: there is no record, and no folder {parent} in which one could come. Is the "
            "path right? To wait for a training that is still to make it: --idle SECONDS"
        )


class AlarmFollower:
    """Follows one record: each `look` returns the epochs that all networks have finished since.

    If a network joins, counting begins anew with the epochs that all of them have.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        networks: Sequence[int] | None = None,
        sure: float = SURE,
        least_fall: float = LEAST_FALL,
    ) -> None:
        self.waiting_for = ""  # why the last look found nothing to compare
        self.missing: RecordMissing | None = None  # why, if nothing was at the path
        self.alarmed = False
        self.trained_on = False  # whether the samples are those that the networks learn from
        self._path = path
        self._networks = networks
        self._sure = sure
        self._least_fall = least_fall
        self._pairs: EqualPairs | None = None

    def look(self) -> list[Seen]:
        """Read what is new.

        A record that is not there yet (`missing` holds the error), that is still being made, or
        that has fewer than two networks so far, is no error: nothing is new.

        Raises:
            RecordMissing: there is no example of that name.
        """
        rows = self._open()
        if rows is None:
            return []
        self.trained_on = rows.sample_info.trained_on
        known = 0 if self._pairs is None else self._pairs.epochs
        if self._pairs is not None and self._pairs.numbers != rows.numbers:
            self._pairs, self.alarmed, known = None, False, 0
        if rows.epochs <= known:
            return []
        later = count_equal_pairs(rows.select(epochs=range(known, rows.epochs)))
        self._pairs = later if self._pairs is None else self._pairs.then(later)
        return list(self._judge(rows, self._pairs, known))

    def _open(self) -> RecordReader | None:
        self.waiting_for, self.missing = "", None
        try:
            rows = open_reader(self._path, common=True, networks=self._networks)
        except RecordMissing as error:  # training has not begun to record
            if str(self._path).startswith(EXAMPLE):
                raise  # nobody records one
            self.waiting_for = f"{self._path}: there is no record yet. Is the path right?"
            self.missing = error
            return None
        except (NotARecord, UnequalNetworks) as error:  # no epochs yet, or not for every network
            self.waiting_for = str(error)
            return None
        if rows.networks < 2:
            self.waiting_for = f"{rows.name}: one network so far; agreement needs two"
            return None
        return rows

    def _judge(self, reader: RecordReader, pairs: EqualPairs, known: int) -> Iterator[Seen]:
        for epoch in range(known, pairs.epochs):
            until, first_rows = pairs.until(epoch + 1), reader.select(epochs=range(epoch + 1))
            verdict = judge_rows(first_rows, until, sure=self._sure, least_fall=self._least_fall)
            first = verdict.alarm and not self.alarmed
            self.alarmed = self.alarmed or verdict.alarm
            before = best_epoch(reader, verdict) if first else None
            yield Seen(epoch, float(until.agreement[-1]), verdict, before)
