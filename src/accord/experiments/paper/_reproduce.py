"""Reproduce the targets of the paper.

Every target is planned before the first is trained, so that missing data show at once. A target
that fails does not stop the others. It is returned with the reason.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from accord._version import __version__
from accord.errors import AccordError
from accord.experiments.paper._measure_targets import (
    MEASURE_BY_KIND,
    draw_figure,
    measure_table,
    run_analytic,
)
from accord.experiments.paper._protocols import check_data
from accord.experiments.paper._required_runs import (
    ReproduceContext,
    TargetPlan,
    check_same_runs,
    cost_of,
    repetitions_of,
    required_runs,
    run_names,
    settle_scale,
    train_missing,
)
from accord.experiments.paper._results import (
    Result,
    load_result,
    load_results,
    result_path,
    save_result,
    write_summary,
)
from accord.experiments.paper._targets import ANALYTIC, Target, all_targets

TOLERANCE: Final = 1e-6  # of percentages and shares: machines differ in rounding


def reproduce(
    target: Target,
    context: ReproduceContext,
    *,
    scale: str = "quick",
    repetitions: int | None = None,
) -> Result:
    """Train the missing runs of a target, measure it and store the result.

    Writes `OUT/TARGET/SCALE.json` and `.md`, for a figure also `.svg` and `.png`. Runs lie below
    `OUT/runs` and are shared by all targets with the same training. Nothing is trained twice. A
    stored result is measured again if its records still exist, and replaced if it differs, except
    for table 2, whose methods need the networks, and for targets that train no network. Where a
    record was packed without probabilities, the stored values of rules that need them are kept.

    Args:
        target: what to reproduce.
        context: folders, trainer and callbacks.
        scale: a key of `SCALES`; without a GPU, quick becomes stand-in.
        repetitions: each with another seed and other noise; by default that of the scale. A
            figure shows one run.

    Raises:
        ChoiceError: the scale requires a GPU and there is none, or the target has no such scale.
        SourceError: data are missing, or a file in `OUT` is damaged.
        SpecError: `OUT` holds a result of other runs under this name.
        TrainingError: a network diverged.
        ExtraMissing: a figure requires matplotlib.
    """
    if target.kind in ANALYTIC:
        return run_analytic(target, context.out)
    plan = plan_target(target, context, scale, repetitions)
    return _reproduce_plan(plan, context)


def plan_target(
    target: Target, context: ReproduceContext, scale: str, repetitions: int | None
) -> TargetPlan:
    """Plan a target without training or writing anything. Raises as `reproduce`."""
    plan = _plan_at_scale(target, context, scale, repetitions)
    if not plan.keep_known and not all(required.finished for required in plan.runs):
        settled = settle_scale(scale, context)
        if settled != scale:
            plan = _plan_at_scale(target, context, settled, repetitions)
    for required in () if plan.keep_known else plan.runs:
        if target.kind == "post-processing" or not required.finished:
            check_data(required.cell, required.cell_spec, context.data)
    return plan


def _plan_at_scale(
    target: Target, context: ReproduceContext, scale: str, repetitions: int | None
) -> TargetPlan:
    count = repetitions_of(target, scale, repetitions)
    known = load_result(context.out, target.name, scale)
    if known is not None:
        check_same_runs(known, run_names(target, scale, count), context.out)
    wanted = count if known is None else max(count, known.repetitions)
    runs = required_runs(target, scale, wanted, out=context.out, data=context.data)
    finished = all(required.finished for required in runs)
    needs_training = target.kind == "post-processing" or not finished
    keep_known = known is not None and known.repetitions >= count and needs_training
    return TargetPlan(target, scale, wanted, runs, known, keep_known)


def _reproduce_plan(plan: TargetPlan, context: ReproduceContext) -> Result:
    if plan.known is not None and plan.keep_known:
        result = plan.known
    else:
        for required in plan.runs if plan.target.kind != "post-processing" else ():
            train_missing(required, context)
        measure = MEASURE_BY_KIND.get(plan.target.kind, measure_table)
        result = Result(
            plan.target.name,
            plan.target.description,
            plan.scale,
            plan.repetitions,
            runs=run_names(plan.target, plan.scale, plan.repetitions),
            version=__version__,
            **measure(plan, context),
        )
        result = _keep_if_same(result, plan, context)
    save_result(result, context.out)
    if plan.target.figure is not None:
        draw_figure(result, context.out, redraw=result is not plan.known)
    return result


def _keep_if_same(measured: Result, plan: TargetPlan, context: ReproduceContext) -> Result:
    """Keep the known result if the new one is equal, and add the cost to the new one otherwise."""
    known = plan.known
    if known is not None and known.repetitions == measured.repetitions:
        before, now = (
            [one.as_json().get(key) for key in ("rows", "numbers", "failed")]
            for one in (known, measured)
        )
        if _near(before, now):
            return known
        path = result_path(context.out, known.target, known.scale).with_suffix(".json")
        by = "an earlier version of Accord" if known.version is None else f"Accord {known.version}"
        context.notify(f"{path}: replaced the result of {by}, which differs from the records")
    costs = [cost for required in plan.runs if (cost := cost_of(required.run.path)) is not None]
    if len(costs) < len(plan.runs):  # the run was copied here without its cost
        machine, seconds = (None, None) if known is None else (known.machine, known.seconds)
        return replace(measured, machine=machine, seconds=seconds)
    machines = "; ".join(dict.fromkeys(one["machine"] for one in costs))
    return replace(measured, machine=machines, seconds=sum(one["seconds"] for one in costs))


def _near(one: Any, other: Any) -> bool:
    """Compare JSON values with a tolerance for numbers."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_near(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_near, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=0, abs_tol=TOLERANCE)
    return bool(one == other)


@dataclass(frozen=True)
class Failure:
    """Target that could not be reproduced, with the reason."""

    target: Target
    error: AccordError


def reproduce_all(
    targets: Sequence[Target],
    context: ReproduceContext,
    *,
    scale: str = "quick",
    repetitions: int | None = None,
) -> Iterator[Result | Failure]:
    """Reproduce several targets in sequence, continuing after failures.

    All targets are planned before the first is trained. The summary in `OUT` is updated after each.

    Args:
        targets: what to reproduce.
        context: folders, trainer and callbacks.
        scale: as in `reproduce`.
        repetitions: as in `reproduce`.

    Yields:
        Each result as soon as it is stored, a failure for each target that failed in its turn, and
        last a failure for each target that could not start.
    """
    plans, failures = _plan_all(targets, context, scale, repetitions)
    if failures and len(targets) > 1:
        context.notify(f"{len(failures)} of {len(targets)} targets cannot run; reasons at the end")
    for target in targets:
        if target.name in failures:
            continue
        try:
            if target.kind in ANALYTIC:
                result = run_analytic(target, context.out)
            else:
                result = _reproduce_plan(plans[target.name], context)
        except AccordError as error:
            yield Failure(target, error)
        else:
            update_summary(context)
            yield result
    yield from failures.values()


def _plan_all(
    targets: Sequence[Target], context: ReproduceContext, scale: str, repetitions: int | None
) -> tuple[dict[str, TargetPlan], dict[str, Failure]]:
    plans: dict[str, TargetPlan] = {}
    failures: dict[str, Failure] = {}
    for target in targets:
        if target.kind not in ANALYTIC:
            try:
                plans[target.name] = plan_target(target, context, scale, repetitions)
            except AccordError as error:
                failures[target.name] = Failure(target, error)
    return plans, failures


def update_summary(context: ReproduceContext) -> None:
    # Another process may store a result while this one writes: read until nothing changes.
    before: list[Result] | None = None
    try:
        while True:
            found = load_results(context.out, all_targets().values(), notify=context.notify)
            if found == before:
                return
            write_summary(found, context.out)
            before = found
    except AccordError as error:  # the result itself is stored
        context.notify(str(error))
