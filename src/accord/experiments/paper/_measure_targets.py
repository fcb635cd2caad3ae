"""Measure the tables and figures of a target."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from accord._record import Record
from accord._version import __version__
from accord.analysis import by_networks, score
from accord.data.readers import read_dataset
from accord.errors import SourceError
from accord.experiments.comparison import compare
from accord.experiments.paper._figure_numbers import Setting, figure_numbers
from accord.experiments.paper._protocols import missing_data, resolve_data
from accord.experiments.paper._required_runs import ReproduceContext, TargetPlan
from accord.experiments.paper._results import (
    NO_SCALE,
    PICTURES,
    STAND_IN,
    Result,
    is_drawn,
    load_result,
    result_path,
    row_of,
    save_result,
)
from accord.experiments.paper._targets import Target
from accord.experiments.theory import run_theory, run_toy
from accord.rules import all_rules
from accord.training import Spec

Fields = dict[str, Any]  # of a Result
AGREED: Final = {"max-agreement": "max-agreement"}
# By kind of target, the rule of each row; the kind "rules" has a row for each rule.
RULES: Final[Mapping[str, Mapping[str, str]]] = {
    "elr": {"elr": "single", "elr-ensemble": "majority", "elr-max-agreement": "max-agreement"},
    "ablation": {"single": "single", "ensemble": "majority", **AGREED},
}


def measure_table(plan: TargetPlan, _: ReproduceContext) -> Fields:
    kind, measured = plan.target.kind, []
    for seed, required in enumerate(plan.runs):
        record, rules = required.open_record(), RULES.get(kind)
        if kind == "ensemble":
            # A BatchEnsemble's authors average probabilities, those of a hyper-ensemble vote.
            members = required.run.spec.train.batch_ensemble
            rules = {"original": "probability-average" if members else "majority", **AGREED}
        if kind == "sizes":
            rows = _sizes(record)
        elif rules is None:
            rows = {one.rule: 100 * one.accuracy for one in score(record.reader)}
        else:
            scores = record.score(list(rules.values()))
            rows = {row: 100 * one.accuracy for row, one in zip(rules, scores, strict=True)}
            if kind == "ablation":
                rows["single"] = 100 * max(scores[0].per_network or (scores[0].accuracy,))
        _add_stored(rows, plan.known, seed)
        measured.append(rows)
    return _table_fields(plan, measured, {})


def _add_stored(rows: dict[str, float], known: Result | None, seed: int) -> None:
    """Add stored values of rules whose probabilities are missing from a packed record."""
    if known is None or seed >= known.repetitions:
        return
    for name in _rules_on_probabilities():
        row = known.rows.get(name)
        if row is not None and (value := row.values[seed]) is not None:
            rows.setdefault(name, value)


def _sizes(record: Record) -> dict[str, float]:
    """Score max agreement of 5 networks and both rules at their best number of networks."""
    sweeps = {rule: by_networks(record.reader, rule) for rule in ("majority", "max-agreement")}
    five = min(5, record.networks) - 1  # as many as in the paper's ensembles
    rows = {"max-agreement-5": 100 * float(sweeps["max-agreement"].mean[five])}
    for rule, sweep in sweeps.items():
        best = int(sweep.mean.argmax())
        rows[f"{rule}-opt"] = 100 * float(sweep.mean[best])
        rows[f"{rule}-networks"] = float(sweep.sizes[best])
    return rows


def _post_process(plan: TargetPlan, context: ReproduceContext) -> Fields:
    """Measure the methods of table 2 on the networks and the validation split."""
    measured: list[dict[str, float]] = []
    failed: dict[str, str] = {}
    for seed, required in enumerate(plan.runs):
        found = compare(
            resolve_data(required.cell_spec, context.data),
            required.run.path.parent,
            methods=("rog", "consensus", "npc", "max-agreement"),
            train=context.train,
            progress=context.cost_log(required.run.path),
            on_start=context.on_start,
        )
        measured.append(
            {one.method.name: 100 * one.accuracy for one in found.methods if one.measurements}
        )
        prefix = f"repetition {seed}: " if plan.repetitions > 1 else ""
        failures = {one.method.name: one.failures[0] for one in found.methods if one.failures}
        failed = {row: f"{prefix}{reason}" for row, reason in failures.items()} | failed
    return _table_fields(plan, measured, failed)


def _table_fields(
    plan: TargetPlan, measured: Sequence[Mapping[str, float]], failed: dict[str, str]
) -> Fields:
    """Build the rows and the reasons for those that could not be measured."""
    published, soft = plan.target.published, _rules_on_probabilities()
    reason = "the record holds no probabilities"
    missing: dict[str, str] = {}
    for row in soft:
        without = [str(seed) for seed, one in enumerate(measured) if row not in one]
        if 0 < len(without) < len(measured):
            missing[row] = f"repetition {', '.join(without)}: {reason}"
        elif without and row in published:
            missing[row] = reason
    failed = missing | failed
    rows = {
        row: row_of([one.get(row) for one in measured], published.get(row, ()))
        for row in max(measured, key=len)
        if row in soft or (row not in failed and all(row in one for one in measured))
    }
    return {"rows": rows, "failed": failed}


def _rules_on_probabilities() -> list[str]:
    return [name for name, rule in all_rules().items() if "probabilities" in rule.needs]


def measure_figure(plan: TargetPlan, context: ReproduceContext) -> Fields:
    target, number = plan.target, plan.target.figure or 0
    runs = {required.role: required for required in plan.runs}
    records = {role: required.open_record() for role, required in runs.items()}
    stand_in = plan.scale == STAND_IN
    name = f"digits instead of {target.description}" if stand_in else target.description
    if number == 8:
        settings = [
            Setting(name, record, samples_per_class=runs[role].cell.per_class)
            for role, record in records.items()
        ]
    else:
        clean = records.get("clean")
        pictures = _test_images(runs["noisy"].cell_spec, context.data) if number == 1 else None
        settings = [Setting(name, records["noisy"], clean=clean, pictures=pictures)]
    numbers = figure_numbers(number, settings)
    if number == 1:
        _keep_pictures(numbers, plan.known)
    rows = {}
    for role, record in records.items():
        for one in record.score(["single", "majority", "max-agreement"]):
            row = one.rule if role == "noisy" else f"{one.rule}, {role}"
            rows[row] = row_of([100 * one.accuracy])
    return {"rows": rows, "numbers": numbers}


def _test_images(spec: Spec, data: Path) -> Any:
    """Load test images of shape (sample, row, column, channel), or None if the data are missing."""
    if missing_data(spec, data) is not None:
        return None
    path = None if spec.data.path is None else data / spec.data.path
    dataset = read_dataset(spec.data.kind, path, **spec.data.options)
    inputs = dataset.test.inputs
    if dataset.kind != "image" or not isinstance(inputs, np.ndarray):
        return None
    pictures = np.moveaxis(inputs, 1, -1)
    return pictures[..., 0] if pictures.shape[-1] == 1 else pictures


def _keep_pictures(numbers: dict[str, Any], known: Result | None) -> None:
    before = {} if known is None or known.numbers is None else known.numbers
    for panel, kept in zip(numbers["panels"], before.get("panels", ()), strict=False):
        if panel["picture"] is None and panel["sample"] == kept["sample"]:
            panel["picture"] = kept["picture"]


def draw_figure(result: Result, out: Path, *, redraw: bool) -> None:
    if not redraw and is_drawn(out, result.target, result.scale):
        return
    from accord.report import paper_figure, save_figure

    path = result_path(out, result.target, result.scale)
    try:
        for suffix in PICTURES:
            save_figure(paper_figure(dict(result.numbers or {})), path.with_suffix(suffix))
    except (KeyError, TypeError, IndexError) as error:
        raise SourceError(
            f"{path.with_suffix('.json')}: its numbers cannot be drawn "
            f"({type(error).__name__}: {error}). Remove it, or give another --out."
        ) from error


def run_analytic(target: Target, out: Path) -> Result:
    """Compute and draw a target that requires no training, keeping any stored result."""
    known = load_result(out, target.name, NO_SCALE)
    if known is not None and is_drawn(out, target.name, NO_SCALE):
        save_result(known, out)  # the Markdown may be that of an earlier version
        return known
    from accord.report import save_figure, theory_figure, toy_figure

    if target.kind == "theory":
        theory = run_theory()
        numbers, figure = theory.as_json(), theory_figure(theory)
    else:
        toy = run_toy()
        numbers, figure = toy.as_json(), toy_figure(toy)
    result = known or Result(
        target.name, target.description, NO_SCALE, 1, numbers=numbers, version=__version__
    )
    save_result(result, out)
    for suffix in PICTURES:
        save_figure(figure, result_path(out, target.name, NO_SCALE).with_suffix(suffix))
    return result


# The measurements of a target, as fields of its result; those of a table by default.
MEASURE_BY_KIND: Final[dict[str, Callable[[TargetPlan, ReproduceContext], Fields]]] = {
    "post-processing": _post_process,
    "figure": measure_figure,
}
