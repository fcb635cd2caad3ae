"""`accord bench`: time Accord on this machine."""

import json
from typing import Annotated

import typer

from accord.cli import _arguments as shared
from accord.cli._progress import Bar

EPILOG = shared.epilog("accord bench --json", done="done", faults="2 an argument is wrong.")


def bench(
    as_json: shared.Json = False,
    full: Annotated[
        bool, typer.Option("--full", help="add the large shapes: 2 GB of memory, some minutes")
    ] = False,
) -> None:
    """Time vote counting and recording on this machine.

    Compares both with other libraries in the same run.
    """
    from accord.experiments.bench import bench_text, run_bench

    with Bar("timing") as bar:
        results = run_bench(full=full, progress=bar.samples)
    typer.echo(json.dumps(results) if as_json else bench_text(results))
