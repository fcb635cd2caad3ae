"""What a figure shows: measured on a target's records, kept as numbers, and drawn."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from accord._record import Record
from accord.analysis import by_networks
from accord.data.readers import read_dataset
from accord.errors import ChoiceError, SourceError
from accord.experiments.paper._figure_numbers import Numbers, Setting, figure_numbers
from accord.experiments.paper._protocols import missing_data
from accord.experiments.paper._required_runs import ReproduceContext, cells_at, records_of
from accord.experiments.paper._results import (
    PICTURES,
    STAND_IN,
    Result,
    Row,
    is_drawn,
    result_path,
    row_of,
)
from accord.experiments.paper._targets import Target
from accord.training.spec import Spec

TableRows = dict[str, float]
PAPER_SIZE: Final = 5  # networks of the paper's ensembles


def measure(kind: str, record: Record, *, batch_ensemble: bool = False) -> TableRows:
    """Return the rows of a table for one record, in percent."""
    if kind == "ensemble":
        return _of_ensemble(record, "probability-average" if batch_ensemble else "majority")
    if kind not in MEASURES:
        raise ChoiceError(f"nothing is measured of {kind!r}; there are: {', '.join(MEASURES)}")
    return MEASURES[kind](record)


def _rules(record: Record) -> TableRows:
    """Score every rule that the record allows, those of the paper among them."""
    return {score.rule: 100 * score.accuracy for score in record.score()}


def _of_ensemble(record: Record, own: str) -> TableRows:
    original, agreed = record.score([own, "max-agreement"])
    return {"original": 100 * original.accuracy, "max-agreement": 100 * agreed.accuracy}


def _sizes(record: Record) -> TableRows:
    """Score max agreement of 5 networks, and both votes at their best size."""
    sweeps = {rule: by_networks(record.reader, rule) for rule in ("majority", "max-agreement")}
    agreed = sweeps["max-agreement"]
    five = min(PAPER_SIZE, record.networks) - 1
    rows = {"max-agreement-5": 100 * float(agreed.mean[five])}
    for rule, sweep in sweeps.items():
        best = int(sweep.mean.argmax())
        rows[f"{rule}-opt"] = 100 * float(sweep.mean[best])
        rows[f"{rule}-networks"] = float(sweep.sizes[best])
    return rows


def _elr(record: Record) -> TableRows:
    names = {"elr": "single", "elr-ensemble": "majority", "elr-max-agreement": "max-agreement"}
    scores = record.score(list(names.values()))
    return {row: 100 * score.accuracy for row, score in zip(names, scores, strict=True)}


def _ablation(record: Record) -> TableRows:
    """Score the best single network, the majority and max agreement."""
    single, majority, agreed = record.score(["single", "majority", "max-agreement"])
    best = max(single.per_network or (single.accuracy,))
    return {
        "single": 100 * best,
        "ensemble": 100 * majority.accuracy,
        "max-agreement": 100 * agreed.accuracy,
    }


MEASURES: Final[Mapping[str, Callable[[Record], TableRows]]] = {
    "rules": _rules,
    "sizes": _sizes,
    "elr": _elr,
    "ablation": _ablation,
}


def measure_figure(
    target: Target, number: int, scale: str, workshop: ReproduceContext, known: Result | None = None
) -> tuple[dict[str, Row], Numbers]:
    """Return the scores beside a figure and what it shows, trained if need be.

    Args:
        target: a panel.
        number: the figure's.
        scale: a key of `SCALES`.
        workshop: where, and by what means.
        known: what was kept before; figure 1's picture is taken from it where the data, which
            hold it, are not at hand.
    """
    cells = cells_at(target, scale)
    records, specs = records_of(cells, scale, 0, workshop)
    name = f"digits stand in for {target.says}" if scale == STAND_IN else target.says
    if number == 8:
        settings = [
            Setting(name, record, samples_per_class=cells[role].per_class)
            for role, record in records.items()
        ]
    else:
        clean = records.get("clean")
        pictures = _pictures(specs["noisy"], workshop.data) if number == 1 else None
        settings = [Setting(name, records["noisy"], clean=clean, pictures=pictures)]
    numbers = figure_numbers(number, settings)
    if number == 1:
        _keep_picture(numbers, known)
    return _rows_beside(records), numbers


def draw_figure(result: Result, out: Path, *, again: bool) -> None:
    """Draw what a result's numbers show, beside it, if it is not drawn or to be drawn again."""
    if not again and is_drawn(out, result.target, result.scale):
        return
    from accord.report._paper_figures import save_numbers

    path = result_path(out, result.target, result.scale)
    try:
        for ending in PICTURES:
            save_numbers(dict(result.numbers or {}), path.with_suffix(ending))
    except (KeyError, TypeError, IndexError) as error:
        raise SourceError(
            f"{path.with_suffix('.json')}: its numbers cannot be drawn "
            f"({type(error).__name__}: {error}). Remove it, or give another --out."
        ) from error


def _rows_beside(records: Mapping[str, Record]) -> dict[str, Row]:
    """Score what a figure shows; the clean subset's rows bear that name."""
    rows = {}
    for role, record in records.items():
        for score in record.score(["single", "majority", "max-agreement"]):
            name = score.rule if role == "noisy" else f"{score.rule}, {role}"
            rows[name] = row_of([100 * score.accuracy])
    return rows


def _pictures(spec: Spec, data: Path) -> Any:
    """Return the test images as (sample, row, column, channel), where they are at hand."""
    if missing_data(spec, data) is not None:
        return None
    path = None if spec.data.path is None else data / spec.data.path
    dataset = read_dataset(spec.data.kind, path, **spec.data.options)
    inputs = dataset.test.inputs
    if dataset.kind != "image" or not isinstance(inputs, np.ndarray):
        return None
    pictures = np.moveaxis(inputs, 1, -1)
    return pictures[..., 0] if pictures.shape[-1] == 1 else pictures


def _keep_picture(numbers: dict[str, Any], known: Result | None) -> None:
    """Where the data are not at hand, take the sample's picture from what was kept."""
    before = {} if known is None or known.numbers is None else known.numbers
    for panel, kept in zip(numbers["panels"], before.get("panels", ()), strict=False):
        if panel["picture"] is None and panel["sample"] == kept["sample"]:
            panel["picture"] = kept["picture"]
