"""`accord check`: verify the checksums of a record."""

import typer

from accord.cli._arguments import RecordPath, epilog
from accord.errors import counted

EPILOG = epilog("accord check runs/mine", done="every committed row can be read")


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
