"""The command that fits a rule on one record, to predict others with."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from accord.cli._arguments import Common, Epochs, Networks, RecordPath, open_selected
from accord.cli.read import resolve_told
from accord.errors import ChoiceError, counted

TRAINED_ON = (
    "the networks were trained on these very samples and know their labels by heart in the end: "
    "what they get wrong here says little of other samples. Fit on samples that they were not "
    "trained on"
)
EXAMPLE = (
    "\b\nExample:\n"
    "  accord fit runs/mine --out rule.npz\n"
    "  accord predict runs/new --fitted rule.npz\n\n"
    "Exit status: 0 written; 1 the record is missing, incomplete or damaged, or its votes do not "
    "tell enough; 2 an argument is wrong."
)


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(epilog=EXAMPLE)(fit)


def fit(
    record: RecordPath,
    out: Annotated[
        Path, typer.Option(metavar="RULE.npz", help="the file to write", show_default=False)
    ],
    rule: Annotated[
        str,
        typer.Option(
            "--rule",
            metavar="NAME",
            help="dawid-skene, weighted-agreement or before-overfit; `recommended` takes the one "
            "that suits RECORD",
        ),
    ] = "dawid-skene",
    networks: Networks = None,
    epochs: Epochs = None,
    common: Common = False,
) -> None:
    """Learn from RECORD how to weigh votes, to predict other samples with.

    Needs no labels. Predict any record of the same networks at the same epochs with it, however
    few samples that holds. RECORD should be of samples that the networks were not trained on.
    """
    if out.suffix != ".npz":
        raise ChoiceError(f"{out}: what a rule learnt is kept in an .npz file")

    opened = open_selected(record, common=common, networks=networks, epochs=epochs)
    if opened.reader.sample_info.trained_on:
        typer.echo(f"accord: {TRAINED_ON}", err=True)
    fitted = opened.fit(resolve_told(opened, rule))
    fitted.save(out)
    typer.echo(
        f"{out}: {fitted.name}, learnt from {counted(opened.networks, 'network')}, "
        f"{counted(opened.epochs, 'epoch')}, {counted(opened.samples, 'sample')}. "
        f"Next: accord predict RECORD --fitted {shlex.quote(str(out))}",
        err=True,
    )
