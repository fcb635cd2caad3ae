"""`accord remove`: remove networks from a record or a run."""

from typing import Annotated

import typer

from accord.cli import _arguments as shared
from accord.errors import counted

EPILOG = shared.epilog("accord remove runs/mine --networks 2,3", done="removed")


def remove(
    record: shared.RecordPath,
    networks: Annotated[
        str, typer.Option(metavar="0,2", help="the networks to remove", show_default=False)
    ],
) -> None:
    """Remove networks from RECORD.

    In a run folder, they are removed from all records, with their checkpoints. They can be
    recorded again. A network that is being recorded is not removed.
    """
    from accord.store import remove_networks

    numbers = shared.parse_numbers(networks) or []
    remove_networks(record, numbers)
    typer.echo(f"{record}: {counted(len(numbers), 'network')} removed", err=True)
