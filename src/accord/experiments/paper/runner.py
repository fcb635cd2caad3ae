"""Reproduce a target: find what is missing, train it, measure, and keep what came out."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from accord.analysis.theory import run_theory
from accord.analysis.toy import run_toy
from accord.api import Record
from accord.data.readers import read_dataset
from accord.errors import SpecError
from accord.experiments.comparison import compare
from accord.experiments.paper.measures import measure
from accord.experiments.paper.protocols import (
    SCALES,
    Cell,
    build_spec,
    check_data,
    missing_data,
    place_spec,
    protocols,
)
from accord.experiments.paper.results import (
    THOUGHT,
    Result,
    load_result,
    result_path,
    row_of,
    save_result,
)
from accord.experiments.paper.runs import (
    Workshop,
    effort_of,
    moments_left,
    records_of,
    run_folder,
    run_name,
    settle_scale,
)
from accord.experiments.paper.targets import Target
from accord.report.paper.material import Setting
from accord.report.paper.numbers import figure_numbers
from accord.training.spec import Spec

POST_PROCESSING: Final = ("rog", "consensus", "npc", "max-agreement")
PICTURES: Final = (".svg", ".png")


def reproduce(
    target: Target, workshop: Workshop, *, scale: str = "quick", repetitions: int | None = None
) -> Result:
    """Train what is missing of a target, measure it, and keep the result.

    Writes `OUT/TARGET/SCALE.json` and `.md`, for a figure also `.svg` and `.png`. Runs lie below
    `OUT/runs` and are shared by all targets that train the same; started again, nothing is done
    twice.

    Args:
        target: what to reproduce.
        workshop: where, and by what means.
        scale: a key of `SCALES`; without a GPU, quick becomes a stand-in.
        repetitions: how many, each with other seeds and other noise; by default the scale's.

    Raises:
        ChoiceError: the scale wants a GPU and there is none, or the target has no such scale.
        SourceError: data are missing, or a file in `OUT` is not a result.
        SpecError: `OUT` holds a result of this name that was trained otherwise.
        TrainingError: a network diverged.
        ExtraMissing: a figure is drawn with matplotlib, and it is not installed.
    """
    if target.kind in THOUGHTS:
        return _think(target, workshop.out)
    if not _is_trained(target, scale, _count(target, scale, repetitions), workshop.out):
        scale = settle_scale(scale, on_cpu=workshop.on_cpu)
    count = _count(target, scale, repetitions)
    runs = runs_of(target, scale, count)
    known = load_result(workshop.out, target.name, scale)
    if known is not None:
        check_same(known, runs, workshop.out)
        if known.repetitions >= count and _drawn(target, workshop.out, scale):
            return known
    if target.figure is not None:
        return _figure(target, target.figure, scale, runs, workshop)
    measured = [_measure(target, scale, seed, workshop) for seed in range(count)]
    rows = {
        row: row_of([one[row] for one in measured], target.published.get(row, ()))
        for row in measured[0]
        if all(row in one for one in measured)  # a rival may have failed in one
    }
    return _keep(Result(target.name, target.says, scale, count, rows, runs=runs), workshop.out)


def runs_of(target: Target, scale: str, repetitions: int) -> dict[str, list[str]]:
    """Return the names of the runs that a target needs at a scale, by role and repetition."""
    return {
        role: [run_name(build_spec(cell, scale, seed=seed)) for seed in range(repetitions)]
        for role, cell in cells_at(target, scale).items()
    }


def cells_at(target: Target, scale: str) -> dict[str, Cell]:
    """Return what a target trains at a scale; a stand-in has fewer samples of each class."""
    if target.figure == 8 and scale == "stand-in":
        first = next(iter(target.cells.values()))
        sizes = protocols()["figure8"]["stand-in"]
        return {str(size): Cell(first.data, "clean", 0, per_class=size) for size in sizes}
    return dict(target.cells)


def check_same(known: Result, runs: Mapping[str, list[str]], out: Path) -> None:
    """Refuse to take a result for another one of the same name.

    Raises:
        SpecError: it was trained otherwise.
    """
    for role, names in runs.items():
        there = known.runs.get(role, [])
        shared = min(len(there), len(names))
        if list(there)[:shared] != names[:shared] or not shared:
            path = result_path(out, known.target, known.scale).with_suffix(".json")
            was = ", ".join(there) or "nothing"
            raise SpecError(
                f"{path}: holds a result of other runs, {was}; now it would be "
                f"{', '.join(names)}. Another Accord wrote it, or the protocol has changed. "
                "Remove it, or give another --out."
            )


def _count(target: Target, scale: str, repetitions: int | None) -> int:
    if target.kind == "figure":
        return 1
    return SCALES[scale].repetitions if repetitions is None else repetitions


def _is_trained(target: Target, scale: str, count: int, out: Path) -> bool:
    specs = [
        build_spec(cell, scale, seed=seed)
        for cell in cells_at(target, scale).values()
        for seed in range(count)
    ]
    return not any(moments_left(spec, run_folder(out, spec)) for spec in specs)


def _drawn(target: Target, out: Path, scale: str) -> bool:
    path = result_path(out, target.name, scale)
    return target.kind != "figure" or all(path.with_suffix(one).exists() for one in PICTURES)


def _measure(target: Target, scale: str, seed: int, workshop: Workshop) -> dict[str, float]:
    (cell,) = target.cells.values()
    if target.kind == "post-processing":
        return _post_process(cell, build_spec(cell, scale, seed=seed), workshop)
    records, specs = records_of({"noisy": cell}, scale, seed, workshop)
    members = specs["noisy"].train.batch_ensemble is not None
    return measure(target.kind, records["noisy"], batch_ensemble=members)


def _post_process(cell: Cell, spec: Spec, workshop: Workshop) -> dict[str, float]:
    """Measure the methods of table 2, which need networks and a validation split."""
    check_data(cell, spec, workshop.data)
    found = compare(
        place_spec(spec, workshop.data),
        run_folder(workshop.out, spec),
        methods=POST_PROCESSING,
        progress=workshop.progress,
        starting=workshop.starting,
    )
    return {one.method.name: 100 * one.accuracy for one in found.methods if one.outcomes}


def _figure(
    target: Target, number: int, scale: str, runs: Mapping[str, list[str]], workshop: Workshop
) -> Result:
    cells = cells_at(target, scale)
    records, specs = records_of(cells, scale, 0, workshop)
    if number == 8:
        settings = [
            Setting(target.says, record, samples_per_class=cells[role].per_class)
            for role, record in records.items()
        ]
    else:
        clean = records.get("clean")
        pictures = _pictures(specs["noisy"], workshop.data) if number == 1 else None
        settings = [Setting(target.says, records["noisy"], clean=clean, pictures=pictures)]
    numbers = figure_numbers(number, settings)
    rows = _rows_beside(records)
    result = Result(target.name, target.says, scale, 1, rows, numbers, runs)
    kept = _keep(result, workshop.out)
    from accord.report.paper.figures import save_numbers

    path = result_path(workshop.out, target.name, scale)
    for ending in PICTURES:
        save_numbers(numbers, path.with_suffix(ending))
    return kept


def _rows_beside(records: Mapping[str, Record]) -> dict[str, Any]:
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
    placed = place_spec(spec, data).data
    dataset = read_dataset(placed.kind, placed.path, **placed.options)
    inputs = dataset.test.inputs
    if dataset.kind != "image" or not isinstance(inputs, np.ndarray):
        return None
    pictures = np.moveaxis(inputs, 1, -1)
    return pictures[..., 0] if pictures.shape[-1] == 1 else pictures


def _keep(result: Result, out: Path) -> Result:
    efforts = [effort_of(out / "runs" / name) for names in result.runs.values() for name in names]
    known = [one for one in efforts if one]
    if known and len(known) == len(efforts):
        result = Result(
            **{
                **vars(result),
                "machine": known[0]["machine"],
                "seconds": sum(one["seconds"] for one in known),
            }
        )
    save_result(result, out)
    return result


def _think(target: Target, out: Path) -> Result:
    """Reproduce what trains no network: seconds on a CPU, always the same."""
    numbers, save = THOUGHTS[target.kind]()
    result = Result(target.name, target.says, THOUGHT, 1, numbers=numbers)
    save_result(result, out)
    for ending in PICTURES:
        save(result_path(out, target.name, THOUGHT).with_suffix(ending))
    return result


def _theory() -> tuple[dict[str, Any], Callable[[Path], None]]:
    from accord.report.theory_figures import save_theory

    found = run_theory()
    return found.as_json(), lambda path: save_theory(found, path)


def _toy() -> tuple[dict[str, Any], Callable[[Path], None]]:
    from accord.report.theory_figures import save_toy

    found = run_toy()
    return found.as_json(), lambda path: save_toy(found, path)


THOUGHTS: Final = {"theory": _theory, "toy": _toy}
