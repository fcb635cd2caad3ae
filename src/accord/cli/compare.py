"""`accord compare`: compare max agreement with other methods on the same networks."""

import importlib.util
import json
from pathlib import Path
from typing import Annotated

import typer

from accord.cli._arguments import Json, check_local, epilog
from accord.cli._progress import Bar, resumable
from accord.errors import missing_extra

EPILOG = epilog(
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
    as_json: Json = False,
) -> None:
    """Compare max agreement with other methods on the same data.

    Methods share the networks of SPEC.toml where possible; the others train their own. If
    a method needs samples that no network was trained on, a tenth of the training samples is held
    out from all. When stopped and started again, it resumes.
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
            {"name": one.name, "status": "built", "says": one.description}
            for one in METHODS.values()
        ]
        typer.echo(json.dumps({"items": items}))
    else:
        width = max(map(len, METHODS))
        lines = [f"{one.name.ljust(width)}  {one.description}" for one in METHODS.values()]
        typer.echo("\n".join(lines))


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
    from accord.training import load_spec, parse_spec

    spec = parse_spec(demo.SPEC) if path is None else load_spec(path)
    folder = out or Path("runs") / f"compare-{spec.name}"
    again = "" if path is None else f" {path}"
    with resumable(f"accord compare{again}, with the same options"), Bar("comparing") as bar:
        found = compare(
            spec,
            folder,
            methods=methods,
            repetitions=repetitions,
            progress=bar.training,
            on_start=bar.begin,
        )
    for message in (*found.notes, *found.stopped):
        typer.echo(f"accord: {message}", err=True)
    typer.echo(json.dumps(comparison_json(found)) if as_json else comparison_text(found))
    if found.stopped:
        raise typer.Exit(1)
