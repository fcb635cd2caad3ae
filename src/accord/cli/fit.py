"""`accord fit`: fit a rule on one record, to predict others with."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from accord.cli import _arguments as shared
from accord.errors import ChoiceError, counted

TRAINED_ON = (
    "the networks were trained on these samples and have memorised their labels, so the errors "
    "they make here do not represent those on other samples. Fit on samples that they were not "
    "trained on"
)
EPILOG = shared.epilog(
    "accord fit runs/mine --out rule.npz",
    "accord predict runs/new --fitted rule.npz",
    done="written",
    faults="1 the record is missing, incomplete or damaged, or its votes do not determine the "
    "rule; 2 an argument is wrong.",
)


def fit(
    record: shared.RecordPath,
    out: Annotated[
        Path, typer.Option(metavar="RULE.npz", help="the file to write", show_default=False)
    ],
    rule: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="leave-one-out, dawid-skene, weighted-agreement, before-overfit or `recommended`",
        ),
    ] = "dawid-skene",
    networks: shared.Networks = None,
    epochs: shared.Epochs = None,
    common: shared.Common = False,
    split: shared.Split = None,
) -> None:
    """Fit a rule on RECORD, to predict other samples with.

    Needs no labels. The fitted rule predicts any record of the same networks at the same epochs,
    however few samples it has. RECORD should hold samples that the networks were not trained on.
    """
    if out.suffix != ".npz":
        raise ChoiceError(f"{out}: a fitted rule is saved as an .npz file")

    opened = shared.open_selected(record, networks, epochs, split, common=common)
    if opened.reader.trained_on:
        shared.print_notes(TRAINED_ON)
    fitted = opened.fit(shared.resolve_rule(opened, rule))
    fitted.save(out)
    typer.echo(
        f"{out}: {fitted.name}, fitted on {counted(opened.networks, 'network')}, "
        f"{counted(opened.epochs, 'epoch')}, {counted(opened.samples, 'sample')}. "
        f"Next: accord predict RECORD --fitted {shlex.quote(str(out))}",
        err=True,
    )
