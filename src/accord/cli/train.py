"""The command that trains."""

import importlib.util
import json
from pathlib import Path
from typing import Annotated

import typer

from accord.cli.arguments import Json, Networks, parse_numbers
from accord.cli.progress import Bar
from accord.errors import ChoiceError, ExtraMissing

EXAMPLE = (
    "\b\nExample:\n"
    "  accord train examples/digits.toml --plan\n"
    "  accord train examples/digits.toml --out runs/digits\n\n"
    "Exit status: 0 trained; 1 the data are at fault, or a network could not be trained; "
    "2 the spec or an argument is wrong."
)


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(epilog=EXAMPLE)(train)


def train(
    spec: Annotated[
        Path | None,
        typer.Argument(metavar="SPEC.toml", help="what to train", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="the run's folder", show_default="runs/NAME-DIGEST"),
    ] = None,
    networks: Networks = None,
    plan: Annotated[bool, typer.Option("--plan", help="say what would be done, and stop")] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="name every reader, noise, network, loss …, and stop")
    ] = False,
    as_json: Json = False,
) -> None:
    """Train the networks that SPEC.toml asks for, and record every epoch.

    Writes RUN/spec.toml, a record for each split (RUN/test, RUN/train), RUN/checkpoints and
    RUN/metrics.csv. Stopped and started again, it goes on where it was. Several processes may
    share a run, each with networks of its own: --networks 0,1.
    """
    if importlib.util.find_spec("torch") is None:
        raise ExtraMissing("training needs torch: pip install 'accord[train]'")
    if listing:
        _list(as_json=as_json)
    elif spec is None:
        raise ChoiceError("name a spec: accord train SPEC.toml, or --list what it can name")
    elif plan:
        _plan(spec, out)
    else:
        _train(spec, out, parse_numbers(networks))


def _list(*, as_json: bool) -> None:
    from accord.training.catalogue import catalogue

    names = catalogue()
    if as_json:
        typer.echo(json.dumps({"items": [{"name": name, "status": "built"} for name in names]}))
    else:
        typer.echo("\n".join(names))


def _plan(path: Path, out: Path | None) -> None:
    from accord.training.plan import plan_run, plan_text
    from accord.training.run import default_out
    from accord.training.spec import load_spec

    spec = load_spec(path)
    folder = out or default_out(spec)
    typer.echo(plan_text(spec, plan_run(spec, folder), folder))


def _train(path: Path, out: Path | None, networks: list[int] | None) -> None:
    from accord.training.run import default_out, train_run
    from accord.training.spec import load_spec

    spec = load_spec(path)
    folder = out or default_out(spec)
    try:
        with Bar("training") as bar:
            source = path.read_text("utf-8")
            result = train_run(spec, folder, source=source, networks=networks, progress=bar.moment)
    except KeyboardInterrupt:
        typer.echo(
            f"accord: stopped; what was recorded is safe. To go on: accord train {path}"
            + (f" --out {out}" if out else ""),
            err=True,
        )
        raise typer.Exit(130) from None
    for note in result.notes:
        typer.echo(f"accord: {note}", err=True)
    for number, why in result.failed.items():
        typer.echo(f"accord: network {number} was stopped: {why}", err=True)
    typer.echo(f"{folder}: trained. Next: accord score {folder}/{spec.record.splits[0]}", err=True)
    if result.failed:
        raise typer.Exit(1)
