"""`accord predict`: combine a record into one label per sample."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from accord.cli import _arguments as shared
from accord.errors import counted

EPILOG = shared.epilog(
    "accord predict runs/mine --epochs :120 --out labels.csv",
    "accord predict runs/mine --rule recommended",
    "accord predict runs/new --fitted rule.npz",
    done="written",
)


def predict(
    record: shared.RecordPath,
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule", metavar="NAME", help=shared.RULE_HELP, show_default=shared.DEFAULT_RULE
        ),
    ] = None,
    fitted: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="instead of --rule: a rule that `accord fit` fitted on other samples",
        ),
    ] = None,
    networks: shared.Networks = None,
    epochs: shared.Epochs = None,
    common: shared.Common = False,
    split: shared.Split = None,
    out: shared.LabelsFile = None,
) -> None:
    """Combine the votes in RECORD into one class per sample.

    Uses the predictions of all networks and epochs. Loads no network and needs no GPU.
    """
    from accord._predictions import check_ending

    if out is not None:
        check_ending(out)
    wanted = shared.wanted_rule(rule, fitted)
    opened = shared.open_selected(record, networks, epochs, split, common=common)
    chosen = shared.resolve_rule(opened, wanted)
    prediction = opened.predict(chosen)
    if prediction.note:
        shared.print_notes(f"{chosen.name}: {prediction.note}")
    if out is None:
        sys.stdout.write("\n".join(map(str, prediction.labels.tolist())) + "\n")
    else:
        opened.save(prediction, out)
        typer.echo(f"{out}: {counted(len(prediction), 'label')} by {chosen.name}", err=True)
