"""Predict new samples with the checkpoints of a run."""

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.data import Layout, Samples, Source, read_samples
from accord.errors import ChoiceError, RecordMismatch, counted
from accord.inference._checkpoints_of_run import SavedRun, open_run
from accord.inference._early_exit import AskAll, Exit, find_exit
from accord.inference._evaluate import NEW, ask_and_count, can_count, facts_of, record_votes
from accord.rules import FittedRule, Prediction, Rule, find_rule
from accord.rules._fitted import ALIKE, Voters
from accord.rules._recommend import RECOMMENDED, resolve_rule
from accord.rules.weighted_agreement import WeightedAgreement
from accord.store import SampleInfo, make_sample_info, open_reader
from accord.store._storage import CountProgress


@dataclass(frozen=True, eq=False)
class Inferred:
    """One label per sample, and what it took to find them."""

    prediction: Prediction
    asked: NDArray[np.int64]  # (sample,), how many votes were asked for
    sample_info: SampleInfo  # the samples' ids and true labels, the classes' names, as far as known
    rule: str
    networks: tuple[int, ...]  # that were asked
    epochs: tuple[int, ...]  # at which
    notes: tuple[str, ...] = ()  # what could not be read or asked, for people to read

    def __len__(self) -> int:
        return len(self.prediction)

    @property
    def labels(self) -> NDArray[np.intp]:
        """One class per sample; -1 where the rule abstains."""
        return self.prediction.labels

    @property
    def support(self) -> NDArray[np.float64]:
        """How much of what was asked for supports each label, 0..1."""
        return self.prediction.scores

    @property
    def voters(self) -> int:
        """How many votes there are on a sample: networks times epochs."""
        return len(self.networks) * len(self.epochs)

    @property
    def saved(self) -> float:
        """The share of all votes that need not be asked for."""
        return float(1 - self.asked.mean() / self.voters)

    @property
    def accuracy(self) -> float | None:
        """The share of labels that are right, where true labels came with the samples."""
        if self.sample_info.truth is None:
            return None
        return float((self.labels == self.sample_info.truth).mean())


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


Location = str | os.PathLike[str]


def infer(
    run: Location,
    samples: Source,
    *,
    rule: str | Rule = "max-agreement",
    exit: str | float | Exit = "none",  # noqa: A002
    record: Location | None = None,
    format: str | None = None,  # noqa: A002
    seed: int = 0,
    progress: CountProgress | None = None,
) -> Inferred:
    """Predict new samples with every saved checkpoint of a run, combined by a rule.

    Checkpoints are loaded one after the other. Samples are scaled as the run's training samples
    were. Rules that need more than counts read a record, which is removed afterwards unless
    `record` names a place for it.

    Args:
        run: the folder that `accord train` wrote, with checkpoints.
        samples: a file or folder, or the samples themselves; see `accord.data.read_samples`.
        rule: a rule's name, "recommended", a fitted rule, or a rule of your own.
        exit: "none" to ask for every vote; "exact" to stop where no vote that is left can
            change the label; or a risk such as 0.01 that a label is not the one of all votes.
            For max-agreement; "exact" also for a fitted weighted-agreement.
        record: keep every vote here, as a record; stopped and started again, it goes on.
        format: how `samples` is to be read, where its name does not tell.
        seed: of the order in which votes are asked for, where the exit is a risk.
        progress: told of how much is done, of how much.

    Raises:
        SourceError: no run, no checkpoints, a damaged one, or samples that do not fit.
        ChoiceError: no such rule or exit, or two that do not go together.
        RecordMismatch: the record is of other samples, or the rule was fitted on others.
    """
    leaving = find_exit(exit)
    wanted = None if rule == RECOMMENDED else find_rule(rule)
    _check_choice(wanted, leaving, record)
    saved = open_run(run)
    if wanted is not None:
        wanted = at_epochs(wanted, saved)
        if wanted.reads == "last" and record is None:
            saved = saved.last_epoch()
    data = saved.spec.data
    path = None if data.path is None else saved.spec.resolve_path(data.path)
    layout = Layout(data.kind, data.options, path)
    found = read_samples(samples, saved.traits, layout=layout, format=format)
    sample_info = make_sample_info(**facts_of(saved, found), split=NEW)
    if wanted is not None and wanted.oracle and sample_info.truth is None:
        raise ChoiceError(f"{wanted.name} looks at true labels, and {found.name} has none")
    if wanted is not None and can_count(wanted) and record is None:
        options: dict[str, Any] = {"rule": wanted, "seed": seed, "progress": progress}
        prediction, asked = ask_and_count(saved, found, leaving, **options)
        prediction = prediction.noting(wanted.caution)
        name = wanted.name
    else:
        prediction, asked, name = _by_record(saved, found, wanted, record, progress)
    notes = (*found.notes, *saved.notes)
    return Inferred(prediction, asked, sample_info, name, saved.networks, saved.epochs, notes)


def _check_choice(rule: Rule | None, exit: Exit, record: Location | None) -> None:  # noqa: A002
    if isinstance(exit, AskAll):
        return
    if record is not None:
        raise ChoiceError(
            "a record holds every vote, and an early exit leaves some out. Leave out one of the two"
        )
    if rule is not None and can_count(rule):
        return
    if isinstance(rule, WeightedAgreement):
        raise ChoiceError(
            f"{rule.name} finds its weights in all votes, unless it was fitted before. To exit "
            f"early, fit it: accord fit RUN/test --rule {rule.name} --out rule.npz, and then "
            "--fitted rule.npz"
        )
    name = RECOMMENDED if rule is None else rule.name
    raise ChoiceError(
        "an early exit needs a rule that only counts votes: max-agreement, or a fitted "
        f"weighted-agreement; got {name}. Ask for every vote: --exit none"
    )


def _by_record(
    run: SavedRun,
    samples: Samples,
    rule: Rule | None,
    record: Location | None,
    progress: CountProgress | None,
) -> tuple[Prediction, NDArray[np.int64], str]:
    with tempfile.TemporaryDirectory(prefix="accord-") as folder:
        path = Path(folder) / "votes" if record is None else record
        probabilities = rule is not None and "probabilities" in rule.needs
        record_votes(run, samples, path, probabilities=probabilities, progress=progress)
        rows = open_reader(path, networks=run.networks)
        rule, why = resolve_rule(RECOMMENDED if rule is None else rule, rows)
        prediction = rule(rows).noting(why)
    return prediction, np.full(len(samples), run.voters), rule.name
