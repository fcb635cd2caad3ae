"""Predict new samples with the checkpoints of a run."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError
from accord.inference.counting import ask_and_count, can_count
from accord.inference.exits import AskAll, Exit, find_exit
from accord.inference.fitted import at_epochs
from accord.inference.outcome import Inferred
from accord.inference.recording import NEW, facts_of, record_votes
from accord.inference.samples import Samples
from accord.inference.saved_run import SavedRun, open_run
from accord.inference.sources import Source, find_samples
from accord.rules import Prediction, Rule, find_rule
from accord.rules.recommend import RECOMMENDED, resolve_rule
from accord.rules.weighted_agreement import WeightedAgreement
from accord.store import make_facts, open_rows
from accord.store.progress import CountProgress

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
        samples: a file or folder, or the samples themselves; see `find_samples`.
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
    found = find_samples(samples, saved.spec, saved.traits, format=format)
    facts = make_facts(**facts_of(saved, found), split=NEW)
    if wanted is not None and wanted.oracle and facts.truth is None:
        raise ChoiceError(f"{wanted.name} looks at true labels, and {found.name} has none")
    if wanted is not None and can_count(wanted) and record is None:
        options: dict[str, Any] = {"rule": wanted, "seed": seed, "progress": progress}
        prediction, asked = ask_and_count(saved, found, leaving, **options)
        prediction = prediction.noting(wanted.caution)
        name = wanted.name
    else:
        prediction, asked, name = _by_record(saved, found, wanted, record, progress)
    notes = (*found.notes, *saved.notes)
    return Inferred(prediction, asked, facts, name, saved.networks, saved.epochs, notes)


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
        rows = open_rows(path, networks=run.networks)
        rule, why = resolve_rule(RECOMMENDED if rule is None else rule, rows)
        prediction = rule(rows).noting(why)
    return prediction, np.full(len(samples), run.voters), rule.name
