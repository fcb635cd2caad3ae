"""The command that trains."""

import importlib.util
import json
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from accord.cli._arguments import Json, Networks, check_local, parse_numbers
from accord.cli._progress import Bar, resumable
from accord.errors import ChoiceError, missing_extra

if TYPE_CHECKING:
    from accord.training import RunResult, Spec


HERE: Final = "local"  # where `--ray` alone trains
EXAMPLE = (
    "\b\nExample:\n"
    "  accord train examples/digits.toml --plan\n"
    "  accord train examples/digits.toml --out runs/digits\n"
    "  accord train examples/digits.toml --out /shared/digits --ray 10.0.0.1:6379\n\n"
    "Exit status: 0 trained; 1 the data are at fault, or a network could not be trained; "
    "2 the spec or an argument is wrong."
)


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(epilog=EXAMPLE, cls=RayCommand)(train)


def settle_ray(arguments: list[str]) -> list[str]:
    """Give `--ray` its value where none follows that looks like an address.

    >>> settle_ray(["--ray", "a.toml"]), settle_ray(["--ray", "10.0.0.1:6379"])
    (['--ray=local', 'a.toml'], ['--ray=10.0.0.1:6379'])
    """
    settled: list[str] = []
    for argument in arguments:
        if settled[-1:] != ["--ray"]:
            settled.append(argument)
        elif re.fullmatch(r"auto|local|ray://.+|[^-/\s][^/\s]*:\d+", argument):
            settled[-1] = f"--ray={argument}"
        else:
            settled[-1:] = [f"--ray={HERE}", argument]
    return [f"--ray={HERE}" if argument == "--ray" else argument for argument in settled]


Ray = Annotated[
    str | None,
    typer.Option(
        metavar="[ADDR]",
        help="train on a Ray cluster: HOST:PORT or auto; alone, on this machine's cores",
        show_default=False,
    ),
]


Gpus = Annotated[
    float | None,
    typer.Option(
        metavar="FRACTION",
        help="of a GPU for each network; with --ray",
        show_default="so that all train at once",
    ),
]


class RayCommand(TyperCommand):
    """A command whose `--ray` may stand without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        return super().parse_args(ctx, settle_ray(args))


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
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="train in so many, on a CPU",
            min=1,
            show_default="one for each core, if networks are small and it pays",
        ),
    ] = None,
    ray: Ray = None,
    gpus: Gpus = None,
    as_json: Json = False,
) -> None:
    """Train the networks that SPEC.toml asks for, and record every epoch.

    Writes RUN/spec.toml, a record for each split (RUN/test, RUN/train), RUN/checkpoints and
    RUN/metrics.csv. Stopped and started again, it goes on where it was. Several processes may
    share a run, each with networks of its own: --networks 0,1. With --ray, each network is a task
    of its own; RUN must lie where all machines of the cluster see it, and RUN/logs tells of each.
    """
    if importlib.util.find_spec("torch") is None:
        raise missing_extra("training", "torch", extra="train")
    check_local(out)
    if listing:
        _list(as_json=as_json)
        return
    if spec is None:
        raise ChoiceError("name a spec: accord train SPEC.toml, or --list what it can name")
    _check_gpus(gpus, ray=ray, plan=plan)
    if processes is not None and ray is not None:
        raise ChoiceError("--ray shares the networks out itself: leave --processes out")
    chosen = parse_numbers(networks)
    if plan:
        _plan(spec, out, chosen, ray=ray, as_json=as_json)
        return
    means: dict[str, Any] = {"processes": processes, "ray": ray, "gpus": gpus}
    with resumable(_again(spec, out, networks, means, as_json=as_json)):
        _train(spec, out, chosen, **means, as_json=as_json)


def _check_gpus(gpus: float | None, *, ray: str | None, plan: bool) -> None:
    if gpus is not None and ray is None:
        raise ChoiceError("--gpus shares out a cluster: give --ray too")
    if gpus is not None and plan:
        raise ChoiceError("--plan asks no cluster: leave --gpus out")


def _again(
    spec: Path,
    out: Path | None,
    networks: str | None,
    means: dict[str, Any],
    *,
    as_json: bool,
) -> str:
    """Return the command that goes on with this one."""
    ray, gpus, processes = means["ray"], means["gpus"], means["processes"]
    words = ["accord", "train", str(spec)]
    words += [] if out is None else ["--out", str(out)]
    words += [] if networks is None else ["--networks", networks]
    words += [] if processes is None else ["--processes", str(processes)]
    words += [] if ray is None else ["--ray"] if ray == HERE else ["--ray", ray]
    words += [] if gpus is None else ["--gpus", f"{gpus:g}"]
    words += ["--json"] if as_json else []
    return shlex.join(words)


def _list(*, as_json: bool) -> None:
    from accord.training._names import registered_names

    names = registered_names()
    if as_json:
        typer.echo(json.dumps({"items": [{"name": name, "status": "built"} for name in names]}))
    else:
        typer.echo("\n".join(names))


def _plan(
    path: Path, out: Path | None, networks: list[int] | None, *, ray: str | None, as_json: bool
) -> None:
    from accord.training import default_out, load_spec, plan_run
    from accord.training._plan import plan_json, plan_text

    spec = load_spec(path)
    folder = out or default_out(spec)
    plan = plan_run(spec, folder, networks=networks)
    if ray is not None:
        plan = replace(plan, device="ray")
    _note(plan.notes)
    if as_json:
        typer.echo(json.dumps(plan_json(spec, plan, folder)))
    else:
        typer.echo(plan_text(spec, plan, folder))


def _train(
    path: Path,
    out: Path | None,
    networks: list[int] | None,
    *,
    processes: int | None,
    ray: str | None,
    gpus: float | None,
    as_json: bool,
) -> None:
    from accord.training import default_out, load_spec
    from accord.training._train import result_json

    spec = load_spec(path)
    folder = out or default_out(spec)
    chosen = {"source": path.read_text("utf-8"), "networks": networks}
    begun = time.monotonic()
    if ray is None:
        result = _train_here(spec, folder, **chosen, processes=processes)
    else:
        result = _train_on(ray, spec, folder, **chosen, gpus=gpus)
    result = replace(result, out=folder)  # as it was named
    if as_json:
        typer.echo(json.dumps(result_json(spec, result, seconds=time.monotonic() - begun)))
    _tell(spec, result)
    if result.failed:
        raise typer.Exit(1)


def _train_here(spec: "Spec", out: Path, **options: Any) -> "RunResult":
    from accord.training import train

    with Bar("training") as bar:
        return train(spec, out, **options, progress=bar.training)


def _train_on(address: str, spec: "Spec", out: Path, **options: Any) -> "RunResult":
    from accord.experiments.cluster import train_remotely

    def notify(message: str) -> None:
        typer.echo(f"accord: {message}", err=True)

    with Bar("training") as bar:
        return train_remotely(
            spec, out, **options, address=address, progress=bar.training, notify=notify
        )


def _tell(spec: "Spec", result: "RunResult") -> None:
    _note(result.notes)
    for number, why in result.failed.items():
        typer.echo(f"accord: network {number} was stopped: {why}", err=True)
    typer.echo(f"{result.out}: {_ending(spec, result)}", err=True)


def _note(notes: Sequence[str]) -> None:
    for note in notes:
        typer.echo(f"accord: {note}", err=True)


def _ending(spec: "Spec", result: "RunResult") -> str:
    """Return the last words on a run: what there is to look at, if anything."""
    from accord.training._train import finished_networks

    score = f"accord score {shlex.quote(str(result.out / spec.record.splits[0]))}"
    if not result.failed:
        return f"trained. Next: {score}"
    trained = finished_networks(spec, result)
    if not trained:
        return "no network was trained to its end. Correct the spec, and give another --out."
    numbers = ",".join(map(str, trained))
    return f"trained, but for what was stopped. Next: {score} --networks {numbers}"
