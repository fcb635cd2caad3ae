"""`accord trust`: measure how far predictions can be trusted."""

import json
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accord.cli import _arguments as shared
from accord.errors import ChoiceError, counted

if TYPE_CHECKING:
    from accord.analysis import Overview, Trust

RISK = 0.05
NO_EFFECT = (
    "choosing a threshold requires true labels, and none were recorded. Choose it on a record of "
    "the same networks that has them, and pass it here: --threshold T"
)
EPILOG = shared.epilog(
    "accord trust runs/mine/test --risk 0.02",
    "accord trust runs/new --threshold 0.58 --out samples.csv",
    "accord trust runs/new --verify 300 --out queue.csv",
    "accord trust runs/new --verified queue.csv",
    done="measured",
    faults="1 the record or the verified samples are at fault; 2 an argument is wrong.",
)


def trust(
    record: shared.RecordPath,
    rule: Annotated[
        str, typer.Option("--rule", metavar="NAME", help=shared.RULE_HELP)
    ] = "recommended",
    risk: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="choose the threshold with at most this share of wrong answers, with 95 % "
            "confidence; requires true labels",
            show_default=str(RISK),
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            help="instead of --risk: answer samples from this margin on (from this score on, for "
            "rules other than max-agreement)",
        ),
    ] = None,
    verify: Annotated[
        int | None, typer.Option(metavar="N", help="draw samples to verify; --out names the file")
    ] = None,
    verified: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv", help="read the verified samples and estimate the accuracy"
        ),
    ] = None,
    networks: shared.Networks = None,
    epochs: shared.Epochs = None,
    common: shared.Common = False,
    split: shared.Split = None,
    as_json: shared.Json = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="write label, score, margin and answered or not for each sample; with --verify, "
            "the samples to verify",
        ),
    ] = None,
) -> None:
    """Measure how far the labels of a rule can be trusted.

    With true labels: the accuracy by score, the risk at each coverage, and the threshold that
    keeps a risk on similar samples. Without: the scores, and how many verified samples would
    estimate the accuracy. Always: bad networks and forgotten samples.
    """
    out = shared.output_path(out)
    _check_options(risk, threshold, verify, verified, out)
    from accord.analysis import Overview, measure_trust, read_verification
    from accord.report._trust_text import trust_json, trust_text

    opened = shared.open_selected(record, networks, epochs, split, common=common)
    if risk is not None and opened.truth is None:
        shared.print_notes(f"--risk {risk:g} has no effect: {NO_EFFECT}")
    chosen = shared.resolve_rule(opened, rule).name
    found = measure_trust(opened.reader, chosen, risk=risk or RISK, threshold=threshold)
    overview = Overview.of(opened.reader)
    estimate = None
    if verified is not None:
        samples = read_verification(verified, sample_info=overview.sample_info)
        estimate = samples.accuracy(found.prediction)
    if out is not None:
        _write(overview, found, out, verify)
    shared.print_notes(*found.notes)
    results = overview, found, estimate
    typer.echo(json.dumps(trust_json(*results)) if as_json else trust_text(*results))


def _check_options(
    risk: float | None,
    threshold: float | None,
    verify: int | None,
    verified: Path | None,
    out: Path | None,
) -> None:
    if risk is not None and not 0 < risk < 1:
        raise ChoiceError(f"--risk must lie between 0 and 1, such as 0.05; got {risk:g}")
    if threshold is not None and not math.isfinite(threshold):
        raise ChoiceError(f"--threshold takes a number like 0.58; got {threshold}")
    if risk is not None and threshold is not None:
        raise ChoiceError("--risk chooses a threshold, --threshold sets one. Leave one of them out")
    if verify is not None and verified is not None:
        raise ChoiceError("--verify comes first, --verified once the samples are decided")
    if verify is not None and out is None:
        raise ChoiceError("--verify requires a file to decide in: add --out queue.csv")
    if out is not None and out.suffix != ".csv":
        raise ChoiceError(f"{out}: --out is written as .csv; got {out.suffix!r}")


def _write(overview: "Overview", found: "Trust", out: Path, verify: int | None) -> None:
    from accord.analysis import choose_to_verify, write_verification
    from accord.report._trust_text import write_samples

    if verify is None:
        write_samples(overview, found, out)
        typer.echo(f"{out}: {counted(overview.samples, 'sample')}", err=True)
        return
    sampling = choose_to_verify(found.prediction.scores, verify)
    write_verification(sampling, out, sample_info=overview.sample_info)
    then = shlex.join(["accord", "trust", overview.path, "--verified", str(out)])
    typer.echo(
        f"{out}: {verify} samples to verify: enter the class of each in the column `decided`, by "
        f"name or number. Then: {then}",
        err=True,
    )
