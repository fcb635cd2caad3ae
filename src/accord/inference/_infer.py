"""Predict new samples with the checkpoints of a run.

`infer` finds the checkpoints (`_checkpoints_of_run`), reads the samples (`accord.data`), and
evaluates every checkpoint on every block of samples (`_evaluator`). The rule decides how votes are
collected (`_collected_votes`): as counts where it only adds up votes, so that samples can be
settled early (`_early_exit`); otherwise as arrays in memory, or as a record.
"""

import os
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from accord.data import Samples, Source
from accord.errors import ChoiceError, RecordMismatch
from accord.inference._checkpoints_of_run import RunCheckpoints, checkpoints_of_run
from accord.inference._collected_votes import (
    NEW,
    AllVotes,
    CountedVotes,
    RecordedVotes,
    sample_options,
)
from accord.inference._early_exit import Exit, NoExit, find_exit, join_counts, order_checkpoints
from accord.inference._evaluator import Checkpoint, evaluate_checkpoints
from accord.kernels._votes import WEIGHT_BITS
from accord.rules import RECOMMENDED, FittedRule, Prediction, Rule, find_rule
from accord.rules._analysis_context import Context
from accord.rules._fitted_rule import PROGRESS_TOLERANCE
from accord.rules._recommend import resolve_rule
from accord.store import CountProgress, RecordReader, SampleInfo, make_sample_info, open_reader
from accord.training._prepared_data import read_samples

Path = str | os.PathLike[str]
BY_EPOCH: Final = ("weights", "groups")  # what fitted rules learn for each epoch


@dataclass(frozen=True, eq=False)
class Inferred:
    """Result of inference on new samples."""

    prediction: Prediction
    evaluated: NDArray[np.int64]  # the number of votes evaluated, (sample,)
    sample_info: SampleInfo  # ids, true labels and class names, where known
    rule: str
    networks: tuple[int, ...]  # by number in the run's record
    epochs: tuple[int, ...]  # of training, from 0
    notes: tuple[str, ...] = ()  # on skipped samples, networks and epochs

    def __len__(self) -> int:
        return len(self.prediction)

    @property
    def labels(self) -> NDArray[np.intp]:
        """Predicted class of each sample, or -1 where the rule abstains."""
        return self.prediction.labels

    @property
    def support(self) -> NDArray[np.float64]:
        """Support of each label among the evaluated votes, between 0 and 1."""
        return self.prediction.scores

    @property
    def voters(self) -> int:
        """Number of votes on a sample."""
        return len(self.networks) * len(self.epochs)

    @property
    def saved(self) -> float:
        """Fraction of votes that were not evaluated."""
        return float(1 - self.evaluated.mean() / self.voters)

    @property
    def reference(self) -> Literal["truth", "given"] | None:
        """Labels that predictions are compared with: true ones, else the given ones, if any."""
        return self.sample_info.reference

    @property
    def accuracy(self) -> float | None:
        """Share of the labels that equal the reference."""
        info = self.sample_info
        labels = info.given if info.truth is None else info.truth
        return None if labels is None else float((self.labels == labels).mean())


def infer(
    run: Path,
    samples: Source,
    *,
    rule: str | Rule = "max-agreement",
    exit: str | float | Exit = "none",
    record: Path | None = None,
    format: str | None = None,
    seed: int = 0,
    progress: CountProgress | None = None,
) -> Inferred:
    """Predict new samples with all saved checkpoints of a run.

    Checkpoints are loaded one after another. Samples are scaled as the run's training samples
    were. A rule that needs more than vote counts takes all votes in memory, or in a temporary
    file if they exceed `ACCORD_MEMORY`.

    Args:
        run: the folder that `accord train` wrote, with checkpoints.
        samples: a file or folder, or the samples themselves; see `accord.data.read_samples`.
        rule: a rule's name, "recommended", a fitted rule, or a rule of your own.
        exit: "none" to evaluate every vote; "exact" to stop once no remaining vote can change
            the label; or a risk such as 0.01 that a label differs from that of all votes.
            For max-agreement; "exact" also for a fitted weighted-agreement.
        record: write every vote to this record; an interrupted inference resumes from it.
        format: the format of `samples`, where its name does not decide.
        seed: of the order of evaluation, where the exit is a risk.
        progress: called with the evaluations done and in all.

    Raises:
        SourceError: there is no run or no checkpoint, one is damaged, or the samples do not fit.
        ChoiceError: the rule or the exit is unknown, or they do not go together.
        RecordMismatch: the record is of other samples, or the rule was fitted on other epochs.
    """
    criterion = find_exit(exit)
    wanted = None if rule == RECOMMENDED else find_rule(rule)
    _check_exit(criterion, wanted, record)
    checkpoints = checkpoints_of_run(run)
    if wanted is not None:
        wanted = _at_epochs(wanted, checkpoints)
        if wanted.reads == "last" and record is None:
            checkpoints = replace(checkpoints, epochs=checkpoints.epochs[-1:])
    new = read_samples(checkpoints.run.spec, samples, checkpoints.schema, format)
    sample_info = make_sample_info(**sample_options(checkpoints, new), split=NEW)
    if wanted is not None and wanted.oracle and sample_info.truth is None:
        raise ChoiceError(f"{wanted.name} needs true labels, and {new.name} has none")
    evaluated = np.full(len(new), checkpoints.voters)
    if wanted is not None and wanted.vote_weights is not None and record is None:
        order = list_checkpoints(checkpoints, wanted, criterion, seed=seed)
        prediction, evaluated = _count_votes(checkpoints, new, order, criterion, progress)
        prediction, name = prediction.with_note(wanted.caution), wanted.name
    else:
        probabilities = wanted is not None and "probabilities" in wanted.needs
        reader = _collect_votes(checkpoints, new, sample_info, probabilities, record, progress)
        found, reason = resolve_rule(RECOMMENDED if wanted is None else wanted, reader)
        prediction, name = found(reader).with_note(reason), found.name
    notes = (*new.notes, *checkpoints.notes)
    numbers, epochs = checkpoints.numbers, checkpoints.epochs
    return Inferred(prediction, evaluated, sample_info, name, numbers, epochs, notes)


def _count_votes(
    checkpoints: RunCheckpoints,
    samples: Samples,
    order: list[Checkpoint],
    exit: Exit,
    progress: CountProgress | None,
) -> tuple[Prediction, NDArray[np.int64]]:
    total = sum(one.weight * one.network.members for one in order)
    classes = checkpoints.schema.classes

    def start(span: slice) -> CountedVotes:
        return CountedVotes(span.stop - span.start, classes=classes, total=total, exit=exit)

    blocks = evaluate_checkpoints(checkpoints, samples, order, start, progress=progress)
    return join_counts(blocks)


def _collect_votes(
    checkpoints: RunCheckpoints,
    samples: Samples,
    sample_info: SampleInfo,
    probabilities: bool,
    record: Path | None,
    progress: CountProgress | None,
) -> RecordReader:
    order = _in_training_order(checkpoints)
    if record is None:
        votes = AllVotes(checkpoints, sample_info, probabilities=probabilities)
        evaluate_checkpoints(checkpoints, samples, order, votes.begin, progress=progress)
        return Context(votes.reader())
    with RecordedVotes(record, checkpoints, samples, probabilities=probabilities) as rows:
        evaluate_checkpoints(
            checkpoints, samples, order, lambda _: rows, whole=True, progress=progress
        )
    return Context(open_reader(record, networks=checkpoints.numbers))


def list_checkpoints(
    checkpoints: RunCheckpoints, rule: Rule, exit: Exit, *, seed: int
) -> list[Checkpoint]:
    batch_ensemble = any(network.members > 1 for network in checkpoints.networks)
    if exit.random_order and batch_ensemble:
        raise ChoiceError(
            "the members of a BatchEnsemble vote together, and a risk requires single votes in "
            "random order. Use --exit exact"
        )
    weights = _unit_weights(rule, len(checkpoints.epochs))
    if not exit.takes_weights and set(weights) != {1}:
        raise ChoiceError(
            f"a risk requires votes of equal weight, and {rule.name} weighs them. Use --exit exact"
        )
    ordered = [
        replace(one, weight=weights[one.position[1]]) for one in _in_training_order(checkpoints)
    ]
    size = len(checkpoints.networks), len(checkpoints.epochs)
    reader = None if batch_ensemble else checkpoints.reader()
    return [ordered[at] for at in order_checkpoints(reader, size, exit, seed=seed)]


def _in_training_order(checkpoints: RunCheckpoints) -> list[Checkpoint]:
    firsts = np.cumsum([0, *(network.members for network in checkpoints.networks)]).tolist()
    return [
        Checkpoint(network, epoch, (first, index))
        for first, network in zip(firsts[:-1], checkpoints.networks, strict=True)
        for index, epoch in enumerate(checkpoints.epochs)
    ]


def _unit_weights(rule: Rule, epochs: int) -> list[int]:
    weights = np.broadcast_to(np.asarray(rule.vote_weights, np.float64), epochs)
    if (weights == 1).all():
        return [1] * epochs
    units = np.ldexp(weights, WEIGHT_BITS)  # integers: their sums are exact in any order
    if (units != np.rint(units)).any():
        raise ChoiceError(
            f"{rule.name}: weights must be whole multiples of 2**-{WEIGHT_BITS}, as `accord fit` "
            "finds them, so that their sums are exact"
        )
    return [int(unit) for unit in units]


def _check_exit(exit: Exit, rule: Rule | None, record: Path | None) -> None:
    if isinstance(exit, NoExit):
        return
    if record is not None:
        raise ChoiceError(
            "a record holds every vote, and an early exit leaves votes out: use one of the two"
        )
    if rule is None or rule.vote_weights is None:
        name = RECOMMENDED if rule is None else rule.name
        raise ChoiceError(
            "an early exit needs a rule that only counts votes: max-agreement, or a fitted "
            f"weighted-agreement (accord fit RUN/test, then --fitted FILE); got {name}. "
            "To evaluate every vote: --exit none"
        )


def _at_epochs(rule: Rule, checkpoints: RunCheckpoints) -> Rule:
    """Restrict a fitted rule to the epochs with checkpoints.

    It may be fitted on a record of the run's whole training, or of some epochs. In old files, a
    rule does not know its epochs: then it must be fitted on all, or on these alone.
    """
    learnt = rule.parameters() if isinstance(rule, FittedRule) else None
    if learnt is None or not isinstance(rule, FittedRule):
        return rule
    positions = _fitted_positions(rule, checkpoints, len(learnt["weights"]))
    if not learnt["weights"][positions].any():
        raise RecordMismatch(
            f"{checkpoints.run.path}: {rule.name} gives no weight to the {len(positions)} epochs "
            "that have checkpoints: all come after overfitting. Keep earlier checkpoints, or use "
            "another rule."
        )
    cut = rule.from_arrays(
        {name: some[positions] if name in BY_EPOCH else some for name, some in learnt.items()}
    )
    cut.caution = rule.caution
    if rule.voters is not None:
        progress = tuple(rule.voters.progress[position] for position in positions)
        cut.voters = replace(rule.voters, progress=progress)
    return cut


def _fitted_positions(rule: FittedRule, checkpoints: RunCheckpoints, fitted: int) -> list[int]:
    run, epochs = checkpoints.run, checkpoints.epochs
    recorded = len(run.recording_schedule)
    if rule.voters is not None:
        progress = np.array(rule.voters.progress)
        near = [np.flatnonzero(abs(progress - (one + 1)) < PROGRESS_TOLERANCE) for one in epochs]
        missing = [epoch for epoch, found in zip(epochs, near, strict=True) if not found.size]
        if not missing:
            return [int(found[0]) for found in near]
        problem = f"has checkpoints of epoch {missing[0]}, and {rule.name} was fitted without it"
    elif fitted == len(epochs):
        return list(range(fitted))
    elif fitted == recorded:
        return checkpoints.record_epochs()
    else:
        problem = (
            f"recorded {recorded} epochs and has checkpoints of {len(epochs)}; {rule.name} was "
            f"fitted on {fitted}"
        )
    raise RecordMismatch(
        f"{run.path}: {problem}. Fit it on the run's own record: "
        f"accord fit {run.path / run.spec.record.splits[0]}"
    )
