"""`accord import`: make a record from predictions in files."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from accord.cli._arguments import epilog
from accord.cli._progress import Bar

EPILOG = epilog(
    "accord import logs.npz runs/mine --classes 10",
    done="written",
    faults="1 the source is at fault, or the disk; 2 an argument is wrong.",
)


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
            show_default="from SOURCE",
        ),
    ] = None,
    classes: Annotated[
        int | None,
        typer.Option(metavar="C", min=1, help="number of classes", show_default="from SOURCE"),
    ] = None,
) -> None:
    """Convert saved predictions into RECORD.

    An npz file holds `labels` (network, epoch, sample) and may hold `truth`, `given`,
    `probabilities`, `class_names`, `ids` and `split` (default "test"). The number of classes
    defaults to the number of class names, else the largest label + 1.

    A folder holds resnet<i>/test_resnet_<i>_<epoch>.npy (npy-folder; without `test_`:
    npy-folder-train) or training_dynamics/dynamics_epoch_<e>.jsonl (cartography).
    """
    from accord.store import import_record

    with Bar("importing") as bar:
        import_record(source, record, format=format, classes=classes, progress=bar.samples)
    typer.echo(f"{record}: written. Next: accord score {shlex.quote(str(record))}", err=True)
