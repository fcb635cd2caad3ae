"""The command that reproduces the paper."""

import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accord.cli._arguments import Json, check_local
from accord.cli._progress import Bar
from accord.cli.train import HERE, Gpus, Ray, RayCommand
from accord.errors import ChoiceError, missing_extra, suggest

if TYPE_CHECKING:
    from accord.experiments.paper import Failure, Result, Target
    from accord.experiments.paper._required_runs import ReproduceContext


EXAMPLE = (
    "\b\nExample:\n"
    "  accord reproduce table1/cifar10/sym/40 --scale stand-in\n"
    "  accord reproduce figure5 --scale quick --data ~/data --out runs/paper\n"
    "  accord reproduce --list\n\n"
    "Exit status: 0 all reproduced; 1 data are missing, or a network could not be trained; "
    "2 an argument is wrong."
)


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(epilog=EXAMPLE, cls=RayCommand)(reproduce)


def reproduce(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET",
            help="a table, figure or cell, such as table1, figure5/cifar10/sym/40, theory",
            show_default=False,
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="paper, medium, quick or stand-in", show_default="quick"),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="a folder for runs and results")] = Path(
        "runs/paper"
    ),
    data: Annotated[Path, typer.Option(metavar="DIR", help="the folder of the data sets")] = Path(
        "data"
    ),
    repetitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="each with other seeds; a figure shows one run",
            min=1,
            show_default="as the scale says",
        ),
    ] = None,
    on_cpu: Annotated[
        bool, typer.Option("--on-cpu", help="train without a GPU what wants one")
    ] = False,
    ray: Ray = None,
    gpus: Gpus = None,
    listing: Annotated[
        bool, typer.Option("--list", help="name every target and how far it is, and stop")
    ] = False,
    as_json: Json = False,
) -> None:
    """Reproduce tables and figures of the paper, and set its numbers beside ours.

    The beginning of a name stands for all below it: what can run does, and the rest is named at
    the end. Trains what is missing, at one of four scales: paper (its own protocol), medium
    (ResNet-18, 100 epochs), quick (some minutes on a GPU) and stand-in (the embedded digits,
    without a GPU; quick becomes that where there is none). Stopped and started again, nothing is
    trained twice.
    """
    if importlib.util.find_spec("torch") is None:
        raise missing_extra("accord reproduce", "torch", extra="train")
    from accord.experiments.paper import all_targets, find_targets
    from accord.experiments.paper._required_runs import ReproduceContext

    _check(scale, out, ray, gpus)
    chosen = find_targets(targets) if targets else list(all_targets().values())
    if listing:
        _list(chosen, scale, out, data, as_json=as_json)
    elif not targets:
        raise ChoiceError("name a target: accord reproduce table1/cifar10/sym/40, or --list them")
    else:
        workshop = _with_ray(ReproduceContext(out, data, on_cpu=on_cpu, say=_speaker()), ray, gpus)
        _reproduce(
            chosen,
            workshop,
            scale or "quick",
            repetitions,
            alone=chosen[0].name in targets,
            as_json=as_json,
        )


def _check(scale: str | None, out: Path, ray: str | None, gpus: float | None) -> None:
    from accord.experiments.paper import SCALES

    if scale is not None and scale not in SCALES:
        raise ChoiceError(f"no scale is called {scale!r}. {suggest(scale, list(SCALES))}")
    if gpus is not None and ray is None:
        raise ChoiceError("--gpus shares out a cluster: give --ray too")
    check_local(out)


def _list(
    targets: "list[Target]", scale: str | None, out: Path, data: Path, *, as_json: bool
) -> None:
    from accord.experiments.paper import SCALES, status_of
    from accord.experiments.paper._analytic import THOUGHTS
    from accord.experiments.paper._results import THOUGHT

    items = []
    for target in targets:
        found = {
            one: status_of(target, one, out=out, data=data)
            for one in ([scale] if scale else SCALES)
        }
        best = min(found, key=lambda one: (one == STAND_IN, _RANK[found[one].word]))
        items.append(
            {
                "name": target.name,
                "status": found[best].word,
                "scale": THOUGHT if target.kind in THOUGHTS else best,
                "says": target.says,
                "note": found[best].note,
                "scales": {one: status.word for one, status in found.items()},
            }
        )
    if as_json:
        typer.echo(json.dumps({"items": items}))
    else:
        typer.echo(_listed(items))


MISSING = "data missing"
STAND_IN = "stand-in"
# Of several scales the one that is furthest is told; digits are not the target, however far.
_RANK = {"done": 0, "partly": 1, "not run": 2, MISSING: 3, "none": 4}


def _listed(items: list[dict[str, Any]]) -> str:
    width = max(len(item["name"]) for item in items)
    lines = []
    for item in items:
        status = item["status"]
        if status in ("done", "partly") and item["scale"] in item["scales"]:
            status += f" ({item['scale']})"
        note = f"; {item['note']}" if item["note"] and status != MISSING else ""
        if item["status"] != "done" and item["scales"].get(STAND_IN) == "done":
            note += "; digits have stood in"
        lines.append(f"{item['name'].ljust(width)}  {status.ljust(18)}  {item['says']}{note}")
    return "\n".join([*lines, *_missing([item for item in items if item["status"] == MISSING])])


def _missing(items: list[dict[str, Any]]) -> list[str]:
    """Say once for each data set where to put it, and what can be run without."""
    if not items:
        return []
    lines = ["", f"{MISSING}:", *dict.fromkeys(f"  {item['note']}" for item in items)]
    stand_ins = [item["scales"].get(STAND_IN, "none") != "none" for item in items]
    if any(stand_ins):
        but = [item["name"] for item, can in zip(items, stand_ins, strict=True) if not can]
        rest = f", for all but {' and '.join(but)}" if but else ""
        lines.append(f"without them, digits can stand in{rest}: --scale stand-in")
    return lines


class _Bars:
    """A progress bar while networks train, and none while a result is printed."""

    def __init__(self) -> None:
        self._bar: Bar | None = None

    def begin(self, what: str) -> None:
        """Start the next run."""
        self._open().begin(what)

    def moment(
        self, network: int, networks: int, progress: float, epochs: int, loss: float
    ) -> None:
        """Show that one network has reached a moment of its training."""
        self._open().moment(network, networks, progress, epochs, loss)

    def close(self) -> None:
        """Take the bar away until more is trained."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None

    def _open(self) -> Bar:
        if self._bar is None:
            self._bar = Bar("training").__enter__()
        return self._bar


def _reproduce(
    targets: "list[Target]",
    workshop: "ReproduceContext",
    scale: str,
    repetitions: int | None,
    *,
    alone: bool,
    as_json: bool,
) -> None:
    from accord.experiments.paper import Failure, reproduce_all

    bars = _Bars()
    workshop = replace(workshop, progress=bars.moment, starting=bars.begin)
    _tell_of_figures(targets, workshop, repetitions)
    found: list[Result] = []
    obstacles: list[Failure] = []
    try:
        for one in reproduce_all(targets, workshop, scale=scale, repetitions=repetitions):
            bars.close()
            if isinstance(one, Failure):
                obstacles.append(one)
            else:
                _print(one, first=not found, as_json=as_json)
                found.append(one)
    finally:
        bars.close()
    if as_json:
        typer.echo(json.dumps(_as_json(found, obstacles)))
    if alone and len(targets) == 1 and obstacles:
        raise obstacles[0].error
    if obstacles:
        _tell_obstacles(obstacles, len(targets))
        raise typer.Exit(1)


def _tell_of_figures(
    targets: "list[Target]", workshop: "ReproduceContext", repetitions: int | None
) -> None:
    figures = [target.name for target in targets if target.figure is not None]
    if repetitions is not None and repetitions > 1 and figures:
        more = f" and {len(figures) - 1} more" if len(figures) > 1 else ""
        workshop.tell(
            f"{figures[0]}{more}: a figure shows one run; --repetitions {repetitions} is for tables"
        )


def _print(result: "Result", *, first: bool, as_json: bool) -> None:
    from accord.experiments.paper import result_text

    if not as_json:
        typer.echo(("" if first else "\n") + result_text(result))


def _as_json(found: "list[Result]", obstacles: "list[Failure]") -> dict[str, Any]:
    failed = [{"target": one.target.name, "why": str(one.error)} for one in obstacles]
    return {"results": [result.as_json() for result in found], "failed": failed}


def _tell_obstacles(obstacles: "list[Failure]", targets: int) -> None:
    lines = [f"accord: {len(obstacles)} of {targets} targets could not be reproduced:"]
    before = None
    for one in obstacles:
        why = str(one.error)
        lines.append(f"  {one.target.name}: {'the same' if why == before else why}")
        before = why
    typer.echo("\n".join(lines), err=True)


def _speaker() -> Callable[[str], None]:
    """Return what says a line on standard error, each once."""
    said: set[str] = set()

    def say(text: str) -> None:
        if text not in said:
            said.add(text)
            typer.echo(f"accord: {text}", err=True)

    return say


def _with_ray(
    workshop: "ReproduceContext", ray: str | None, gpus: float | None
) -> "ReproduceContext":
    from accord.experiments.paper import _required_runs as runs

    if ray is None:
        return workshop
    workshop = replace(workshop, train=runs.train_with_ray(ray, gpus=gpus))
    if ray == HERE:
        return workshop
    machine, has_gpu = f"a Ray cluster at {ray}", runs.gpus_of_cluster(ray)
    return replace(workshop, machine=machine, has_gpu=has_gpu)
