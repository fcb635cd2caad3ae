"""Detection of overfitting without labels."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord._files import storage_errors
from accord.errors import ChoiceError, NotARecord, RecordMissing
from accord.rules import Context
from accord.rules._overfitting import (
    LEAST_FALL,
    SURE,
    EpochScores,
    Verdict,
    detect_overfitting,
    first_epochs,
    judge_agreement,
    score_epochs,
    smooth,
    without_one_network,
)
from accord.rules._pair_agreement import PairAgreement, measure_pair_agreement
from accord.rules.dawid_skene import fit_dawid_skene
from accord.rules.leave_one_out import LeaveOneOut
from accord.store import Folder, RecordReader, open_reader, open_storage
from accord.store._storage import EXAMPLE

SHARE: Final = "agreement with leave-one-out"
NO_VERDICT: Final = Verdict(
    False,
    "the networks were trained on these samples, so that their agreement shows no overfitting",
)


@dataclass(frozen=True)
class Watch:
    """Result of detecting overfitting."""

    alarm: bool
    epoch: int | None  # last good epoch, None without an alarm
    best_epoch: int  # the one to use, alarm or not
    fall: float  # of the curve that was judged, from its peak to the lowest stretch after it
    sure: float  # 1 minus the probability of such a fall by chance
    reason: str  # for the alarm, or for none
    agreement: NDArray[np.float64]  # (epoch,), the mean over pairs of networks and samples
    smoothed: NDArray[np.float64]  # (epoch,)
    verdict: bool = True  # whether there is one: none on samples that networks were trained on


def watch(
    reader: RecordReader, *, sure: float = SURE, least_fall: float = LEAST_FALL, seed: int = 0
) -> Watch:
    """Detect overfitting from the predictions of networks.

    Networks that memorise wrong labels each follow their own. The labels that `leave-one-out`
    estimates from all epochs are then nearly those of the best epochs: each epoch is scored by the
    share of samples on which its majority vote equals them. With two classes, where any two wrong
    votes are the same, the agreement between networks takes the place of this share.

    The alarm is raised if the curve falls after its peak, for a stretch of at least five epochs,
    and the fall

    - is at least `least_fall`,
    - is larger than the scatter of samples explains (a test over groups of samples), and
    - is larger than the fluctuation of epochs explains (curves that fluctuate as much and never
      fall).

    The last two give a confidence each; the smaller one must reach `sure`. If agreement has fallen
    only with one network, there is no alarm. The last good epoch is the one with the highest share.
    With two classes, a fall that was made up for later counts as well, and the epoch is the one
    before the fall whose majority vote is closest to the labels that Dawid–Skene estimates from
    the epochs before.

    There is no verdict on samples that the networks were trained on: networks agree ever more on
    them while they memorise wrong labels.

    Reads the labels once if they fit into the memory budget.

    Args:
        reader: at least two networks.
        sure: between 0 and 1.
        least_fall: of agreement, between 0 and 1.
        seed: of the curves that are drawn.

    Raises:
        ChoiceError: there is one network, or an option is out of range.
    """
    reader.check_complete("detecting overfitting")
    if not 0 < sure < 1:
        raise ChoiceError(f"sure must lie between 0 and 1, as 0.99 does; got {sure}")
    if not 0 <= least_fall < 1:
        raise ChoiceError(f"least_fall must lie in 0..1, as 0.01 does; got {least_fall}")
    context = Context.of(reader)
    pairs = context.once(measure_pair_agreement)
    if context.trained_on:
        verdict = NO_VERDICT
    elif context.classes == 2:
        verdict = context.once(detect_overfitting, sure, least_fall, seed)
    else:
        verdict = context.once(score_by_rule).judge(SHARE, sure, least_fall, seed)
        verdict = without_one_network(verdict, pairs, least_fall)
    best = best_epoch(context, verdict)
    return Watch(
        alarm=verdict.alarm,
        epoch=best if verdict.alarm else None,
        best_epoch=best,
        fall=verdict.fall,
        sure=verdict.sure,
        reason=verdict.reason,
        agreement=pairs.agreement,
        smoothed=smooth(pairs.agreement),
        verdict=verdict is not NO_VERDICT,
    )


def score_by_rule(context: Context) -> EpochScores:
    """Score each epoch's majority vote by the labels estimated from all epochs."""
    if context.classes == 2:
        return score_epochs(context, context.once(fit_dawid_skene).prediction.labels)
    return score_epochs(context, LeaveOneOut()(context).labels)


def best_epoch(context: Context, verdict: Verdict) -> int:
    """Find the epoch with the best majority vote, with two classes before agreement falls."""
    if context.classes == 2 and verdict.alarm and verdict.before is not None:
        context = context.once(first_epochs, verdict.before)
    return context.once(score_by_rule).best


@dataclass(frozen=True)
class EpochUpdate:
    """Update for an epoch recorded by all networks."""

    epoch: int
    progress: float  # the true epoch
    agreement: float
    verdict: Verdict  # after this epoch
    best_epoch: int | None  # the last good epoch, with the first alarm only
    best_progress: float | None  # its true epoch


def check_parent_folder(path: str | os.PathLike[str]) -> None:
    place = open_storage(path)
    if not isinstance(place, Folder):
        return
    parent = place.path.parent
    with storage_errors(parent, "read"):
        exists = parent.exists()
    if not exists:
        raise RecordMissing(
            f"{path}: there is no record, and no folder {parent} that could hold one. Is the "
            "path right? To wait for a training that will create it: --idle SECONDS"
        )


class RecordFollower:
    """Monitor for a record that is still growing.

    Each `poll` returns the epochs that all networks have finished since the last one. If a network
    joins, it starts again with the epochs that all of them have.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        networks: Sequence[int] | None = None,
        split: str | None = None,
        sure: float = SURE,
        least_fall: float = LEAST_FALL,
    ) -> None:
        self.waiting_for = ""  # why the last poll found nothing to compare
        self.missing: RecordMissing | None = None  # if there was nothing at the path
        self.alarmed = False
        self.trained_on = False  # whether networks are trained on these samples
        self._path = path
        self._networks = networks
        self._split = split
        self._sure = sure
        self._least_fall = least_fall
        self._pairs: PairAgreement | None = None

    def poll(self) -> list[EpochUpdate]:
        """Read the epochs recorded since the last poll.

        Nothing is new if there is no record yet (`missing` holds the error), if it has no common
        epoch, or if it has fewer than two networks.
        """
        reader = self._open()
        if reader is None:
            return []
        context = Context(reader)
        self.trained_on = context.trained_on
        known = 0 if self._pairs is None else self._pairs.epochs
        if self._pairs is not None and self._pairs.numbers != context.numbers:
            self._pairs, self.alarmed, known = None, False, 0
        if context.epochs <= known:
            return []
        later = measure_pair_agreement(context.select(epochs=range(known, context.epochs)))
        self._pairs = later if self._pairs is None else self._pairs.then(later)
        agreement_alone = self.trained_on or context.classes == 2
        scores = None if agreement_alone else context.once(score_by_rule)
        return [
            self._judge(context, self._pairs.first(end), scores and scores.first(end))
            for end in range(known + 1, context.epochs + 1)
        ]

    def _open(self) -> RecordReader | None:
        self.waiting_for, self.missing = "", None
        try:
            reader = open_reader(
                self._path, common=True, networks=self._networks, split=self._split, quiet=True
            )
        except RecordMissing as error:  # training has not begun to record
            if str(self._path).startswith(EXAMPLE):
                raise  # nothing will record one
            self.waiting_for = f"{self._path}: there is no record yet. Is the path right?"
            self.missing = error
            return None
        except NotARecord as error:  # no epochs yet
            self.waiting_for = str(error)
            return None
        if reader.networks < 2:
            self.waiting_for = f"{reader.name}: one network so far; agreement needs two"
            return None
        return reader

    def _judge(
        self, context: Context, pairs: PairAgreement, scores: EpochScores | None
    ) -> EpochUpdate:
        if self.trained_on:
            verdict = NO_VERDICT
        elif scores is None:
            verdict = judge_agreement(pairs, self._sure, self._least_fall)
        else:
            verdict = scores.judge(SHARE, self._sure, self._least_fall)
            verdict = without_one_network(verdict, pairs, self._least_fall)
        new = verdict.alarm and not self.alarmed
        self.alarmed = self.alarmed or verdict.alarm
        best = None
        if new:
            best = best_epoch(context, verdict) if scores is None else scores.best
        progress = context.networks_info()[0].progress
        return EpochUpdate(
            epoch=pairs.epochs - 1,
            progress=progress[pairs.epochs - 1],
            agreement=float(pairs.agreement[-1]),
            verdict=verdict,
            best_epoch=best,
            best_progress=None if best is None else progress[best],
        )
