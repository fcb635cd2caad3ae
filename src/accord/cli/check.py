"""`accord check`: verify the checksums of a record."""

from pathlib import Path

import typer

from accord.cli import _arguments as shared
from accord.errors import counted

EPILOG = shared.epilog("accord check runs/mine", done="every committed row can be read")


def check(record: shared.RecordPath) -> None:
    """Verify every row of RECORD against its checksum.

    In a run folder, all records are verified, those of folds too. Damaged rows are named. Leftovers
    of interrupted writers and networks of unequal length are listed as notes; they do no harm.
    """
    from accord.store import check_record, record_paths

    sound = True
    folds = map(str, sorted(Path(record).expanduser().glob("folds/*/test*")))
    for path in [*record_paths(record).values(), *folds] or [record]:
        result = check_record(path)
        for finding in result.findings:
            typer.echo(f"{'damaged' if finding.damage else 'note'}: {finding.text}")
        damaged = sum(finding.damage for finding in result.findings)
        verdict = f"{damaged} damaged" if damaged else "all can be read"
        typer.echo(f"{path}: {counted(result.rows, 'row')}, {verdict}")
        sound = sound and result.sound
    if not sound:
        raise typer.Exit(1)
