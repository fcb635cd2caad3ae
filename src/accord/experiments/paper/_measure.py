"""Measurements of tables and figures on the records of a target."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from accord._record import Record
from accord.analysis import by_networks
from accord.data.readers import read_dataset
from accord.errors import SourceError
from accord.experiments.paper._figure_numbers import Setting, figure_numbers
from accord.experiments.paper._protocols import missing_data
from accord.experiments.paper._required_runs import ReproduceContext, RequiredRun, TargetPlan
from accord.experiments.paper._results import (
    PICTURES,
    STAND_IN,
    Result,
    TableRow,
    is_drawn,
    result_path,
    row_of,
)
from accord.training import Spec

Fields = dict[str, Any]  # of a Result
PAPER_NETWORKS: Final = 5  # in the paper's ensembles


def _rules(required: RequiredRun) -> dict[str, float]:
    return {score.rule: 100 * score.accuracy for score in required.open_record().score()}


def _ensemble(required: RequiredRun) -> dict[str, float]:
    # A BatchEnsemble's authors average probabilities, those of a hyper-ensemble vote.
    batch_ensemble = required.run.spec.train.batch_ensemble is not None
    own_rule = "probability-average" if batch_ensemble else "majority"
    original, agreed = required.open_record().score([own_rule, "max-agreement"])
    return {"original": 100 * original.accuracy, "max-agreement": 100 * agreed.accuracy}


def _sizes(required: RequiredRun) -> dict[str, float]:
    """Score max agreement of 5 networks, and both rules at their best number of networks."""
    record = required.open_record()
    sweeps = {rule: by_networks(record.reader, rule) for rule in ("majority", "max-agreement")}
    five = min(PAPER_NETWORKS, record.networks) - 1
    rows = {"max-agreement-5": 100 * float(sweeps["max-agreement"].mean[five])}
    for rule, sweep in sweeps.items():
        best = int(sweep.mean.argmax())
        rows[f"{rule}-opt"] = 100 * float(sweep.mean[best])
        rows[f"{rule}-networks"] = float(sweep.sizes[best])
    return rows


def _elr(required: RequiredRun) -> dict[str, float]:
    rules = {"elr": "single", "elr-ensemble": "majority", "elr-max-agreement": "max-agreement"}
    scores = required.open_record().score(list(rules.values()))
    return {row: 100 * score.accuracy for row, score in zip(rules, scores, strict=True)}


def _ablation(required: RequiredRun) -> dict[str, float]:
    single, majority, agreed = required.open_record().score(["single", "majority", "max-agreement"])
    best = max(single.per_network or (single.accuracy,))
    return {
        "single": 100 * best,  # of the best network
        "ensemble": 100 * majority.accuracy,
        "max-agreement": 100 * agreed.accuracy,
    }


# By kind of target, the rows of its table in percent.
TABLE_ROWS: Final[Mapping[str, Callable[[RequiredRun], dict[str, float]]]] = {
    "rules": _rules,
    "ensemble": _ensemble,
    "sizes": _sizes,
    "elr": _elr,
    "ablation": _ablation,
}


def measure_figure(plan: TargetPlan, context: ReproduceContext) -> Fields:
    """Return the scores beside a figure as rows, and the numbers that it shows."""
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
    return {"rows": _figure_rows(records), "numbers": numbers}


def _figure_rows(records: Mapping[str, Record]) -> dict[str, TableRow]:
    rows = {}
    for role, record in records.items():
        for score in record.score(["single", "majority", "max-agreement"]):
            name = score.rule if role == "noisy" else f"{score.rule}, {role}"
            rows[name] = row_of([100 * score.accuracy])
    return rows


def _test_images(spec: Spec, data: Path) -> Any:
    """Return the test images (sample, row, column, channel), or None if the data are missing."""
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
    """Draw a figure from a result's numbers, unless it is drawn already and not to be redrawn."""
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
