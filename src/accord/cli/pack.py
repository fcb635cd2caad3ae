"""`accord pack`: rewrite a record in the packed form."""

from typing import Annotated

import typer

from accord.cli import _arguments as shared
from accord.cli._progress import Bar

EPILOG = shared.epilog(
    "accord pack runs/mine mine.zip",
    "accord pack runs/mine half.zip --epochs 1::2 --labels-only",
    done="written",
)


def pack(
    record: shared.RecordPath,
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT", help="the packed record; .zip makes one file", show_default=False
        ),
    ],
    networks: shared.Networks = None,
    epochs: shared.Epochs = None,
    common: shared.Common = False,
    split: shared.Split = None,
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
            networks=shared.parse_numbers(networks),
            epochs=shared.parse_slice(epochs),
            labels_only=labels_only,
            split=split,
            progress=bar.samples,
        )
    typer.echo(f"{out}: written", err=True)
