"""The command that holds max agreement against its rivals."""

import importlib.util
import json
from pathlib import Path
from typing import Annotated

import typer

from accord.cli._arguments import Json, check_local
from accord.cli._progress import Bar, resumable
from accord.errors import missing_extra

EXAMPLE = (
    "\b\nExample:\n"
    "  accord compare --method majority --method max-agreement --method elr\n"
    "  accord compare examples/cifar10.toml --out runs/rivals --repetitions 3\n\n"
    "Exit status: 0 compared; 1 the data are at fault, or a network could not be trained; "
    "2 the spec or an argument is wrong."
)


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(epilog=EXAMPLE)(compare)


def compare(
    spec: Annotated[
        Path | None,
        typer.Argument(
            metavar="SPEC.toml", help="what to train", show_default="the digits of the demo"
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", metavar="NAME", help="only this method; may be repeated", show_default="all"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="a folder for the runs", show_default="runs/compare-NAME"),
    ] = None,
    repetitions: Annotated[int, typer.Option(metavar="N", help="each with other seeds", min=1)] = 1,
    listing: Annotated[bool, typer.Option("--list", help="name every method, and stop")] = False,
    as_json: Json = False,
) -> None:
    """Hold max agreement against its rivals, on one set of trained networks where possible.

    Trains what SPEC.toml asks for, and anew for methods that train in a way of their own. If a
    method needs samples that no network has seen, a tenth of the training samples is held out from
    all. Stopped and started again, nothing is done twice.
    """
    if importlib.util.find_spec("torch") is None:
        raise missing_extra("accord compare", "torch", extra="train")
    check_local(out)
    if listing:
        _list(as_json=as_json)
    else:
        _compare(spec, method, out, repetitions, as_json=as_json)


def _list(*, as_json: bool) -> None:
    from accord.experiments.comparison import METHODS

    if as_json:
        items = [
            {"name": one.name, "status": "built", "says": one.says} for one in METHODS.values()
        ]
        typer.echo(json.dumps({"items": items}))
    else:
        width = max(map(len, METHODS))
        typer.echo("\n".join(f"{one.name.ljust(width)}  {one.says}" for one in METHODS.values()))


def _compare(
    path: Path | None,
    methods: list[str] | None,
    out: Path | None,
    repetitions: int,
    *,
    as_json: bool,
) -> None:
    from accord.experiments import demo
    from accord.experiments.comparison import compare, comparison_json, comparison_text
    from accord.training.spec import load_spec, parse_spec

    spec = parse_spec(demo.SPEC) if path is None else load_spec(path)
    folder = out or Path("runs") / f"compare-{spec.name}"
    again = "" if path is None else f" {path}"
    with resumable(f"accord compare{again}, with the same options"), Bar("comparing") as bar:
        found = compare(
            spec,
            folder,
            methods=methods,
            repetitions=repetitions,
            progress=bar.moment,
            starting=bar.begin,
        )
    for said in (*found.notes, *found.stopped):
        typer.echo(f"accord: {said}", err=True)
    typer.echo(json.dumps(comparison_json(found)) if as_json else comparison_text(found))
    if found.stopped:
        raise typer.Exit(1)
