"""Compare methods over several repetitions."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from accord.errors import ChoiceError, PredictionError, TrainingError, counted, suggest
from accord.experiments.comparison._methods import (
    METHODS,
    NOT_FOR_BATCH_ENSEMBLES,
    Measurement,
    Method,
)
from accord.experiments.comparison._runs import (
    RunsOfRepetition,
    Trainer,
    repeated_spec,
    shared_spec,
)
from accord.report._text_table import text_table
from accord.training import Spec

if TYPE_CHECKING:
    from accord.training import OnProgress


@dataclass(frozen=True)
class MethodResult:
    """Measurements of a method over all repetitions."""

    method: Method
    measurements: tuple[Measurement, ...]
    failures: tuple[str, ...] = ()  # the reasons of repetitions without a measurement

    @property
    def accuracy(self) -> float:
        """Mean accuracy over the repetitions, or NaN without measurements."""
        mean = self.mean("accuracy")
        return math.nan if mean is None else mean

    @property
    def selective_accuracy(self) -> float | None:
        """Accuracy where the method does not abstain, or None if it abstains always or never."""
        covered = sum(one.coverage for one in self.measurements)
        if not 0 < covered < len(self.measurements):
            return None
        return sum(one.accuracy for one in self.measurements) / covered

    def mean(self, quantity: str) -> float | None:
        """Compute the mean of a measured field, or None if a measurement lacks it."""
        values = [getattr(one, quantity) for one in self.measurements]
        return None if None in values or not values else math.fsum(values) / len(values)

    def standard_error(self, quantity: str = "accuracy") -> float | None:
        """Compute the standard error of the mean, or None for one repetition."""
        mean, count = self.mean(quantity), len(self.measurements)
        if mean is None or count < 2:
            return None
        squares = sum((getattr(one, quantity) - mean) ** 2 for one in self.measurements)
        return math.sqrt(squares / (count - 1) / count)


@dataclass(frozen=True)
class Comparison:
    """Results of several methods on the same data."""

    spec: Spec
    repetitions: int
    out: Path
    methods: tuple[MethodResult, ...]
    notes: tuple[str, ...] = ()  # from training, without duplicates
    stopped: tuple[str, ...] = ()  # runs that could not be trained, with the reason

    @property
    def reference(self) -> str:
        """Labels that predictions are compared with, "truth" or "given"."""
        measured = (one.reference for result in self.methods for one in result.measurements)
        return next(measured, "truth")


def compare(
    spec: Spec,
    out: Path,
    *,
    methods: Sequence[str] | None = None,
    repetitions: int = 1,
    train: Trainer | None = None,
    progress: "OnProgress | None" = None,
    on_start: Callable[[str], None] | None = None,
) -> Comparison:
    """Train the missing runs and measure each method on the test samples.

    Methods share networks where they can. If one needs samples that no network was trained on,
    they are held out from all. Nothing is trained twice. A method that cannot be measured is
    listed with the reason, and the others continue.

    Args:
        spec: of the shared networks.
        out: a folder, with a subfolder for each run.
        methods: names; by default all.
        repetitions: each with other seeds.
        train: trains a spec into a folder; by default on this machine.
        progress: called after each epoch of training.
        on_start: called with a description before each run.

    Raises:
        ChoiceError: no such method, fewer than one repetition, or a network that cannot be built.
        PredictionError, TrainingError: no method could be measured.
    """
    from accord.training.networks import warn_once

    chosen = choose_methods(spec, methods)
    if repetitions < 1:
        raise ChoiceError(f"repetitions must be at least 1; got {repetitions}")
    shared = shared_spec(spec, validation=any(method.validation for method in chosen))
    measurements: dict[str, list[Measurement]] = {method.name: [] for method in chosen}
    failures: dict[str, list[str]] = {method.name: [] for method in chosen}
    first_error: PredictionError | TrainingError | None = None
    notes: list[str] = []
    stopped: list[str] = []
    with warn_once():
        for repetition in range(repetitions):
            again = repeated_spec(shared, repetition)
            runs = RunsOfRepetition(again, out, train, progress, on_start)
            for method in chosen:
                try:
                    measurements[method.name].append(method.measure(runs[method.run]))
                except (PredictionError, TrainingError) as error:
                    failures[method.name].append(str(error))
                    first_error = first_error or error
            notes += runs.notes
            stopped += runs.stopped
    if first_error is not None and not any(measurements.values()):
        raise first_error
    results = tuple(
        MethodResult(method, tuple(measurements[method.name]), tuple(failures[method.name]))
        for method in chosen
    )
    return Comparison(spec, repetitions, out, results, tuple(dict.fromkeys(notes)), tuple(stopped))


def choose_methods(spec: Spec, names: Sequence[str] | None) -> list[Method]:
    """Select methods by name, or all methods that can be measured for the spec."""
    excluded = NOT_FOR_BATCH_ENSEMBLES if spec.train.batch_ensemble else ()
    if names is None:
        return [method for name, method in METHODS.items() if name not in excluded]
    for name in names:
        if name not in METHODS:
            raise ChoiceError(f"no method is called {name!r}. {suggest(name, list(METHODS))}")
        if name in excluded:
            raise ChoiceError(
                f"{name} does not support a BatchEnsemble, whose members share their weights. "
                "Leave it out, or remove train.batch_ensemble."
            )
    return [METHODS[name] for name in dict.fromkeys(names)]


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Convert all measurements to JSON at full precision."""
    return {
        "name": comparison.spec.name,
        "repetitions": comparison.repetitions,
        "reference": comparison.reference,
        "methods": {one.method.name: _method_json(one) for one in comparison.methods},
        "notes": list(comparison.notes),
        "stopped": list(comparison.stopped),
    }


def _method_json(result: MethodResult) -> dict[str, Any]:
    failed = {"failures": list(result.failures)} if result.failures else {}
    if not result.measurements:
        return failed
    first, each = result.measurements[0], result.measurements
    values = {
        "accuracy": result.accuracy,
        "standard_error": result.standard_error(),
        "accuracies": [one.accuracy for one in each],
        "corrected": _corrected(result),
        "single": result.mean("single"),
        "with_max_agreement": result.mean("with_max_agreement"),
        "with_max_agreement_standard_error": result.standard_error("with_max_agreement"),
        "coverage": result.mean("coverage"),
        "selective_accuracy": result.selective_accuracy,
        "passes": first.passes,
        "training": first.training,
        "disk": first.disk,
        "epoch": first.epoch,
        "epochs": None if first.epoch is None else [one.epoch for one in each],
        "progress": None if first.epoch is None else [one.progress for one in each],
        "oracle": result.method.oracle,
    }
    return {name: value for name, value in values.items() if value is not None} | failed


def _corrected(result: MethodResult) -> dict[str, float] | None:
    """Compute the mean estimate of the accuracy and its mean interval."""
    means = {"accuracy": "corrected", "low": "low", "high": "high"}
    found = {key: mean for key, name in means.items() if (mean := result.mean(name)) is not None}
    return found or None


HEADINGS: Final = ("with MAP", "passes", "training", "weights", "")
GIVEN: Final = "agreement with the given labels, of which some may be wrong,"
CORRECTED: Final = "\ncorrected: the accuracy estimated from them, with its 95 % interval"
LEGEND: Final = """\
{measured} in %, ± standard error over repetitions; with MAP: max agreement over the
method's own networks and epochs; passes: forward passes for a new sample; training:
networks trained for this method only (npc: their share of the epochs; batch-ensemble:
each member counts); weights: of the networks needed for new samples"""


def comparison_text(comparison: Comparison) -> str:
    """Format the comparison as a table with a legend."""
    given = comparison.reference == "given"
    heads = "method", *(("agreement", "corrected") if given else ("accuracy",)), *HEADINGS
    rows = [_cells(one, given=given) for one in comparison.methods]
    lines = text_table(heads, rows, right=range(1, len(heads) - 1))
    legend = LEGEND.format(measured=GIVEN if given else "accuracy") + CORRECTED * given
    times = counted(comparison.repetitions, "repetition")
    return "\n".join(
        [f"{comparison.spec.name}: {times}, in {comparison.out}", "", *lines, "", legend]
    )


def _cells(result: MethodResult, *, given: bool) -> tuple[str, ...]:
    from accord.training._plan import size_text

    if not result.measurements:
        return (result.method.name, "-", *[""] * (4 + given), _note(result, given=given))
    first, estimate = result.measurements[0], _corrected(result)
    shares = {} if estimate is None else {key: f"{100 * one:.1f}" for key, one in estimate.items()}
    corrected = "{accuracy} ({low} to {high})".format(**shares) if shares else ""
    return (
        result.method.name,
        _percent(result, "accuracy"),
        *[corrected] * given,
        _percent(result, "with_max_agreement"),
        str(first.passes),
        f"{round(first.training, 1):g}" if first.training else "",
        size_text(first.disk),
        _note(result, given=given),
    )


def _percent(result: MethodResult, quantity: str) -> str:
    numbers = (result.mean(quantity), result.standard_error(quantity))
    return " ± ".join(f"{100 * number:.2f}" for number in numbers if number is not None)


def _note(result: MethodResult, *, given: bool) -> str:
    if result.failures:
        tried = len(result.failures) + len(result.measurements)
        return f"failed in {len(result.failures)} of {tried}: {result.failures[0]}"
    if result.method.oracle:
        return f"oracle: uses {'these given' if given else 'the true'} labels"
    covered = result.mean("coverage") or 0.0
    if covered < 1:
        accuracy = result.selective_accuracy
        equal = "as given" if given else "right"
        right = "" if accuracy is None else f", {accuracy:.1%} of them {equal}"
        return f"labels {covered:.1%}{right}"
    if result.measurements[0].epoch is not None:
        return "epoch " + ", ".join(map(_epoch, result.measurements))
    return ""


def _epoch(measurement: Measurement) -> str:
    """Format an epoch, with its progress if rows are not recorded once per epoch."""
    if measurement.epoch is None or measurement.progress in (None, measurement.epoch + 1):
        return str(measurement.epoch)
    return f"{measurement.epoch} (progress {measurement.progress:g})"
