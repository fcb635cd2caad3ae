"""`accord train`: train networks on a spec or a data set."""

import json
import re
import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from accord.cli import _arguments as shared
from accord.cli._progress import Bar, resumable
from accord.errors import ChoiceError

if TYPE_CHECKING:
    from accord.training import RunResult, Spec


HERE: Final = "local"  # the address that `--ray` alone stands for
EPILOG: Final = shared.epilog(
    "accord train examples/digits.toml --plan",
    "accord train examples/digits.toml --out runs/digits",
    "accord train penguins.csv --label species --cross-fit 5",
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
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="SPEC.toml|DATA",
            help="what to train; or a table (.csv, .tsv, .parquet), an .npz file, or a folder of "
            "images, for which a spec is written",
            show_default=False,
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="of a table: column of labels",
            show_default="named label, class, target, …",
        ),
    ] = None,
    drop_unlabelled: Annotated[
        bool, typer.Option("--drop-unlabelled", help="of a table: leave out rows without a label")
    ] = False,
    cross_fit: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="train without each of K folds, so that every sample is judged by networks that "
            "did not train on it",
            min=2,
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="the run folder", show_default="runs/NAME-DIGEST"),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="remove the run in the run folder, and start anew")
    ] = False,
    networks: shared.Networks = None,
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
    as_json: shared.Json = False,
) -> None:
    """Train networks on SPEC.toml or DATA, and record every epoch.

    Writes RUN/spec.toml, a record for each split (RUN/test, RUN/train), RUN/checkpoints and
    RUN/metrics.csv. An interrupted run resumes. Several machines can share a run if each trains
    other networks: --networks 0,1. With --ray, each network is one task of a cluster; RUN must lie
    on a file system that all nodes share, and RUN/logs holds the log of each network.
    """
    if listing:
        _list(as_json=as_json)
        return
    shared.require_torch("training")
    shared.check_local(out)
    if source is None:
        raise ChoiceError(
            "name a spec or data: accord train SPEC.toml, or accord train DATA.csv --label COLUMN; "
            "--list shows what a spec can contain"
        )
    _check_cluster_options(processes=processes, ray=ray, gpus=gpus, plan=plan, overwrite=overwrite)
    chosen = shared.parse_numbers(networks)
    if (source / "spec.toml").is_file():  # a run
        source, out = source / "spec.toml", out or source
    spec, text = _read_source(
        source, label=label, drop_unlabelled=drop_unlabelled, cross_fit=cross_fit
    )

    from accord import training
    from accord.training._train_run import result_json

    folder = out or training.default_out(spec)
    if plan:
        _plan(spec, folder, chosen, ray=ray, as_json=as_json)
        return
    where: dict[str, Any] = {"processes": processes, "ray": ray, "gpus": gpus}
    data = {"label": label, "drop_unlabelled": drop_unlabelled, "cross_fit": cross_fit}
    with resumable(_command(source, data | {"out": out, "networks": networks, **where}, as_json)):
        options: dict[str, Any] = {"source": text, "networks": chosen}
        start = time.monotonic()
        with Bar("training") as bar:
            options["progress"] = bar.training
            if ray is None:
                options |= {"processes": processes, "overwrite": overwrite}
                result = training.train(spec, folder, **options)
            else:
                from accord.experiments.cluster import train_remotely

                result = train_remotely(
                    spec, folder, **options, address=ray, gpus=gpus, notify=shared.print_notes
                )
        result = replace(result, out=folder)  # the path as it was typed
        if as_json:
            typer.echo(json.dumps(result_json(spec, result, seconds=time.monotonic() - start)))
        _print_result(spec, result, idle=bar.idle and ray is None)


def _read_source(
    source: Path, *, label: str | None, drop_unlabelled: bool, cross_fit: int | None
) -> "tuple[Spec, str | None]":
    """Return the spec and its text, or a spec written for data."""
    from accord.training import load_spec, spec_from_data
    from accord.training._cross_fit import cross_fit_spec
    from accord.training._spec_from_data import is_data

    if is_data(source):
        spec, notes = spec_from_data(
            source, label=label, drop_unlabelled=drop_unlabelled, cross_fit=cross_fit
        )
        for note in notes:
            typer.echo(f"{source}: {note}", err=True)
        return spec, None
    if label is not None or drop_unlabelled:
        raise ChoiceError(
            f"{source}: is a spec, which names the column of labels itself: data.label. "
            "--label and --drop-unlabelled are for data without a spec"
        )
    spec = load_spec(source)
    if cross_fit is not None:
        return cross_fit_spec(spec, cross_fit), None
    return spec, source.read_text("utf-8")


def _check_cluster_options(
    *, processes: int | None, ray: str | None, gpus: float | None, plan: bool, overwrite: bool
) -> None:
    if overwrite and (ray is not None or plan):
        raise ChoiceError("--overwrite cannot be combined with --ray or --plan")
    if gpus is not None and ray is None:
        raise ChoiceError("--gpus requires --ray")
    if gpus is not None and plan:
        raise ChoiceError("--plan does not use a cluster: leave --gpus out")
    if processes is not None and ray is not None:
        raise ChoiceError("--processes cannot be combined with --ray, which starts its own workers")


def _command(source: Path, options: dict[str, Any], as_json: bool) -> str:
    """Return the command line that resumes the run."""
    words = ["accord", "train", str(source)]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True or (name == "ray" and value == HERE):
            words.append(option)
        elif value not in (None, False):
            words += [option, f"{value:g}" if isinstance(value, float) else str(value)]
    words += ["--json"] if as_json else []
    return shlex.join(words)


def _list(*, as_json: bool) -> None:
    from accord.training import registered_names

    names = registered_names()
    items = [{"name": name, "status": "built"} for name in names]
    typer.echo(json.dumps({"items": items}) if as_json else "\n".join(names))


def _plan(
    spec: "Spec", folder: Path, networks: list[int] | None, *, ray: str | None, as_json: bool
) -> None:
    from accord.training import plan_run
    from accord.training._plan import plan_json, plan_text

    plan = plan_run(spec, folder, networks=networks)
    if ray is not None:
        plan = replace(plan, device="ray")
    shared.print_notes(*plan.notes)
    shown = (spec, plan, folder)
    typer.echo(json.dumps(plan_json(*shown)) if as_json else plan_text(*shown))


def _print_result(spec: "Spec", result: "RunResult", *, idle: bool) -> None:
    """Print how training ended; exit with status 1 if a network failed."""
    failed = (f"network {number} failed: {error}" for number, error in result.failed.items())
    shared.print_notes(*result.notes, *failed)
    if idle and not result.failed:
        shared.print_notes(
            "nothing was trained, as the networks were complete. To train them anew: --overwrite"
        )
    typer.echo(f"{result.out}: {_summary(spec, result)}", err=True)
    if result.failed:
        raise typer.Exit(1)


def _summary(spec: "Spec", result: "RunResult") -> str:
    """Return how training ended, and the next command."""
    from accord.training._train_run import finished_networks

    split = spec.record.splits[0]
    command = "audit" if split == "train" else "score"
    score = f"accord {command} {shlex.quote(str(result.out / split))}"
    if not result.failed:
        return f"trained. Next: {score}"
    trained = finished_networks(spec, result)
    if not trained:
        return "no network finished training. Correct the spec, and name another --out."
    numbers = ",".join(map(str, trained))
    return f"trained, except for the networks that failed. Next: {score} --networks {numbers}"
