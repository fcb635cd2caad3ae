"""`accord import`: make a record from predictions in files."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from accord.cli import _arguments as shared
from accord.cli._progress import Bar

EPILOG = shared.epilog(
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
            help="npz, npy, csv, tsv, parquet, npy-folder, npy-folder-train, aum or cartography",
            show_default="from SOURCE",
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="names of npy files, such as 'seed{network}/epoch_{epoch}.npy'"
        ),
    ] = None,
    axes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="axes of the array: an order of network, epoch, sample and class",
            show_default="network,epoch,sample",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="array in an npz file, or 'NAME{network}' for several"),
    ] = None,
    classes: Annotated[
        int | None,
        typer.Option(metavar="C", min=1, help="number of classes", show_default="from SOURCE"),
    ] = None,
) -> None:
    """Convert saved predictions into RECORD.

    An npz file holds `labels` (network, epoch, sample), or probabilities or logits with an axis
    class, and may hold `truth`, `given`, `class_names`, `ids` and `split` (default "test"). A
    table (csv, parquet) holds one vote per row: network, epoch, sample, label.

    A folder holds npy files (--pattern; or resnet<i>/test_resnet_<i>_<epoch>.npy), the records of
    AUM or the training dynamics of Dataset Cartography.
    """
    from accord.store import import_record

    with Bar("importing") as bar:
        read = import_record(
            source,
            record,
            format=format,
            pattern=pattern,
            axes=axes,
            key=key,
            classes=classes,
            progress=bar.samples,
        )
    typer.echo(f"{source}: {read}", err=True)
    typer.echo(f"{record}: written. Next: accord score {shlex.quote(str(record))}", err=True)
