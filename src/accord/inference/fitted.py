"""A rule that was fitted on all recorded epochs, for those that have checkpoints."""

from dataclasses import replace
from typing import Final

from accord.errors import RecordMismatch, counted
from accord.inference.saved_run import SavedRun
from accord.rules import FittedRule, Rule
from accord.rules.voters import ALIKE, Voters

BY_EPOCH: Final = ("weights", "groups")  # what is learnt of each epoch, (epoch,)


def at_epochs(rule: Rule, run: SavedRun) -> Rule:
    """Return the rule with what it learnt of the epochs that can be asked.

    It may have learnt from a record of the run's whole training, or of some epochs, these among
    them. A rule that does not know its epochs must have learnt from all, or from these alone.

    Raises:
        RecordMismatch: it learnt from others, or that these have no say.
    """
    learnt = rule.learnt() if isinstance(rule, FittedRule) else None
    if learnt is None or not isinstance(rule, FittedRule):
        return rule
    if rule.voters is None:
        positions = _by_number(rule, run, len(learnt["weights"]))
    else:
        positions = [_position(rule, run, rule.voters, epoch) for epoch in run.epochs]
    if not learnt["weights"][positions].any():
        raise RecordMismatch(
            f"{run.folder}: {rule.name} gives none of the {len(positions)} epochs that have "
            "checkpoints a say: all come after overfit. Keep earlier ones, or use another rule."
        )
    cut = rule.from_arrays(
        {name: some[positions] if name in BY_EPOCH else some for name, some in learnt.items()}
    )
    cut.caution = rule.caution
    if rule.voters is not None:
        progress = tuple(rule.voters.progress[position] for position in positions)
        cut.voters = replace(rule.voters, progress=progress)
    return cut


def _position(rule: Rule, run: SavedRun, voters: Voters, epoch: int) -> int:
    for position, progress in enumerate(voters.progress):
        if abs(progress - (epoch + 1)) < ALIKE:
            return position
    raise RecordMismatch(
        f"{run.folder}: has checkpoints of epoch {epoch}, and {rule.name} was fitted on "
        f"{counted(len(voters.progress), 'epoch')} without it. {_cure(run)}"
    )


def _by_number(rule: Rule, run: SavedRun, epochs: int) -> list[int]:
    if epochs == len(run.epochs):
        return list(range(epochs))
    if epochs == run.recorded:
        return run.positions
    raise RecordMismatch(
        f"{run.folder}: {rule.name} was fitted on {counted(epochs, 'epoch')}; the run recorded "
        f"{run.recorded} and has checkpoints of {len(run.epochs)}. {_cure(run)}"
    )


def _cure(run: SavedRun) -> str:
    return f"Fit it on the run's own record: accord fit {run.folder / run.spec.record.splits[0]}"
