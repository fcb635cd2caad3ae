"""`accord check`: verify the checksums of a record."""

import typer

from accord.cli._arguments import RecordPath, epilog
from accord.errors import counted


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    done = "every committed row can be read"
    app.command(epilog=epilog("accord check runs/mine", done=done))(check)


def check(record: RecordPath) -> None:
    """Verify every row of RECORD against its checksum.

    Damaged rows are named. Leftovers of interrupted writers and networks of unequal length are
    listed as notes; they do no harm.
    """
    from accord.store import check_record

    result = check_record(record)
    for finding in result.findings:
        typer.echo(f"{'damaged' if finding.damage else 'note'}: {finding.text}")
    damaged = sum(finding.damage for finding in result.findings)
    verdict = f"{damaged} damaged" if damaged else "all can be read"
    typer.echo(f"{record}: {counted(result.rows, 'row')}, {verdict}")
    if not result.sound:
        raise typer.Exit(1)
