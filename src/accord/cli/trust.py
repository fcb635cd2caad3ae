"""The command that tells how far to trust predictions."""

import json
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accord.cli._arguments import (
    Common,
    Epochs,
    Json,
    Networks,
    RecordPath,
    open_selected,
    to_write,
)
from accord.cli.read import DEFAULT, RULE_HELP, resolve_told
from accord.errors import ChoiceError, counted

if TYPE_CHECKING:
    from accord._record import Record
    from accord.analysis import Estimate
    from accord.report._trust_summary import Trust


EXAMPLE = (
    "\b\nExample:\n"
    "  accord trust runs/mine/test --risk 0.02\n"
    "  accord trust runs/new --threshold 0.58 --out samples.csv\n"
    "  accord trust runs/new --verify 300 --out queue.csv\n"
    "  accord trust runs/new --verified queue.csv\n\n"
    "Exit status: 0 told; 1 the record or the verified samples are at fault; "
    "2 an argument is wrong."
)
RISK = 0.05
RISK_NEEDS = (
    "true labels choose the threshold, and none were recorded. Choose it on a record that has "
    "them, of the same networks, and name it here: --threshold T"
)


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(epilog=EXAMPLE)(trust)


def trust(
    record: RecordPath,
    rule: Annotated[str, typer.Option("--rule", metavar="NAME", help=RULE_HELP)] = DEFAULT,
    risk: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="answer where at most this share is wrong, with 95 % confidence; needs true "
            "labels",
            show_default=str(RISK),
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            help="instead of --risk: answer from this margin on (other rules than max-agreement: "
            "score)",
        ),
    ] = None,
    verify: Annotated[
        int | None,
        typer.Option(metavar="N", help="choose samples for people to verify; --out names the file"),
    ] = None,
    verified: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="read what people decided, and tell the accuracy"),
    ] = None,
    networks: Networks = None,
    epochs: Epochs = None,
    common: Common = False,
    as_json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="write each sample's label, score, margin and whether it is answered; with "
            "--verify, the samples to verify",
        ),
    ] = None,
) -> None:
    """Tell how far to trust the labels that a rule predicts from RECORD.

    With true labels: how often labels are right by their score, what answering only the
    surest samples buys, and the threshold that keeps a risk on samples like these. Without:
    the scores, and how few verified samples tell the rest. Bad networks and what was forgotten
    are told either way.
    """
    out = to_write(out)
    _check_options(risk, threshold, verify, verified, out)
    from accord.report._trust_summary import measure_trust

    opened = open_selected(record, common=common, networks=networks, epochs=epochs)
    if risk is not None and opened.truth is None:
        typer.echo(f"accord: --risk {risk:g} is without effect: {RISK_NEEDS}", err=True)
    chosen = resolve_told(opened, rule).name
    found = measure_trust(opened, chosen, risk=RISK if risk is None else risk, threshold=threshold)
    estimate = None if verified is None else _accuracy(opened, found, verified)
    if out is not None:
        _write(opened, found, out, verify)
    _print(opened, found, estimate, as_json=as_json)


def _check_options(
    risk: float | None,
    threshold: float | None,
    verify: int | None,
    verified: Path | None,
    out: Path | None,
) -> None:
    if risk is not None and not 0 < risk < 1:
        raise ChoiceError(f"--risk must lie between 0 and 1, as 0.05 does; got {risk:g}")
    if threshold is not None and not math.isfinite(threshold):
        raise ChoiceError(f"--threshold takes a number like 0.58; got {threshold}")
    if risk is not None and threshold is not None:
        raise ChoiceError(
            "--risk chooses a threshold, --threshold names one. Leave one of them out"
        )
    if verify is not None and verified is not None:
        raise ChoiceError("--verify comes first, --verified once people have decided")
    if verify is not None and out is None:
        raise ChoiceError("--verify needs a file for people to decide in: --out queue.csv")
    if out is not None and out.suffix != ".csv":
        raise ChoiceError(f"{out}: --out is written as .csv; got {out.suffix!r}")


def _accuracy(record: "Record", found: "Trust", path: Path) -> "Estimate":
    from accord.report._verification_files import read_verification

    return read_verification(path, sample_info=record.reader.sample_info).accuracy(found.prediction)


def _write(record: "Record", found: "Trust", out: Path, verify: int | None) -> None:
    from accord.analysis import choose_to_verify
    from accord.report._trust_text import write_samples
    from accord.report._verification_files import write_verification

    if verify is None:
        write_samples(record, found, out)
        typer.echo(f"{out}: {counted(record.samples, 'sample')}", err=True)
        return
    sampling = choose_to_verify(found.prediction.scores, verify)
    write_verification(sampling, out, sample_info=record.reader.sample_info)
    then = shlex.join(["accord", "trust", record.path, "--verified", str(out)])
    typer.echo(
        f"{out}: {verify} samples to verify: give the class of each in the column decided, by "
        f"name or number. Then: {then}",
        err=True,
    )


def _print(record: "Record", found: "Trust", verified: "Estimate | None", *, as_json: bool) -> None:
    from accord.report._trust_text import trust_json, trust_text

    for note in found.notes:
        typer.echo(f"accord: {note}", err=True)
    if as_json:
        typer.echo(json.dumps(trust_json(record, found, verified)))
    else:
        typer.echo(trust_text(record, found, verified))
