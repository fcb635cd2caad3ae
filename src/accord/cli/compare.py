"""`accord compare`: compare max agreement with other methods on the same networks."""

import json
from pathlib import Path
from typing import Annotated

import typer

from accord.cli import _arguments as shared
from accord.cli._progress import Bar, resumable

EPILOG = shared.epilog(
    "accord compare --method majority --method max-agreement --method elr",
    "accord compare examples/cifar10.toml --out runs/compared --repetitions 3",
    done="compared",
    faults=(
        "1 the data are at fault, or a network could not be trained; "
        "2 the spec or an argument is wrong."
    ),
)


def compare(
    spec: Annotated[
        Path | None,
        typer.Argument(
            metavar="SPEC.toml", help="networks to train", show_default="the spec of the demo"
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
        typer.Option(metavar="DIR", help="folder of the runs", show_default="runs/compare-NAME"),
    ] = None,
    repetitions: Annotated[int, typer.Option(metavar="N", help="each with other seeds", min=1)] = 1,
    listing: Annotated[bool, typer.Option("--list", help="list every method, and stop")] = False,
    as_json: shared.Json = False,
) -> None:
    """Compare max agreement with other methods on the same data.

    Methods share the networks of SPEC.toml where possible; the others train their own. If
    a method needs samples that no network was trained on, a tenth of the training samples is held
    out from all. When stopped and started again, it resumes.
    """
    shared.check_local(out)
    if listing:
        _list(as_json=as_json)
        return
    shared.require_torch("accord compare")
    from accord.experiments import comparison, demo
    from accord.training import load_spec, parse_spec

    chosen = parse_spec(demo.SPEC) if spec is None else load_spec(spec)
    folder = out or Path("runs") / f"compare-{chosen.name}"
    again = "" if spec is None else f" {spec}"
    with resumable(f"accord compare{again}, with the same options"), Bar("comparing") as bar:
        found = comparison.compare(
            chosen,
            folder,
            methods=method,
            repetitions=repetitions,
            progress=bar.training,
            on_start=bar.begin,
        )
    shared.print_notes(*found.notes, *found.stopped)
    if as_json:
        typer.echo(json.dumps(comparison.comparison_json(found)))
    else:
        typer.echo(comparison.comparison_text(found))
    if found.stopped:
        raise typer.Exit(1)


def _list(*, as_json: bool) -> None:
    from accord.experiments.comparison import METHODS

    methods, width = METHODS.values(), max(map(len, METHODS))
    items = [{"name": one.name, "status": "built", "says": one.description} for one in methods]
    lines = [f"{one.name.ljust(width)}  {one.description}" for one in methods]
    typer.echo(json.dumps({"items": items}) if as_json else "\n".join(lines))
