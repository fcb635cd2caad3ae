"""`accord pack`: rewrite a record in the packed form."""

from typing import Annotated

import typer

from accord.cli._arguments import (
    Common,
    Epochs,
    Networks,
    RecordPath,
    Split,
    epilog,
    parse_numbers,
    parse_slice,
)
from accord.cli._progress import Bar

EPILOG = epilog(
    "accord pack runs/mine mine.zip",
    "accord pack runs/mine half.zip --epochs 1::2 --labels-only",
    done="written",
)


def pack(
    record: RecordPath,
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT", help="the packed record; .zip makes one file", show_default=False
        ),
    ],
    networks: Networks = None,
    epochs: Epochs = None,
    common: Common = False,
    split: Split = None,
    labels_only: Annotated[
        bool, typer.Option("--labels-only", help="leave probabilities out")
    ] = False,
) -> None:
    """Copy RECORD to OUT in a smaller form that reads faster.

    OUT accepts no further rows. RECORD is not changed.
    """
    from accord.store import pack_record

    with Bar("packing") as bar:
        pack_record(
            record,
            out,
            common=common,
            networks=parse_numbers(networks),
            epochs=parse_slice(epochs),
            labels_only=labels_only,
            split=split,
            progress=bar.samples,
        )
    typer.echo(f"{out}: written", err=True)
