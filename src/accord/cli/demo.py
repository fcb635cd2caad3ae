"""`accord demo`: train, record, predict, score and report in one go."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from accord.cli import _arguments as shared
from accord.cli._progress import Bar, resumable

EPILOG = shared.epilog(
    "accord demo --out accord-demo",
    done="done",
    faults="1 nothing could be written, or a dependency is missing; 130 interrupted.",
)


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="output folder; may exist")] = Path(
        "accord-demo"
    ),
) -> None:
    """Train five small networks on noisy digits; write a report.

    40 % of the training labels are wrong. Writes DIR/record, DIR/predictions.csv and
    DIR/report.html. Needs no data and no GPU, and takes less than a minute. If interrupted, run
    it again to resume.
    """
    shared.require_torch("accord demo")
    from accord.analysis import Overview, compare_rules
    from accord.experiments.demo import run_demo
    from accord.report._command_text import demo_text

    shared.check_local(out)
    with resumable(f"{_program()} demo --out {shlex.quote(str(out))}"), Bar("training") as bar:
        record = run_demo(out, progress=bar.training)
    overview, found = Overview.of(record.reader), compare_rules(record.reader)
    typer.echo(demo_text(overview, found, out, program=_program()))


def _program() -> str:
    # What a reader can type next: `make demo` runs a command that is not on PATH.
    called = Path(sys.argv[0])
    if shutil.which("accord") or called.name != "accord":
        return "accord"
    return os.path.relpath(called)
