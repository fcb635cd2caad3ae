"""What came out of a target: the paper's numbers beside ours, as JSON and as tables."""

import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from accord.errors import AccordError, SourceError, counted
from accord.experiments.paper._protocols import SCALES
from accord.experiments.paper._targets import Target
from accord.store._storage import Folder

Numbers = Mapping[str, Any]
MORE: Final = "what that means: docs/explanation/theory.md"


def finding_of(target: str, numbers: Numbers) -> list[str]:
    """Say what a target's numbers show; nothing for a target that trains networks.

    >>> wrong = {"networks": [0.02, 0.05], "majority": 0.018, "max-agreement": 0.015}
    >>> finding_of("figure9", {"wrong": wrong, "epochs": 18, "false": {"agreement": 0.2}})[0]
    'wrong in % of the plane: the networks 2.0, 5.0; their majority 1.8; max agreement 1.5'
    """
    return FINDINGS[target](numbers) if target in FINDINGS else []


def _theory(numbers: Numbers) -> list[str]:
    lemmas = [_signs(numbers["signs"]), _contraction(numbers["contraction"])]
    lemmas.append(_limits(numbers["limits"]))
    shared, own = (numbers["outcomes"][name] for name in ("shared", "own-noise"))
    held = sum(holds for holds, _ in lemmas)
    first = "the lemmas hold" if held == len(lemmas) else f"{held} of {len(lemmas)} lemmas hold"
    does = "does too" if shared["rose"] == shared["overfit"] else "does not"
    return [
        f"{first}; the theorem's conclusion {does}, in its own setting",
        *(line for _, line in lemmas),
        f"theorem, one training set for all: disagreement rises in {_of(shared)} steps where all "
        f"networks overfit; each with label noise of its own: in {_of(own)}",
        MORE,
    ]


def _of(outcome: Numbers) -> str:
    return f"{outcome['rose']} of {outcome['overfit']}"


def _signs(found: list[Numbers]) -> tuple[bool, str]:
    smallest = min(found, key=lambda one: float(one["rate"]))
    exactly = sum(one["missed_exactly"] for one in found)
    return exactly == 0, (
        f"lemma 1, when a network overfits: misses {smallest['missed']} of {smallest['steps']} "
        f"steps at rate {smallest['rate']:g}, and with its term of second order {exactly} at any"
    )


def _contraction(found: list[Numbers]) -> tuple[bool, str]:
    below = [one for one in found if one["rate"] < 2]
    draws, contracting = (sum(one[key] for one in below) for key in ("draws", "contracting"))
    return draws == contracting, (
        f"lemma 2, training contracts: in {contracting} of {draws} draws at rates below 2"
    )


def _limits(found: list[Numbers]) -> tuple[bool, str]:
    draws, within = (sum(one[key] for one in found) for key in ("draws", "within_bound"))
    return draws == within, (
        f"lemma 3, the mean network tends to the closed form: within its bound in {within} of "
        f"{draws} draws"
    )


def _toy(numbers: Numbers) -> list[str]:
    wrong = {name: 100 * wrong for name, wrong in numbers["wrong"].items() if name != "networks"}
    networks = ", ".join(f"{100 * one:.1f}" for one in numbers["wrong"]["networks"])
    agreement = numbers["false"]["agreement"]
    answer = "right" if agreement < 0.5 else "wrong"
    return [
        f"wrong in % of the plane: the networks {networks}; their majority "
        f"{wrong['majority']:.1f}; max agreement {wrong['max-agreement']:.1f}",
        f"at the false label all networks are wrong in the end; {agreement:.0%} of their votes "
        f"over {numbers['epochs']} epochs are for it, so max agreement is {answer} there",
        MORE,
    ]


FINDINGS: Final[Mapping[str, Callable[[Numbers], list[str]]]] = {"theory": _theory, "figure9": _toy}


FORMAT: Final = 1
SUMMARY: Final = "results.md"
THOUGHT: Final = "thought"  # the scale of what trains no network
STAND_IN: Final = "stand-in"
ON_DIGITS: Final = "digits stand in for the paper's data: compare the order of the rows alone"
SCALES_KEPT: Final = (*SCALES, THOUGHT)
PICTURES: Final = (".svg", ".png")
COUNT: Final = "-networks"  # the end of a row's name that holds a number of networks


@dataclass(frozen=True)
class Row:
    """One row of a table: accuracies in percent, or numbers of networks."""

    ours: float
    standard_error: float | None  # of ours over repetitions; None for one
    values: tuple[float | None, ...]  # ours, by repetition; None where it was not measured
    paper: float | None = None
    paper_error: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None else self.ours - self.paper


@dataclass(frozen=True)
class Result:
    """What came out of one target at one scale."""

    target: str
    says: str
    scale: str
    repetitions: int
    rows: Mapping[str, Row] = field(default_factory=dict)
    numbers: Mapping[str, Any] | None = None  # what a figure shows
    runs: Mapping[str, Sequence[str]] = field(default_factory=dict)  # role -> runs, by repetition
    machine: str | None = None  # that trained
    seconds: float | None = None  # of training, all runs together
    failed: Mapping[str, str] = field(default_factory=dict)  # row -> why and where not measured
    version: str | None = None  # of Accord, that measured

    @property
    def comparable(self) -> bool:
        """Whether the paper's data were trained on, so that a difference means something."""
        return self.scale != STAND_IN

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON holds it; accuracies in percent."""
        rows = {}
        for name, row in self.rows.items():
            rows[name] = {key: value for key, value in asdict(row).items() if value is not None}
            if self.comparable and row.difference is not None:
                rows[name]["difference"] = row.difference
        facts = {key: value for key, value in vars(self).items() if value is not None}
        if not self.failed:
            del facts["failed"]
        return {"format": FORMAT, **facts, "rows": rows, "runs": dict(self.runs)}


def row_of(values: Sequence[float | None], published: Sequence[float] = ()) -> Row:
    """Sum up the repetitions of one row that were measured, beside what the paper says.

    >>> row_of([89.0, 91.0], [90.0, 0.1])
    Row(ours=90.0, standard_error=1.0, values=(89.0, 91.0), paper=90.0, paper_error=0.1)
    """
    measured = [one for one in values if one is not None]
    count, mean = len(measured), math.fsum(measured) / len(measured)
    error = None
    if count > 1:
        error = math.sqrt(math.fsum((one - mean) ** 2 for one in measured) / (count - 1) / count)
    paper, paper_error = (*published, None, None)[:2]
    return Row(mean, error, tuple(values), paper, paper_error)


def result_path(out: Path, target: str, scale: str) -> Path:
    """Return where a result is kept, without its ending."""
    return out / target / scale


def is_drawn(out: Path, target: str, scale: str) -> bool:
    """Tell whether a target's pictures are there."""
    path = result_path(out, target, scale)
    return all(path.with_suffix(ending).exists() for ending in PICTURES)


def save_result(result: Result, out: Path) -> None:
    """Keep a result as JSON and as a table in Markdown; what is there already is not touched."""
    path = result_path(out, result.target, result.scale)
    place = Folder(path.parent)
    _put(place, f"{path.name}.json", json.dumps(result.as_json(), indent=1))
    _put(place, f"{path.name}.md", result_text(result))


def _put(place: Folder, name: str, text: str) -> None:
    data = f"{text}\n".encode()
    if place.get(name) != data:
        place.put(name, data)


def load_result(out: Path, target: str, scale: str) -> Result | None:
    """Return a result that was kept, or None.

    Raises:
        SourceError: a file is there that is no result, cannot be read, is of another target or
            scale, or of a form this Accord does not know.
    """
    path = result_path(out, target, scale).with_suffix(".json")
    try:
        if not path.exists():
            return None
        facts = json.loads(path.read_text("utf-8"))
        form = facts.pop("format")
        if form == FORMAT:
            for row in facts["rows"].values():
                row.pop("difference", None)
            rows = {name: _row(row) for name, row in facts.pop("rows").items()}
            runs = {role: list(names) for role, names in facts.pop("runs").items()}
            result = Result(**facts, rows=rows, runs=runs)
            _check_result(result, target, scale)
            return result
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(
            f"{path}: not a result that can be read ({error}). Remove it, or give another --out."
        ) from error
    raise SourceError(
        f"{path}: a result in form {form}; this Accord reads form {FORMAT}. "
        "Remove it, or give another --out."
    )


def _check_result(result: Result, target: str, scale: str) -> None:
    """Refuse with a ValueError or TypeError what cannot be told, or is told of something else."""
    result_text(result)
    operator.index(result.repetitions)
    if (result.target, result.scale) != (target, scale):
        raise ValueError(f"it is of {result.target} at the scale {result.scale}")
    for name, row in result.rows.items():
        if len(row.values) != result.repetitions:
            there = counted(len(row.values), "value")
            raise ValueError(f"{name} has {there} for {counted(result.repetitions, 'repetition')}")


def _row(facts: dict[str, Any]) -> Row:
    error = facts.pop("standard_error", None)
    return Row(standard_error=error, values=tuple(facts.pop("values")), **facts)


def load_results(
    out: Path,
    targets: Iterable[Target],
    scales: Iterable[str],
    *,
    say: Callable[[str], None] | None = None,
) -> list[Result]:
    """Return all results that were kept, target by target.

    A file that is no result is left out, and `say` is told.
    """
    names = list(scales)
    results = []
    for target in targets:
        for scale in names:
            try:
                found = load_result(out, target.name, scale)
            except AccordError as error:
                if say is not None:
                    say(str(error))
                continue
            if found is not None:
                results.append(found)
    return results


def result_text(result: Result) -> str:
    """Return a table in Markdown, under a line that says what it is."""
    head = [f"{result.target}: {result.says}", _about(result)]
    if not result.comparable:
        head.append(ON_DIGITS)
    if result.scale == THOUGHT:
        head += finding_of(result.target, result.numbers or {})
    parts = [head, _table(result)] if result.rows else [head]
    if result.failed:
        parts.append([f"not measured: {row}: {why}" for row, why in result.failed.items()])
    return "\n\n".join("\n".join(lines) for lines in parts)


def _about(result: Result) -> str:
    count = result.repetitions
    about = f"scale {result.scale}, {counted(count, 'repetition')}"
    if result.numbers is not None and result.scale != THOUGHT:
        about += " (a figure shows one run)"
    return about + _effort(result)


def _table(result: Result) -> list[str]:
    cells = [("", "paper", "ours", "difference")]
    cells += [_cells(name, row, result.comparable) for name, row in result.rows.items()]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    lines = [_line(row, widths) for row in cells]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [lines[0], rule, *lines[1:]]


def _effort(result: Result) -> str:
    effort = "" if result.machine is None else f", {result.machine}"
    if result.seconds is not None:
        effort += f", {result.seconds / 60:.1f} minutes of training"
    return effort


def _cells(name: str, row: Row, comparable: bool) -> tuple[str, str, str, str]:
    paper = "" if row.paper is None else f"{row.paper:.1f}"
    if row.paper_error is not None:
        paper += f" ± {row.paper_error:g}"  # as published: some are below 0.05
    known = comparable and row.difference is not None
    difference = f"{row.difference:+.1f}" if known else ""
    if name.endswith(COUNT):
        return name, paper, f"{row.ours:.3g} networks", difference
    error = "" if row.standard_error is None else f" ± {row.standard_error:.2f}"
    return name, paper, f"{row.ours:.2f}{error}", difference


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        cell.ljust(width) if place == 0 else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "| " + " | ".join([first, *rest]) + " |"


def write_summary(results: Sequence[Result], out: Path) -> None:
    """Keep all results as one page in Markdown, unless it is there already."""
    lines = ["# Reproduced", "", "Accuracies in percent, the paper's beside ours.", ""]
    if not all(result.comparable for result in results):
        lines += [f"At the scale {STAND_IN}, {ON_DIGITS}.", ""]
    lines += ["| target | scale | repetitions | row | paper | ours | difference |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for result in results:
        about = f"{result.target} | {result.scale} | {result.repetitions}"
        lines += [f"| {about} | {' | '.join(cells)} |" for cells in _summed_up(result)]
    _put(Folder(out), SUMMARY, "\n".join(lines))


def _summed_up(result: Result) -> Iterator[tuple[str, ...]]:
    """Yield the rows that a summary tells; where there is none, where to look."""
    if not result.rows:
        path = result_path(Path(), result.target, result.scale).with_suffix(".md")
        yield f"[what it shows]({path.as_posix()})", "", "", ""
    for name, row in result.rows.items():
        if row.paper is not None or name.startswith("max-agreement"):
            yield _cells(name, row, result.comparable)
    for name in result.failed:
        if name not in result.rows:
            yield name, "", "not measured", ""
