"""`accord train`: train the networks of a spec."""

import json
import re
import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from accord.cli._arguments import (
    Json,
    Networks,
    check_local,
    epilog,
    parse_numbers,
    print_note,
    require_torch,
)
from accord.cli._progress import Bar, resumable
from accord.errors import ChoiceError

if TYPE_CHECKING:
    from accord.training import RunResult, Spec


HERE: Final = "local"  # the address that `--ray` alone stands for
EPILOG: Final = epilog(
    "accord train examples/digits.toml --plan",
    "accord train examples/digits.toml --out runs/digits",
    "accord train examples/digits.toml --out /shared/digits --ray 10.0.0.1:6379",
    done="all networks were trained",
    faults="1 the data are at fault, or a network failed; 2 the spec or an argument is wrong.",
)


def complete_ray(arguments: list[str]) -> list[str]:
    """Give `--ray` the value `local` unless an address follows.

    >>> complete_ray(["--ray", "a.toml"]), complete_ray(["--ray", "10.0.0.1:6379"])
    (['--ray=local', 'a.toml'], ['--ray=10.0.0.1:6379'])
    """
    completed: list[str] = []
    for argument in arguments:
        if completed[-1:] != ["--ray"]:
            completed.append(argument)
        elif re.fullmatch(r"auto|local|ray://.+|[^-/\s][^/\s]*:\d+", argument):
            completed[-1] = f"--ray={argument}"
        else:
            completed[-1:] = [f"--ray={HERE}", argument]
    return [f"--ray={HERE}" if argument == "--ray" else argument for argument in completed]


Ray = Annotated[
    str | None,
    typer.Option(
        metavar="[ADDR]",
        help="train on a Ray cluster: HOST:PORT or auto; without a value, on this machine",
        show_default=False,
    ),
]
Gpus = Annotated[
    float | None,
    typer.Option(
        metavar="FRACTION",
        help="fraction of a GPU per network (requires --ray)",
        show_default="so that all networks train at once",
    ),
]


class RayCommand(TyperCommand):
    """A command whose `--ray` may stand without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments."""
        return super().parse_args(ctx, complete_ray(args))


def train(
    spec: Annotated[
        Path | None,
        typer.Argument(metavar="SPEC.toml", help="what to train", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="the run folder", show_default="runs/NAME-DIGEST"),
    ] = None,
    networks: Networks = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="print what would be trained, and stop")
    ] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="list all readers, noises, networks, losses … and stop")
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="number of worker processes (CPU only)",
            min=1,
            show_default="one per core for small networks",
        ),
    ] = None,
    ray: Ray = None,
    gpus: Gpus = None,
    as_json: Json = False,
) -> None:
    """Train the networks of SPEC.toml and record every epoch.

    Writes RUN/spec.toml, a record for each split (RUN/test, RUN/train), RUN/checkpoints and
    RUN/metrics.csv. An interrupted run resumes. Several machines can share a run if each trains
    other networks: --networks 0,1. With --ray, each network is one task of a cluster; RUN must lie
    on a file system that all nodes share, and RUN/logs holds the log of each network.
    """
    if listing:
        _list(as_json=as_json)
        return
    require_torch("training")
    check_local(out)
    if spec is None:
        raise ChoiceError("name a spec: accord train SPEC.toml; --list shows what it can contain")
    _check_cluster_options(processes=processes, ray=ray, gpus=gpus, plan=plan)
    chosen = parse_numbers(networks)
    if plan:
        _plan(spec, out, chosen, ray=ray, as_json=as_json)
        return

    from accord import training
    from accord.training._train import result_json

    where: dict[str, Any] = {"processes": processes, "ray": ray, "gpus": gpus}
    with resumable(_command(spec, out, networks, **where, as_json=as_json)):
        loaded = training.load_spec(spec)
        folder = out or training.default_out(loaded)
        options: dict[str, Any] = {"source": spec.read_text("utf-8"), "networks": chosen}
        start = time.monotonic()
        with Bar("training") as bar:
            options["progress"] = bar.training
            if ray is None:
                result = training.train(loaded, folder, **options, processes=processes)
            else:
                from accord.experiments.cluster import train_remotely

                result = train_remotely(
                    loaded, folder, **options, address=ray, gpus=gpus, notify=print_note
                )
        result = replace(result, out=folder)  # the path as it was typed
        if as_json:
            typer.echo(json.dumps(result_json(loaded, result, seconds=time.monotonic() - start)))
        _print_result(loaded, result)


def _check_cluster_options(
    *, processes: int | None, ray: str | None, gpus: float | None, plan: bool
) -> None:
    if gpus is not None and ray is None:
        raise ChoiceError("--gpus requires --ray")
    if gpus is not None and plan:
        raise ChoiceError("--plan does not use a cluster: leave --gpus out")
    if processes is not None and ray is not None:
        raise ChoiceError("--processes cannot be combined with --ray, which starts its own workers")


def _command(
    spec: Path,
    out: Path | None,
    networks: str | None,
    *,
    processes: int | None,
    ray: str | None,
    gpus: float | None,
    as_json: bool,
) -> str:
    """Return the command line that resumes the run."""
    words = ["accord", "train", str(spec)]
    for option, value in (("--out", out), ("--networks", networks), ("--processes", processes)):
        words += [] if value is None else [option, str(value)]
    words += [] if ray is None else ["--ray"] if ray == HERE else ["--ray", ray]
    words += [] if gpus is None else ["--gpus", f"{gpus:g}"]
    words += ["--json"] if as_json else []
    return shlex.join(words)


def _list(*, as_json: bool) -> None:
    from accord.training import registered_names

    names = registered_names()
    items = [{"name": name, "status": "built"} for name in names]
    typer.echo(json.dumps({"items": items}) if as_json else "\n".join(names))


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
    for note in plan.notes:
        print_note(note)
    shown = (spec, plan, folder)
    typer.echo(json.dumps(plan_json(*shown)) if as_json else plan_text(*shown))


def _print_result(spec: "Spec", result: "RunResult") -> None:
    """Print how training ended; exit with status 1 if a network failed."""
    failed = (f"network {number} failed: {error}" for number, error in result.failed.items())
    for note in (*result.notes, *failed):
        print_note(note)
    typer.echo(f"{result.out}: {_summary(spec, result)}", err=True)
    if result.failed:
        raise typer.Exit(1)


def _summary(spec: "Spec", result: "RunResult") -> str:
    """Return how training ended, and the next command."""
    from accord.training._train import finished_networks

    score = f"accord score {shlex.quote(str(result.out / spec.record.splits[0]))}"
    if not result.failed:
        return f"trained. Next: {score}"
    trained = finished_networks(spec, result)
    if not trained:
        return "no network finished training. Correct the spec, and name another --out."
    numbers = ",".join(map(str, trained))
    return f"trained, except for the networks that failed. Next: {score} --networks {numbers}"
