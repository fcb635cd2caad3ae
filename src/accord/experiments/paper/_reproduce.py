"""Reproduce several targets: what can run does, and the rest is named with the reason."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from accord._version import __version__
from accord.errors import AccordError
from accord.experiments.comparison import compare
from accord.experiments.paper._analytic import THOUGHTS, think
from accord.experiments.paper._measure import draw_figure, measure, measure_figure
from accord.experiments.paper._protocols import Cell, check_data, place_spec
from accord.experiments.paper._required_runs import (
    ReproduceContext,
    Training,
    check_same,
    effort_of,
    records_of,
    repetitions_of,
    runs_of,
    settle_scale,
    trainings_of,
)
from accord.experiments.paper._results import (
    SCALES_KEPT,
    Result,
    load_result,
    load_results,
    result_path,
    row_of,
    save_result,
    write_summary,
)
from accord.experiments.paper._targets import Target, all_targets
from accord.rules import all_rules

POST_PROCESSING: Final = ("rog", "consensus", "npc", "max-agreement")
NEAR: Final = 1e-6  # percent or shares: what two machines may make of the same votes


@dataclass(frozen=True)
class Plan:
    """What reproducing a target comes to."""

    scale: str  # the one that this machine can train
    repetitions: int
    trainings: Sequence[Training]
    known: Result | None  # what was kept before
    enough: bool  # what was kept has to do: its records are gone, or it takes networks


def reproduce(
    target: Target,
    workshop: ReproduceContext,
    *,
    scale: str = "quick",
    repetitions: int | None = None,
) -> Result:
    """Train what is missing of a target, measure it, and keep the result.

    Writes `OUT/TARGET/SCALE.json` and `.md`, for a figure also `.svg` and `.png`. Runs lie below
    `OUT/runs` and are shared by all targets that train the same; started again, nothing is trained
    twice. What was kept is measured again wherever the records are there, and replaced if it
    differs; table 2, whose methods take the networks themselves, and what trains no network are
    measured once. Where a record was packed without probabilities, rules that take
    them keep what was measured before.

    Args:
        target: what to reproduce.
        workshop: where, and by what means.
        scale: a key of `SCALES`; without a GPU, quick becomes a stand-in.
        repetitions: how many, each with other seeds and other noise; by default the scale's. A
            figure shows one run.

    Raises:
        ChoiceError: the scale wants a GPU and there is none, or the target has no such scale.
        SourceError: data are missing, or a file in `OUT` is damaged.
        SpecError: `OUT` holds a result of this name that was trained otherwise.
        TrainingError: a network diverged.
        ExtraMissing: a figure is drawn with matplotlib, and it is not installed.
    """
    if target.kind in THOUGHTS:
        return think(target, workshop.out)
    plan = plan_target(target, workshop, scale=scale, repetitions=repetitions)
    if plan.known is not None and plan.enough:
        found = plan.known
    elif target.figure is not None:
        rows, numbers = measure_figure(target, target.figure, plan.scale, workshop, plan.known)
        measured = replace(_result(target, plan), rows=rows, numbers=numbers)
        found = _settle(measured, plan, workshop)
    else:
        found = _settle(_tabulate(target, plan, workshop), plan, workshop)
    save_result(found, workshop.out)
    if target.figure is not None:
        draw_figure(found, workshop.out, again=found is not plan.known)
    return found


def plan_target(
    target: Target,
    workshop: ReproduceContext,
    *,
    scale: str = "quick",
    repetitions: int | None = None,
) -> Plan:
    """Say what reproducing a target comes to; nothing is trained or written.

    Raises:
        ChoiceError, SourceError, SpecError: it cannot be reproduced, as of `reproduce`.
    """
    plan = _plan(target, workshop, scale, repetitions)
    if not plan.enough and not all(one.finished for one in plan.trainings):
        settled = settle_scale(scale, workshop)
        if settled != scale:
            plan = _plan(target, workshop, settled, repetitions)
    for one in () if plan.enough else plan.trainings:
        if target.kind == "post-processing" or not one.finished:
            check_data(one.cell, one.asked, workshop.data)
    return plan


def _plan(target: Target, workshop: ReproduceContext, scale: str, repetitions: int | None) -> Plan:
    count = repetitions_of(target, scale, repetitions)
    known = load_result(workshop.out, target.name, scale)
    if known is not None:
        check_same(known, runs_of(target, scale, count), workshop.out)
    wanted = count if known is None else max(count, known.repetitions)
    there = trainings_of(target, scale, wanted, out=workshop.out, data=workshop.data)
    once = target.kind == "post-processing" or not all(one.finished for one in there)
    enough = known is not None and known.repetitions >= count and once
    return Plan(scale, wanted, there, known, enough)


def _tabulate(target: Target, plan: Plan, workshop: ReproduceContext) -> Result:
    """Measure every repetition; a row that is missing in one has a reason.

    Where only some records hold probabilities, rules that take them are told of those.
    """
    (cell,) = target.cells.values()
    measured: list[dict[str, float]] = []
    failed: dict[str, str] = {}
    for seed, training in enumerate(plan.trainings):
        if target.kind == "post-processing":
            rows, failures = _post_process(training, workshop)
            where = f"repetition {seed}: " if plan.repetitions > 1 else ""
            failed = {row: f"{where}{why}" for row, why in failures.items()} | failed
        else:
            rows = _measure(target, cell, plan.scale, seed, workshop)
            for row, value in _recall(plan.known, seed).items():
                rows.setdefault(row, value)
        measured.append(rows)
    soft = _soft_rules()
    failed = _unmeasured(target, measured, soft) | failed
    rows_of_all = {
        row: row_of([one.get(row) for one in measured], target.published.get(row, ()))
        for row in max(measured, key=len)
        if row in soft or (row not in failed and all(row in one for one in measured))
    }
    return replace(_result(target, plan), rows=rows_of_all, failed=failed)


def _unmeasured(
    target: Target, measured: Sequence[Mapping[str, float]], soft: Sequence[str]
) -> dict[str, str]:
    """Say of each rule that takes probabilities where there were none for it."""
    why = "the record holds no probabilities"
    failed: dict[str, str] = {}
    for row in soft:
        without = [str(seed) for seed, one in enumerate(measured) if row not in one]
        if len(without) == len(measured):
            failed |= {row: why} if row in target.published else {}
        elif without:
            failed[row] = f"repetition {', '.join(without)}: {why}"
    return failed


def _recall(known: Result | None, seed: int) -> dict[str, float]:
    """Return what was kept of rules that take probabilities, which packing may have left out."""
    kept = {} if known is None or seed >= known.repetitions else known.rows
    values = {name: kept[name].values[seed] for name in _soft_rules() if name in kept}
    return {name: value for name, value in values.items() if value is not None}


def _soft_rules() -> list[str]:
    """Return the rules that take probabilities."""
    return [name for name, rule in all_rules().items() if "probabilities" in rule.needs]


def _measure(
    target: Target, cell: Cell, scale: str, seed: int, workshop: ReproduceContext
) -> dict[str, float]:
    records, specs = records_of({"noisy": cell}, scale, seed, workshop)
    members = specs["noisy"].train.batch_ensemble is not None
    return measure(target.kind, records["noisy"], batch_ensemble=members)


def _post_process(
    training: Training, workshop: ReproduceContext
) -> tuple[dict[str, float], dict[str, str]]:
    """Measure the methods of table 2, which need networks and a validation split."""
    found = compare(
        place_spec(training.asked, workshop.data),
        training.folder.parent,
        methods=POST_PROCESSING,
        train=workshop.train,
        progress=workshop.stopwatch(training.folder).moment,
        starting=workshop.starting,
    )
    rows = {one.method.name: 100 * one.accuracy for one in found.methods if one.outcomes}
    return rows, {one.method.name: one.failures[0] for one in found.methods if one.failures}


def _result(target: Target, plan: Plan) -> Result:
    runs = runs_of(target, plan.scale, plan.repetitions)
    about = (target.name, target.says, plan.scale, plan.repetitions)
    return Result(*about, runs=runs, version=__version__)


def _settle(measured: Result, plan: Plan, workshop: ReproduceContext) -> Result:
    """Return what was kept if it says the same, else what was measured, with its effort."""
    known = plan.known
    if known is not None and known.repetitions == measured.repetitions:
        if _says_the_same(known, measured):
            return known
        path = result_path(workshop.out, known.target, known.scale).with_suffix(".json")
        by = "an earlier Accord" if known.version is None else f"Accord {known.version}"
        workshop.tell(f"{path}: what {by} kept there is not what the records say; replaced")
    efforts = [effort_of(one.folder) for one in plan.trainings]
    costs = [one for one in efforts if one is not None]
    if len(costs) < len(efforts):  # the run came without its effort
        before = (None, None) if known is None else (known.machine, known.seconds)
        return replace(measured, machine=before[0], seconds=before[1])
    machines = "; ".join(dict.fromkeys(one["machine"] for one in costs))
    return replace(measured, machine=machines, seconds=sum(one["seconds"] for one in costs))


def _says_the_same(known: Result, measured: Result) -> bool:
    told = [
        (one["rows"], one.get("numbers"), one.get("failed"))
        for one in (known.as_json(), measured.as_json())
    ]
    return _near(*told)


def _near(one: Any, other: Any) -> bool:
    """Compare what JSON can hold, numbers with a tolerance."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_near(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_near, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=0, abs_tol=NEAR)
    return bool(one == other)


@dataclass(frozen=True)
class Failure:
    """Why a target could not be reproduced."""

    target: Target
    error: AccordError


def reproduce_all(
    targets: Sequence[Target],
    workshop: ReproduceContext,
    *,
    scale: str = "quick",
    repetitions: int | None = None,
) -> Iterator[Result | Failure]:
    """Reproduce the targets that can be, one after the other, and name the others.

    All are checked before the first is trained. The summary in `OUT` is brought up to date after
    each.

    Args:
        targets: what to reproduce.
        workshop: where, and by what means.
        scale: as of `reproduce`.
        repetitions: as of `reproduce`.

    Yields:
        Each result as soon as it is there; an obstacle for each target that failed in its turn;
        at last, one for each that could not begin.
    """
    obstacles = [
        Failure(target, error)
        for target in targets
        if (error := _why_not(target, workshop, scale, repetitions)) is not None
    ]
    if obstacles and len(targets) > 1:
        workshop.tell(f"{len(obstacles)} of {len(targets)} targets cannot run; why, at the end")
    stopped = {one.target.name for one in obstacles}
    for target in targets:
        if target.name not in stopped:
            try:
                result = reproduce(target, workshop, scale=scale, repetitions=repetitions)
            except AccordError as error:
                yield Failure(target, error)
            else:
                try:
                    sum_up(workshop)
                except AccordError as error:  # the result itself is kept
                    workshop.tell(str(error))
                yield result
    yield from obstacles


def _why_not(
    target: Target, workshop: ReproduceContext, scale: str, repetitions: int | None
) -> AccordError | None:
    if target.kind in THOUGHTS:
        return None
    try:
        plan_target(target, workshop, scale=scale, repetitions=repetitions)
    except AccordError as error:
        return error
    return None


def sum_up(workshop: ReproduceContext) -> None:
    """Bring the summary in `OUT` up to date; a damaged result is named and left out.

    Others may end at the same moment: what they kept meanwhile is looked for once more.
    """
    before: list[Result] | None = None
    while (found := _all_results(workshop)) != before:
        write_summary(found, workshop.out)
        before = found


def _all_results(workshop: ReproduceContext) -> list[Result]:
    return load_results(workshop.out, all_targets().values(), SCALES_KEPT, say=workshop.say)
