"""`accord reproduce`: reproduce the paper's tables and figures."""

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accord.cli import _arguments as shared
from accord.cli._progress import Bar
from accord.cli.train import HERE, Gpus, Ray
from accord.errors import ChoiceError, listed, suggest

if TYPE_CHECKING:
    from accord.experiments.paper import Failure, ReproduceContext, Result, Target


EPILOG = shared.epilog(
    "accord reproduce table1/cifar10/sym/40 --scale stand-in",
    "accord reproduce figure5 --scale quick --data ~/data --out runs/paper",
    "accord reproduce --list",
    done="all reproduced",
    faults="1 data are missing, or a network could not be trained; 2 an argument is wrong.",
)


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
    out: Annotated[Path, typer.Option(metavar="DIR", help="folder of runs and results")] = Path(
        "runs/paper"
    ),
    data: Annotated[Path, typer.Option(metavar="DIR", help="folder of data sets")] = Path("data"),
    repetitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="each with other seeds; a figure shows one run",
            min=1,
            show_default="that of the scale",
        ),
    ] = None,
    on_cpu: Annotated[
        bool, typer.Option("--on-cpu", help="train without a GPU at scales that require one")
    ] = False,
    ray: Ray = None,
    gpus: Gpus = None,
    listing: Annotated[
        bool, typer.Option("--list", help="list every target with its status, and stop")
    ] = False,
    as_json: shared.Json = False,
) -> None:
    """Reproduce tables and figures of the paper, beside its numbers.

    A prefix selects every target below it; targets that cannot run are listed at the end. Missing
    runs are trained at one of four scales: paper (the paper's protocol), medium (ResNet-18, 100
    epochs), quick (some minutes on a GPU) and stand-in (the embedded digits, without a GPU; quick
    becomes stand-in where there is no GPU). When stopped and started again, it resumes.
    """
    from accord.experiments import paper

    if scale is not None and scale not in paper.SCALES:
        raise ChoiceError(f"no scale is called {scale!r}. {suggest(scale, list(paper.SCALES))}")
    if gpus is not None and ray is None:
        raise ChoiceError("--gpus requires --ray")
    shared.check_local(out)
    chosen = paper.find_targets(targets) if targets else list(paper.all_targets().values())
    if listing:
        items = paper.list_targets(chosen, scale, out=out, data=data)
        typer.echo(json.dumps({"items": items}) if as_json else paper.targets_text(items))
        return
    if not targets:
        raise ChoiceError("name a target: accord reproduce table1/cifar10/sym/40, or use --list")
    shared.require_torch("accord reproduce")
    notify = functools.cache(shared.print_notes)  # each note once
    context = paper.ReproduceContext(out, data, on_cpu=on_cpu, notify=notify)
    context = _with_ray(context, ray, gpus)
    _warn_of_repetitions(chosen, context, repetitions)
    found: list[Result | Failure] = []
    with Bar("training") as bar:
        context = replace(context, progress=bar.training, on_start=bar.begin)
        for one in paper.reproduce_all(
            chosen, context, scale=scale or "quick", repetitions=repetitions
        ):
            bar.close()  # while a result is printed
            if isinstance(one, paper.Result) and not as_json:
                first = all(isinstance(before, paper.Failure) for before in found)
                typer.echo(("" if first else "\n") + paper.result_text(one))
            found.append(one)
    _finish(found, named=chosen[0].name in targets, as_json=as_json)


def _finish(found: "list[Result | Failure]", *, named: bool, as_json: bool) -> None:
    """Print the results as JSON, and the failures; raise if there are any."""
    from accord.experiments.paper import Failure

    failures = [one for one in found if isinstance(one, Failure)]
    if as_json:
        failed = [{"target": one.target.name, "why": str(one.error)} for one in failures]
        items = [one.as_json() for one in found if not isinstance(one, Failure)]
        typer.echo(json.dumps({"results": items, "failed": failed}))
    if named and len(found) == 1 and failures:
        raise failures[0].error
    if failures:
        lines = [f"accord: {len(failures)} of {len(found)} targets could not be reproduced:"]
        before = None
        for one in failures:
            reason = str(one.error)
            lines.append(f"  {one.target.name}: {'as above' if reason == before else reason}")
            before = reason
        typer.echo("\n".join(lines), err=True)
        raise typer.Exit(1)


def _warn_of_repetitions(
    targets: "list[Target]", context: "ReproduceContext", repetitions: int | None
) -> None:
    figures = [target.name for target in targets if target.figure is not None]
    if repetitions is not None and repetitions > 1 and figures:
        context.notify(
            f"{listed(figures, most=1)}: a figure shows one run; --repetitions {repetitions} is "
            "for tables"
        )


def _with_ray(
    context: "ReproduceContext", address: str | None, gpus: float | None
) -> "ReproduceContext":
    if address is None:
        return context
    from accord.experiments import cluster

    trainer = functools.partial(cluster.train_remotely, address=address, gpus=gpus)
    context = replace(context, train=trainer)
    if address == HERE:
        return context
    has_gpu = functools.cache(lambda: cluster.has_gpus(address))
    return replace(context, machine=f"a Ray cluster at {address}", has_gpu=has_gpu)
