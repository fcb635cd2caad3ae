"""`accord predict`: combine a record into one label per sample."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from accord.cli._arguments import (
    DEFAULT_RULE,
    RULE_HELP,
    Common,
    Epochs,
    LabelsFile,
    Networks,
    RecordPath,
    Split,
    epilog,
    open_selected,
    print_notes,
    resolve_rule,
    wanted_rule,
)
from accord.errors import counted

EPILOG = epilog(
    "accord predict runs/mine --epochs :120 --out labels.csv",
    "accord predict runs/mine --rule recommended",
    "accord predict runs/new --fitted rule.npz",
    done="written",
)


def predict(
    record: RecordPath,
    rule: Annotated[
        str | None,
        typer.Option("--rule", metavar="NAME", help=RULE_HELP, show_default=DEFAULT_RULE),
    ] = None,
    fitted: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="instead of --rule: a rule that `accord fit` fitted on other samples",
        ),
    ] = None,
    networks: Networks = None,
    epochs: Epochs = None,
    common: Common = False,
    split: Split = None,
    out: LabelsFile = None,
) -> None:
    """Combine the votes in RECORD into one class per sample.

    Uses the predictions of all networks and epochs. Loads no network and needs no GPU.
    """
    from accord._predictions import check_ending

    if out is not None:
        check_ending(out)
    wanted = wanted_rule(rule, fitted)
    opened = open_selected(record, split=split, common=common, networks=networks, epochs=epochs)
    chosen = resolve_rule(opened, wanted)
    prediction = opened.predict(chosen)
    if prediction.note:
        print_notes(f"{chosen.name}: {prediction.note}")
    if out is None:
        sys.stdout.write("\n".join(map(str, prediction.labels.tolist())) + "\n")
    else:
        opened.save(prediction, out)
        typer.echo(f"{out}: {counted(len(prediction), 'label')} by {chosen.name}", err=True)
