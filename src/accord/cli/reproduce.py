"""The command that reproduces the paper."""

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accord.cli.arguments import Json
from accord.cli.progress import Bar
from accord.cli.train import Ray, RayCommand
from accord.errors import ChoiceError, ExtraMissing, suggest

if TYPE_CHECKING:
    from accord.experiments.paper import Result, Target
    from accord.experiments.paper.runs import Trainer

EXAMPLE = (
    "\b\nExample:\n"
    "  accord reproduce table1/cifar10/sym/40 --scale stand-in\n"
    "  accord reproduce figure5 --scale quick --data ~/data --out runs/paper\n"
    "  accord reproduce --list\n\n"
    "Exit status: 0 reproduced; 1 data are missing, or a network could not be trained; "
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
            metavar="N", help="each with other seeds", min=1, show_default="as the scale says"
        ),
    ] = None,
    on_cpu: Annotated[
        bool, typer.Option("--on-cpu", help="train without a GPU what wants one")
    ] = False,
    ray: Ray = None,
    listing: Annotated[
        bool, typer.Option("--list", help="name every target and how far it is, and stop")
    ] = False,
    as_json: Json = False,
) -> None:
    """Reproduce tables and figures of the paper, and set its numbers beside ours.

    The beginning of a name stands for all below it. Trains what is missing, at one of four scales:
    paper (its own protocol), medium (ResNet-18, 100 epochs), quick (some minutes on a GPU) and
    stand-in (the embedded digits, without a GPU; quick becomes that where there is none). Stopped
    and started again, nothing is done twice.
    """
    if importlib.util.find_spec("torch") is None:
        raise ExtraMissing("reproducing needs torch: pip install 'accord[train]'")
    from accord.experiments.paper import SCALES, all_targets, find_targets

    if scale is not None and scale not in SCALES:
        raise ChoiceError(f"no scale is called {scale!r}. {suggest(scale, list(SCALES))}")
    chosen = find_targets(targets) if targets else list(all_targets().values())
    if listing:
        _list(chosen, scale, out, data, as_json=as_json)
    elif not targets:
        raise ChoiceError("name a target: accord reproduce table1/cifar10/sym/40, or --list them")
    else:
        found = _reproduce(chosen, scale or "quick", out, data, repetitions, on_cpu, ray)
        _print(found, as_json=as_json)


def _list(
    targets: "list[Target]", scale: str | None, out: Path, data: Path, *, as_json: bool
) -> None:
    from accord.experiments.paper import SCALES, status_of

    items = []
    for target in targets:
        found = {
            one: status_of(target, one, out=out, data=data)
            for one in ([scale] if scale else SCALES)
        }
        best = min(found, key=lambda one: _RANK[found[one].word])
        items.append(
            {
                "name": target.name,
                "status": found[best].word,
                "scale": best,
                "says": target.says,
                "note": found[best].note,
                "scales": {one: status.word for one, status in found.items()},
            }
        )
    if as_json:
        typer.echo(json.dumps({"items": items}))
    else:
        typer.echo(_listed(items))


# Of several scales the one that is furthest is told; the stand-in is always at hand.
_RANK = {"done": 0, "partly": 1, "data missing": 2, "not run": 3, "none": 4}


def _listed(items: list[dict[str, Any]]) -> str:
    width = max(len(item["name"]) for item in items)
    lines = []
    for item in items:
        status = item["status"]
        if status in ("done", "partly"):
            status += f" ({item['scale']})"
        note = f"; {item['note']}" if item["note"] else ""
        lines.append(f"{item['name'].ljust(width)}  {status.ljust(18)}  {item['says']}{note}")
    return "\n".join(lines)


def _reproduce(
    targets: "list[Target]",
    scale: str,
    out: Path,
    data: Path,
    repetitions: int | None,
    on_cpu: bool,
    ray: str | None,
) -> "list[Result]":
    from accord.experiments.paper import all_targets, load_results, reproduce, write_summary
    from accord.experiments.paper.results import SCALES_KEPT
    from accord.experiments.paper.runs import Workshop

    with Bar("training") as bar:
        workshop = Workshop(
            out, data, _trainer(ray), progress=bar.moment, starting=bar.begin, on_cpu=on_cpu
        )
        found = [
            reproduce(target, workshop, scale=scale, repetitions=repetitions) for target in targets
        ]
    write_summary(load_results(out, all_targets().values(), SCALES_KEPT), out)
    return found


def _trainer(ray: str | None) -> "Trainer":
    from accord.experiments.paper.runs import train_here, train_with_ray

    return train_here if ray is None else train_with_ray(ray)


def _print(found: "list[Result]", *, as_json: bool) -> None:
    from accord.experiments.paper import result_text

    if as_json:
        typer.echo(json.dumps({"results": [result.as_json() for result in found]}))
    else:
        typer.echo("\n\n".join(result_text(result) for result in found))
