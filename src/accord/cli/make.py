"""Commands that make something: demo, import, pack, bench."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from accord.cli._arguments import Common, Json, Networks, RecordPath, check_local, parse_numbers
from accord.cli._progress import Bar, resumable


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for name, function, example, status in (
        (
            "demo",
            demo,
            "accord demo --out accord-demo",
            "0 done; 1 nothing could be written, or a dependency is missing; 130 interrupted.",
        ),
        (
            "import",
            import_,
            "accord import logs.npz runs/mine --classes 10",
            "0 written; 1 the source is at fault, or the disk; 2 an argument is wrong.",
        ),
        (
            "pack",
            pack,
            "accord pack runs/mine mine.zip",
            "0 written; 1 the record is missing, incomplete or damaged; 2 an argument is wrong.",
        ),
        ("bench", bench, "accord bench --json", "0 done."),
    ):
        epilog = f"\b\nExample:\n  {example}\n\nExit status: {status}"
        app.command(name=name, epilog=epilog)(function)


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="where to write; may exist")] = Path(
        "accord-demo"
    ),
) -> None:
    """Train five small networks on digits with 40 % wrong labels; predict, score and report.

    Writes DIR/record, DIR/predictions.csv and DIR/report.html. Needs no data and no GPU, and
    takes under a minute. Stopped and started again, it goes on.
    """
    from accord.experiments.demo import run_demo
    from accord.report._record_text import demo_text

    check_local(out)
    with resumable(f"{_program()} demo --out {shlex.quote(str(out))}"), Bar("training") as bar:
        record = run_demo(out, progress=bar.moment)
    typer.echo(demo_text(record, record.score(), out, program=_program()))


def _program() -> str:
    """Return how to call this command again: by its name, or by its path if that is not on PATH."""
    called = Path(sys.argv[0])
    if shutil.which("accord") or called.name != "accord":
        return "accord"
    return os.path.relpath(called)


def import_(
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="the file or folder to read", show_default=False),
    ],
    record: Annotated[
        str, typer.Argument(metavar="RECORD", help="the record to write", show_default=False)
    ],
    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="npz, npy-folder, npy-folder-train or cartography",
            show_default="as the source tells",
        ),
    ] = None,
    classes: Annotated[
        int | None,
        typer.Option(
            metavar="C", min=1, help="how many classes", show_default="as the source tells"
        ),
    ] = None,
) -> None:
    """Make RECORD from arrays that something else wrote.

    An npz holds `labels` (network, epoch, sample) and may hold `truth`, `given`,
    `probabilities`, `class_names`, `ids` and `split` (else "test"). Classes: the number of class
    names, else the largest label + 1.

    A folder holds resnet<i>/test_resnet_<i>_<epoch>.npy (npy-folder; without `test_`:
    npy-folder-train) or training_dynamics/dynamics_epoch_<e>.jsonl (cartography).
    """
    from accord.store import import_record

    with Bar("importing") as bar:
        import_record(source, record, format=format, classes=classes, progress=bar.samples)
    typer.echo(f"{record}: written. Next: accord score {shlex.quote(str(record))}", err=True)


def pack(
    record: RecordPath,
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT", help="the packed record; .zip makes one file", show_default=False
        ),
    ],
    networks: Networks = None,
    common: Common = False,
    labels_only: Annotated[
        bool, typer.Option("--labels-only", help="leave probabilities out")
    ] = False,
) -> None:
    """Rewrite RECORD as OUT: several times smaller, faster to read, no more rows.

    RECORD is left as it is.
    """
    from accord.store import pack_record

    with Bar("packing") as bar:
        pack_record(
            record,
            out,
            common=common,
            networks=parse_numbers(networks),
            labels_only=labels_only,
            progress=bar.samples,
        )
    typer.echo(f"{out}: written", err=True)


def bench(
    as_json: Json = False,
    full: Annotated[
        bool, typer.Option("--full", help="the large shapes too: 2 GB of memory, some minutes")
    ] = False,
) -> None:
    """Time counting votes and recording rows on this machine, against their peers."""
    import json

    from accord.experiments.bench import bench_text, run_bench

    with Bar("timing") as bar:
        results = run_bench(full=full, progress=bar.samples)
    typer.echo(json.dumps(results) if as_json else bench_text(results))
