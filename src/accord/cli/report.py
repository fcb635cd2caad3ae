"""`accord report`: write the HTML page of a record."""

from pathlib import Path
from typing import Annotated

import typer

from accord.cli import _arguments as shared
from accord.errors import ChoiceError

EPILOG = shared.epilog("accord report runs/mine --out report.html", done="written")


def report(
    record: shared.RecordPath,
    out: Annotated[Path, typer.Option(metavar="FILE", help="the page to write")] = Path(
        "report.html"
    ),
    networks: shared.Networks = None,
    common: shared.Common = False,
    split: shared.Split = None,
) -> None:
    """Write one self-contained HTML page on RECORD.

    Compares the rules, with curves, histograms, overfitting, wrong labels and bad networks.
    Without true labels, shows what the votes alone determine.
    """
    if out.suffix not in {".html", ".htm"}:
        raise ChoiceError(f"{out}: a report is an .html file")
    from accord._files import local_path
    from accord._record import open_record
    from accord.analysis import summarize
    from accord.report import write_report

    out = local_path(out)
    opened = open_record(
        record, common=common, networks=shared.parse_numbers(networks), split=split
    )
    write_report(summarize(opened.reader), out)
    typer.echo(f"{out}: written", err=True)
