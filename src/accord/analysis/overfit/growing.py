"""Watch a record while networks are still writing it, reading rows again only where in doubt."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from accord.analysis.overfit.alarm import best_epoch
from accord.errors import NotARecord, RecordMissing, UnequalNetworks
from accord.kernels.falls import LEAST_FALL
from accord.rules.overfit.equal_pairs import EqualPairs, count_equal_pairs
from accord.rules.overfit.verdict import SURE, Verdict, judge_rows
from accord.store import Rows, open_rows
from accord.store.places import EXAMPLE, Folder, open_place, refused


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
    place = open_place(path)
    if not isinstance(place, Folder):
        return
    parent = place.path.parent
    with refused(parent, "read"):
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
        self.trained_on = rows.facts.trained_on
        known = 0 if self._pairs is None else self._pairs.epochs
        if self._pairs is not None and self._pairs.numbers != rows.numbers:
            self._pairs, self.alarmed, known = None, False, 0
        if rows.epochs <= known:
            return []
        later = count_equal_pairs(rows.select(epochs=range(known, rows.epochs)))
        self._pairs = later if self._pairs is None else self._pairs.then(later)
        return list(self._judge(rows, self._pairs, known))

    def _open(self) -> Rows | None:
        self.waiting_for, self.missing = "", None
        try:
            rows = open_rows(self._path, common=True, networks=self._networks)
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

    def _judge(self, rows: Rows, pairs: EqualPairs, known: int) -> Iterator[Seen]:
        for epoch in range(known, pairs.epochs):
            until, first_rows = pairs.until(epoch + 1), rows.select(epochs=range(epoch + 1))
            verdict = judge_rows(first_rows, until, sure=self._sure, least_fall=self._least_fall)
            first = verdict.alarm and not self.alarmed
            self.alarmed = self.alarmed or verdict.alarm
            before = best_epoch(rows, verdict) if first else None
            yield Seen(epoch, float(until.agreement[-1]), verdict, before)
