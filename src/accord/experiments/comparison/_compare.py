"""A comparison as text for people and as JSON for programs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from accord.errors import ChoiceError, PredictionError, TrainingError, counted, suggest
from accord.experiments.comparison._methods import (
    METHODS,
    NOT_OF_MEMBERS,
    Method,
    Outcome,
    methods_for,
)
from accord.experiments.comparison._runs import Runs, Trainer, repeated_spec, shared_spec
from accord.training._plan import size_text
from accord.training.networks import warn_once
from accord.training.run import Progress
from accord.training.spec import Spec


@dataclass(frozen=True)
class Summary:
    """One method over all repetitions."""

    method: Method
    outcomes: tuple[Outcome, ...]  # of the repetitions in which it could be measured
    failures: tuple[str, ...] = ()  # why it could not in the others

    @property
    def accuracy(self) -> float:
        """The mean over the repetitions; not a number if there is none."""
        if not self.outcomes:
            return math.nan
        return math.fsum(one.accuracy for one in self.outcomes) / len(self.outcomes)

    @property
    def selective_accuracy(self) -> float | None:
        """On all samples that were answered; None if all were, or none."""
        covered = sum(one.coverage for one in self.outcomes)
        if not 0 < covered < len(self.outcomes):
            return None
        return sum(one.accuracy for one in self.outcomes) / covered

    def mean(self, fact: str) -> float | None:
        """Return the mean of any of the outcomes' numbers; None if there is none."""
        values = [getattr(one, fact) for one in self.outcomes]
        return None if None in values or not values else math.fsum(values) / len(values)

    @property
    def standard_error(self) -> float | None:
        """Of the mean accuracy; None for one repetition."""
        return self.error("accuracy")

    def error(self, fact: str) -> float | None:
        """Return the standard error of the mean of any of the outcomes' numbers."""
        mean, count = self.mean(fact), len(self.outcomes)
        if mean is None or count < 2:
            return None
        squares = sum((getattr(one, fact) - mean) ** 2 for one in self.outcomes)
        return math.sqrt(squares / (count - 1) / count)


@dataclass(frozen=True)
class Comparison:
    """Several methods on the same data."""

    spec: Spec
    repetitions: int
    out: Path
    methods: tuple[Summary, ...]
    notes: tuple[str, ...] = ()  # from training, each once
    stopped: tuple[str, ...] = ()  # runs with networks that could not be trained, and why


@warn_once()
def compare(
    spec: Spec,
    out: Path,
    *,
    methods: Sequence[str] | None = None,
    repetitions: int = 1,
    train: Trainer | None = None,
    progress: Progress | None = None,
    starting: Callable[[str], None] | None = None,
) -> Comparison:
    """Train what is missing and measure each method on the test samples.

    Networks are shared by all methods that can share them. If one needs samples that no network
    was trained on, they are held out from all. Started again, nothing is done twice. A method that
    cannot be measured is named with the reason, and the others go on.

    Args:
        spec: what to train.
        out: a folder; each run gets one of its own inside.
        methods: names; by default all.
        repetitions: how often to repeat, each time with other seeds.
        train: trains a spec into a folder; by default on this machine.
        progress: called at each moment of training.
        starting: called with a few words before each run.

    Raises:
        ChoiceError: no such method, fewer than one repetition, or a network that cannot be built.
        PredictionError, TrainingError: not one method could be measured.
    """
    chosen = choose_methods(spec, methods)
    if repetitions < 1:
        raise ChoiceError(f"there must be at least one repetition; got {repetitions}")
    shared = shared_spec(spec, validation=any(method.validation for method in chosen))
    outcomes: dict[str, list[Outcome]] = {method.name: [] for method in chosen}
    failures: dict[str, list[str]] = {method.name: [] for method in chosen}
    failed: PredictionError | TrainingError | None = None
    notes: list[str] = []
    stopped: list[str] = []
    for repetition in range(repetitions):
        runs = Runs(
            repeated_spec(shared, repetition),
            out,
            train=train,
            progress=progress,
            starting=starting,
        )
        for method in chosen:
            try:
                outcomes[method.name].append(method.measure(runs))
            except (PredictionError, TrainingError) as error:
                failures[method.name].append(str(error))
                failed = failed or error
        notes += runs.notes
        stopped += runs.stopped
    if failed is not None and not any(outcomes.values()):
        raise failed
    summaries = tuple(
        Summary(method, tuple(outcomes[method.name]), tuple(failures[method.name]))
        for method in chosen
    )
    told = tuple(dict.fromkeys(notes))
    return Comparison(spec, repetitions, out, summaries, told, tuple(stopped))


def choose_methods(spec: Spec, names: Sequence[str] | None) -> list[Method]:
    """Return the methods of these names, or all that the spec allows."""
    if names is None:
        return methods_for(spec)
    for name in names:
        if name not in METHODS:
            raise ChoiceError(f"no method is called {name!r}. {suggest(name, list(METHODS))}")
        if spec.train.batch_ensemble and name in NOT_OF_MEMBERS:
            raise ChoiceError(
                f"{name} cannot be had of a BatchEnsemble, whose members share their weights: "
                "leave it out, or train.batch_ensemble."
            )
    return [METHODS[name] for name in dict.fromkeys(names)]


HEADINGS: Final = ("method", "accuracy", "with MAP", "passes", "training", "weights", "")


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return everything that was measured; fractions at full precision."""
    return {
        "name": comparison.spec.name,
        "repetitions": comparison.repetitions,
        "methods": {one.method.name: _as_json(one) for one in comparison.methods},
        "notes": list(comparison.notes),
        "stopped": list(comparison.stopped),
    }


def _as_json(summary: Summary) -> dict[str, Any]:
    failed = {"failures": list(summary.failures)} if summary.failures else {}
    if not summary.outcomes:
        return failed
    first = summary.outcomes[0]
    facts = {
        "accuracy": summary.accuracy,
        "standard_error": summary.standard_error,
        "accuracies": [one.accuracy for one in summary.outcomes],
        "single": summary.mean("single"),
        "with_max_agreement": summary.mean("with_max_agreement"),
        "with_max_agreement_standard_error": summary.error("with_max_agreement"),
        "coverage": summary.mean("coverage"),
        "selective_accuracy": summary.selective_accuracy,
        "passes": first.passes,
        "training": first.training,
        "disk": first.disk,
        "epoch": first.epoch,
        "epochs": None if first.epoch is None else [one.epoch for one in summary.outcomes],
        "progress": None if first.epoch is None else [one.progress for one in summary.outcomes],
        "oracle": summary.method.oracle,
    }
    return {name: value for name, value in facts.items() if value is not None} | failed


def comparison_text(comparison: Comparison) -> str:
    """Return a table, with what its columns mean below."""
    rows = [_as_row(one) for one in comparison.methods]
    widths = [max(len(row[column]) for row in [HEADINGS, *rows]) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(
            cell.ljust(width) if column in (0, 6) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [HEADINGS, *rows]
    ]
    times = counted(comparison.repetitions, "repetition")
    head = f"{comparison.spec.name}: {times}, in {comparison.out}"
    legend = (
        "accuracy in %, with its standard error over repetitions; with MAP: max agreement over\n"
        "that method's own networks and epochs; passes: forward passes for a new sample;\n"
        "training: networks trained for it alone, those of npc by their part of the epochs,\n"
        "members of a batch-ensemble each; weights: of the networks to keep, for new samples"
    )
    return "\n".join([head, "", *lines, "", legend])


def _as_row(summary: Summary) -> tuple[str, ...]:
    if not summary.outcomes:
        return (summary.method.name, "-", "", "", "", "", _note(summary))
    first = summary.outcomes[0]
    return (
        summary.method.name,
        _percent(summary, "accuracy"),
        _percent(summary, "with_max_agreement"),
        str(first.passes),
        f"{round(first.training, 1):g}" if first.training else "",
        size_text(first.disk),
        _note(summary),
    )


def _percent(summary: Summary, fact: str) -> str:
    mean, error = summary.mean(fact), summary.error(fact)
    numbers = [f"{100 * number:.2f}" for number in (mean, error) if number is not None]
    return " ± ".join(numbers)


def _note(summary: Summary) -> str:
    if summary.failures:
        tried = len(summary.failures) + len(summary.outcomes)
        return f"failed in {len(summary.failures)} of {tried}: {summary.failures[0]}"
    first = summary.outcomes[0]
    if summary.method.oracle:
        return "an oracle: it looks at the truth"
    covered = summary.mean("coverage") or 0.0
    if covered < 1:
        sure = summary.selective_accuracy
        right = "" if sure is None else f", {sure:.1%} of them right"
        return f"answers {covered:.1%}{right}"
    if first.epoch is not None:
        return "epoch " + ", ".join(map(_epoch, summary.outcomes))
    return ""


def _epoch(outcome: Outcome) -> str:
    """Return an epoch, with its progress where they are not one and the same count."""
    if outcome.epoch is None or outcome.progress in (None, outcome.epoch + 1):
        return str(outcome.epoch)
    return f"{outcome.epoch} (progress {outcome.progress:g})"
