"""A comparison as text for people and as JSON for programs."""

from typing import Any, Final

from accord.errors import counted
from accord.experiments.comparison.compare import Comparison, Summary
from accord.experiments.comparison.methods import Outcome
from accord.training.plan import size_text

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
