"""What a target trains at a scale: its specs, and the folders where the runs lie."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from accord.errors import SpecError
from accord.experiments.comparison.runs import folder_of, shared_spec
from accord.experiments.paper.protocols import SCALES, Cell, build_spec, place_spec, protocols
from accord.experiments.paper.results import Result, result_path
from accord.experiments.paper.runs import moments_left, run_folder, run_name
from accord.experiments.paper.targets import Target
from accord.training.spec import Spec


@dataclass(frozen=True)
class Training:
    """One run that a target needs."""

    cell: Cell
    asked: Spec  # what the cell asks for; its paths are inside the folder of the data
    spec: Spec  # what is trained for it
    folder: Path

    @property
    def finished(self) -> bool:
        """Whether every moment of every network is recorded."""
        return not moments_left(self.spec, self.folder)


def repetitions_of(target: Target, scale: str, asked: int | None = None) -> int:
    """Return how often a target is trained; a figure shows one run."""
    if target.kind == "figure":
        return 1
    return SCALES[scale].repetitions if asked is None else asked


def cells_at(target: Target, scale: str) -> dict[str, Cell]:
    """Return what a target trains at a scale; a stand-in has fewer samples of each class."""
    if target.figure == 8 and scale == "stand-in":
        first = next(iter(target.cells.values()))
        sizes = protocols()["figure8"]["stand-in"]
        return {str(size): Cell(first.data, "clean", 0, per_class=size) for size in sizes}
    return dict(target.cells)


def runs_of(target: Target, scale: str, repetitions: int) -> dict[str, list[str]]:
    """Return the names of the runs that a target needs at a scale, by role and repetition.

    Raises:
        ChoiceError: the target cannot be had at that scale.
    """
    return {
        role: [run_name(build_spec(cell, scale, seed=seed)) for seed in range(repetitions)]
        for role, cell in cells_at(target, scale).items()
    }


def trainings_of(
    target: Target, scale: str, repetitions: int, *, out: Path, data: Path
) -> list[Training]:
    """Return every run that a target needs at a scale.

    Table 2 trains networks of its own: its methods need some samples that no network has seen.
    """
    return [
        _training(target, cell, build_spec(cell, scale, seed=seed), out, data)
        for cell in cells_at(target, scale).values()
        for seed in range(repetitions)
    ]


def _training(target: Target, cell: Cell, asked: Spec, out: Path, data: Path) -> Training:
    folder = run_folder(out, asked)
    if target.kind != "post-processing":
        return Training(cell, asked, asked, folder)
    spec = shared_spec(place_spec(asked, data), validation=True)
    return Training(cell, asked, spec, folder_of(folder, "shared", spec))


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
