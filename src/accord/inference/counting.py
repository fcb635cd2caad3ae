"""Ask a run's networks and count their votes, no more of them than an exit needs."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError
from accord.inference.asking import Asker, Shown
from accord.inference.ballots import Ballot, join
from accord.inference.exits import Exit
from accord.inference.order import order_voters
from accord.inference.samples import Samples
from accord.inference.saved_run import SavedRun
from accord.kernels.blocks import spans
from accord.kernels.exact import WEIGHT_BITS
from accord.rules import Prediction, Rule
from accord.rules.max_agreement import MaxAgreement
from accord.rules.weighted_agreement import WeightedAgreement
from accord.store.progress import CountProgress
from accord.training.spec import Member

CELLS_AT_ONCE: Final = 2**24  # of votes, (sample, class): 128 MiB
BYTES_AT_ONCE: Final = 2**30  # of samples


@dataclass(frozen=True)
class Voter:
    """One checkpoint: a network, or all members of a BatchEnsemble, at one epoch."""

    member: Member
    epoch: int
    weight: int  # of each vote


def can_count(rule: Rule) -> bool:
    """Tell whether a rule only adds up votes whose weights are known beforehand."""
    known = type(rule) is WeightedAgreement and rule.weights is not None
    return known or type(rule) is MaxAgreement


def ask_and_count(
    run: SavedRun,
    samples: Samples,
    exit: Exit,  # noqa: A002
    *,
    rule: Rule,
    seed: int = 0,
    progress: CountProgress | None = None,
) -> tuple[Prediction, NDArray[np.int64]]:
    """Predict, and tell how many votes each sample took.

    Samples are taken in blocks, so that memory stays bounded; each checkpoint is loaded once for
    a block, and asked only about samples that are still open.

    Raises:
        ChoiceError: the exit asks for equal votes, or single ones, and the run has others.
    """
    voters = list_voters(run, exit, rule=rule, seed=seed)
    counted = _Count(run, voters, exit, samples, progress)
    ballots = [counted.block(span) for span in spans(len(samples), _width(run, samples))]
    return join(ballots)


def list_voters(run: SavedRun, exit: Exit, *, rule: Rule, seed: int) -> list[Voter]:  # noqa: A002
    """Return the checkpoints in the order to ask them.

    Raises:
        ChoiceError: the exit needs equal votes, or single ones, and gets others.
    """
    _check_fit(run, exit, rule)
    weights = _weights(run, rule)
    voters = [
        Voter(member, epoch, weight)
        for member in run.members
        for epoch, weight in zip(run.epochs, weights, strict=True)
    ]
    rows = None if run.members[0].members > 1 else run.rows()
    order = order_voters(rows, (len(run.members), len(run.epochs)), exit, seed=seed)
    return [voters[position] for position in order]


def _check_fit(run: SavedRun, exit: Exit, rule: Rule) -> None:  # noqa: A002
    if exit.shuffled and any(member.members > 1 for member in run.members):
        raise ChoiceError(
            "a BatchEnsemble's members vote together, so that its votes cannot be asked for in an "
            "order drawn by chance, on which a risk is founded. Use --exit exact"
        )
    if not exit.weighted and isinstance(rule, WeightedAgreement):
        raise ChoiceError(
            f"a risk is founded on votes that count the same, and those of {rule.name} do not. "
            "Use --exit exact"
        )


def _weights(run: SavedRun, rule: Rule) -> list[int]:
    if not isinstance(rule, WeightedAgreement) or rule.weights is None:
        return [1] * len(run.epochs)
    units = np.ldexp(rule.weights, WEIGHT_BITS)
    if (units != np.rint(units)).any():
        raise ChoiceError(
            f"{rule.name}: weights must be whole multiples of 2**-{WEIGHT_BITS}, as `accord fit` "
            "finds them, so that their sums are exact"
        )
    return [int(unit) for unit in units]


def _width(run: SavedRun, samples: Samples) -> int:
    return max(1, min(CELLS_AT_ONCE // run.traits.classes, BYTES_AT_ONCE // samples.sample_bytes))


class _Count:
    """One pass over all checkpoints for each block of samples."""

    def __init__(
        self,
        run: SavedRun,
        voters: list[Voter],
        exit: Exit,  # noqa: A002
        samples: Samples,
        progress: CountProgress | None,
    ) -> None:
        self._run, self._voters, self._exit, self._samples = run, voters, exit, samples
        self._asker = Asker(run)
        self._progress = progress

    def block(self, span: slice) -> Ballot:
        """Ask about some neighbouring samples."""
        shown = self._asker.show(self._samples.part(span))
        left = sum(voter.weight * voter.member.members for voter in self._voters)
        width = len(range(*span.indices(len(self._samples))))
        ballot = Ballot(width, classes=self._run.traits.classes, left=left)
        for number, voter in enumerate(self._voters, start=1):
            if ballot.open.size:
                self._ask(voter, shown, ballot)
            self._tell(span.start, width, number)
        return ballot

    def _ask(self, voter: Voter, shown: Shown, ballot: Ballot) -> None:
        tables = self._asker.ask(voter.member, voter.epoch, shown, ballot.open)
        for table in tables:
            ballot.count(table.argmax(axis=1), weight=voter.weight)
        ballot.close(self._exit)

    def _tell(self, before: int, width: int, number: int) -> None:
        if self._progress is not None:
            every = len(self._voters)
            self._progress(before * every + width * number, len(self._samples) * every)
