"""Store and format the results of targets."""

import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from accord._files import storage_errors, write_file
from accord.errors import AccordError, SourceError, counted
from accord.experiments.paper._protocols import SCALES
from accord.experiments.paper._targets import Target

FORMAT: Final = 1
NO_SCALE: Final = "none"  # of targets that train no network
STAND_IN: Final = "stand-in"
STAND_IN_NOTE: Final = "digits replace the paper's data: compare only the order of the rows"
PICTURES: Final = (".svg", ".png")
Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class TableRow:
    """Row of a table with accuracies in percent or numbers of networks."""

    ours: float  # mean over repetitions
    standard_error: float | None  # of ours; None for one repetition
    values: tuple[float | None, ...]  # by repetition; None where not measured
    paper: float | None = None
    paper_error: float | None = None

    @property
    def difference(self) -> float | None:
        """Difference from the value in the paper."""
        return None if self.paper is None else self.ours - self.paper


@dataclass(frozen=True)
class Result:
    """Result of a target at a scale."""

    target: str
    description: str
    scale: str
    repetitions: int
    rows: Mapping[str, TableRow] = field(default_factory=dict)
    numbers: Numbers | None = None  # of a figure, or of a target that trains no network
    runs: Mapping[str, Sequence[str]] = field(default_factory=dict)  # role -> runs, by repetition
    machine: str | None = None  # that trained
    seconds: float | None = None  # of training, over all runs
    failed: Mapping[str, str] = field(default_factory=dict)  # row -> reason
    version: str | None = None  # of Accord

    @property
    def comparable(self) -> bool:
        """Whether the networks were trained on the data of the paper."""
        return self.scale != STAND_IN

    def as_json(self) -> dict[str, Any]:
        """Convert the result to JSON, with accuracies in percent."""
        rows = {}
        for name, row in self.rows.items():
            rows[name] = {key: value for key, value in asdict(row).items() if value is not None}
            if self.comparable and row.difference is not None:
                rows[name]["difference"] = row.difference
        values = {
            "says" if key == "description" else key: value
            for key, value in vars(self).items()
            if value is not None and (key != "failed" or value)
        }
        return {"format": FORMAT, **values, "rows": rows, "runs": dict(self.runs)}


def row_of(values: Sequence[float | None], published: Sequence[float] = ()) -> TableRow:
    """Build a row from the mean of the repetitions and the published number.

    >>> row_of([89.0, 91.0], [90.0, 0.1])
    TableRow(ours=90.0, standard_error=1.0, values=(89.0, 91.0), paper=90.0, paper_error=0.1)
    """
    measured = [one for one in values if one is not None]
    count, mean = len(measured), math.fsum(measured) / len(measured)
    error = None
    if count > 1:
        error = math.sqrt(math.fsum((one - mean) ** 2 for one in measured) / (count - 1) / count)
    paper, paper_error = (*published, None, None)[:2]
    return TableRow(mean, error, tuple(values), paper, paper_error)


def result_path(out: Path, target: str, scale: str) -> Path:
    return out / target / scale


def is_drawn(out: Path, target: str, scale: str) -> bool:
    path = result_path(out, target, scale)
    return all(path.with_suffix(suffix).exists() for suffix in PICTURES)


def save_result(result: Result, out: Path) -> None:
    path = result_path(out, result.target, result.scale)
    _write_changed(path.with_suffix(".json"), json.dumps(result.as_json(), indent=1))
    _write_changed(path.with_suffix(".md"), result_text(result))


def _write_changed(path: Path, text: str) -> None:
    data = f"{text}\n".encode()
    with storage_errors(path, "write"):
        if path.exists() and path.read_bytes() == data:
            return
    write_file(path, data)


def load_result(out: Path, target: str, scale: str) -> Result | None:
    path = result_path(out, target, scale).with_suffix(".json")
    try:
        if not path.exists():
            return None
        stored = json.loads(path.read_text("utf-8"))
        version = stored.pop("format")
        if version == FORMAT:
            for row in stored["rows"].values():
                row.pop("difference", None)
            rows = {
                name: TableRow(**{"standard_error": None, **row, "values": tuple(row["values"])})
                for name, row in stored.pop("rows").items()
            }
            runs = {role: list(names) for role, names in stored.pop("runs").items()}
            description = stored.pop("says")
            result = Result(**stored, description=description, rows=rows, runs=runs)
            _check_result(result, target, scale)
            return result
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(
            f"{path}: not a readable result ({error}). Remove it, or give another --out."
        ) from error
    raise SourceError(
        f"{path}: a result in format {version}; this version of Accord reads format {FORMAT}. "
        "Remove it, or give another --out."
    )


def _check_result(result: Result, target: str, scale: str) -> None:
    """Check that a result can be printed and belongs to the target and scale."""
    result_text(result)
    operator.index(result.repetitions)
    if (result.target, result.scale) != (target, scale):
        raise ValueError(f"it belongs to {result.target} at the scale {result.scale}")
    for name, row in result.rows.items():
        if len(row.values) != result.repetitions:
            values = counted(len(row.values), "value")
            raise ValueError(f"{name} has {values} for {counted(result.repetitions, 'repetition')}")


def load_results(
    out: Path, targets: Iterable[Target], *, notify: Callable[[str], None] | None = None
) -> list[Result]:
    """Load all stored results and call `notify` for each unreadable file."""
    results = []
    for target in targets:
        for scale in (*SCALES, NO_SCALE):
            try:
                found = load_result(out, target.name, scale)
            except AccordError as error:
                if notify is not None:
                    notify(str(error))
                continue
            if found is not None:
                results.append(found)
    return results


def result_text(result: Result) -> str:
    """Format a result as a Markdown heading and table."""
    effort = "" if result.machine is None else f", {result.machine}"
    if result.seconds is not None:
        effort += f", {result.seconds / 60:.1f} minutes of training"
    single = result.numbers is not None and result.scale != NO_SCALE
    note = " (a figure shows one run)" if single else ""
    head = [
        f"{result.target}: {result.description}",
        f"scale {result.scale}, {counted(result.repetitions, 'repetition')}{note}{effort}",
    ]
    if not result.comparable:
        head.append(STAND_IN_NOTE)
    if result.scale == NO_SCALE:
        head += findings_of(result.target, result.numbers or {})
    parts = [head, _table(result)] if result.rows else [head]
    if result.failed:
        parts.append([f"not measured: {row}: {why}" for row, why in result.failed.items()])
    return "\n\n".join("\n".join(lines) for lines in parts)


def _table(result: Result) -> list[str]:
    cells = [("", "paper", "ours", "difference")]
    cells += [_cells(name, row, result.comparable) for name, row in result.rows.items()]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    lines = []
    for first, *rest in cells:
        padded = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("| " + " | ".join([first.ljust(widths[0]), *padded]) + " |")
    separator = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [lines[0], separator, *lines[1:]]


def _cells(name: str, row: TableRow, comparable: bool) -> tuple[str, str, str, str]:
    paper = "" if row.paper is None else f"{row.paper:.1f}"
    if row.paper_error is not None:
        paper += f" ± {row.paper_error:g}"  # as published: some are below 0.05
    known = comparable and row.difference is not None
    difference = f"{row.difference:+.1f}" if known else ""
    if name.endswith("-networks"):
        return name, paper, f"{row.ours:.3g} networks", difference
    error = "" if row.standard_error is None else f" ± {row.standard_error:.2f}"
    return name, paper, f"{row.ours:.2f}{error}", difference


def write_summary(results: Sequence[Result], out: Path) -> None:
    """Write the summary of all results as Markdown if it has changed."""
    lines = ["# Reproduced", "", "Accuracies in percent, the paper's beside ours.", ""]
    if not all(result.comparable for result in results):
        lines += [f"At the scale {STAND_IN}, {STAND_IN_NOTE}.", ""]
    lines += ["| target | scale | repetitions | row | paper | ours | difference |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for result in results:
        key = f"{result.target} | {result.scale} | {result.repetitions}"
        lines += [f"| {key} | {' | '.join(cells)} |" for cells in _summary_cells(result)]
    _write_changed(out / "results.md", "\n".join(lines))


def _summary_cells(result: Result) -> Iterator[tuple[str, ...]]:
    """Yield the summary rows of a result, or a link if it has no rows."""
    if not result.rows:
        path = result_path(Path(), result.target, result.scale).with_suffix(".md")
        yield f"[measurements]({path.as_posix()})", "", "", ""
    for name, row in result.rows.items():
        if row.paper is not None or name.startswith("max-agreement"):
            yield _cells(name, row, result.comparable)
    for name in result.failed:
        if name not in result.rows:
            yield name, "", "not measured", ""


def findings_of(target: str, numbers: Numbers) -> list[str]:
    """Describe the findings of a target that requires no training.

    >>> wrong = {"networks": [0.02, 0.05], "majority": 0.018, "max-agreement": 0.015}
    >>> findings_of("figure9", {"wrong": wrong, "epochs": 18, "false": {"agreement": 0.2}})[0]
    'wrong in % of the plane: the networks 2.0, 5.0; their majority 1.8; max agreement 1.5'
    """
    if target not in ("theory", "figure9"):
        return []
    lines = _theory_findings(numbers) if target == "theory" else _toy_findings(numbers)
    return [*lines, "explanation: docs/explanation/theory.md"]


def _theory_findings(numbers: Numbers) -> list[str]:
    smallest = min(numbers["signs"], key=lambda one: float(one["rate"]))
    missed = sum(one["missed_exactly"] for one in numbers["signs"])
    below = [one for one in numbers["contraction"] if one["rate"] < 2]
    draws, contracting = (sum(one[key] for one in below) for key in ("draws", "contracting"))
    limits, within = (
        sum(one[key] for one in numbers["limits"]) for key in ("draws", "within_bound")
    )
    held = (missed == 0) + (draws == contracting) + (limits == within)
    shared, own = (numbers["outcomes"][name] for name in ("shared", "own-noise"))
    return [
        f"{'the lemmas hold' if held == 3 else f'{held} of 3 lemmas hold'}; the theorem's "
        f"conclusion {'does too' if shared['rose'] == shared['overfit'] else 'does not'}, "
        "in its own setting",
        f"lemma 1, when a network overfits: misses {smallest['missed']} of {smallest['steps']} "
        f"steps at rate {smallest['rate']:g}, and with its term of second order {missed} at any",
        f"lemma 2, training contracts: in {contracting} of {draws} draws at rates below 2",
        "lemma 3, the mean network converges to the closed form: within its bound in "
        f"{within} of {limits} draws",
        f"theorem, one training set for all: disagreement rises in {shared['rose']} of "
        f"{shared['overfit']} steps where all networks overfit; with independent label noise: in "
        f"{own['rose']} of {own['overfit']}",
    ]


def _toy_findings(numbers: Numbers) -> list[str]:
    wrong = numbers["wrong"]
    networks = ", ".join(f"{100 * one:.1f}" for one in wrong["networks"])
    agreement = numbers["false"]["agreement"]
    return [
        f"wrong in % of the plane: the networks {networks}; their majority "
        f"{100 * wrong['majority']:.1f}; max agreement {100 * wrong['max-agreement']:.1f}",
        f"at the wrong label all networks are wrong in the end; {agreement:.0%} of their votes "
        f"over {numbers['epochs']} epochs are for it, so max agreement is "
        f"{'right' if agreement < 0.5 else 'wrong'} there",
    ]
