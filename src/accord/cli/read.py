"""Commands that read a record: show, predict, score, report, check."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from accord.cli._arguments import (
    Common,
    Epochs,
    Json,
    Networks,
    RecordPath,
    open_selected,
    parse_numbers,
)
from accord.errors import ChoiceError, counted

if TYPE_CHECKING:
    from accord._record import Record
    from accord.rules import Rule


DEFAULT: Final = "max-agreement"
RULE_HELP = "how to combine; `accord score` compares them, `recommended` takes what it marks"


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    faults = "1 the record is missing, incomplete or damaged; 2 an argument is wrong."
    for function, example, done in (
        (show, "accord show runs/mine", "shown"),
        (
            predict,
            "accord predict runs/mine --epochs :120 --out labels.csv\n"
            "  accord predict runs/mine --rule recommended\n"
            "  accord predict runs/new --fitted rule.npz",
            "written",
        ),
        (score, "accord score runs/mine --rule majority --rule max-agreement", "scored"),
        (report, "accord report runs/mine --out report.html", "written"),
        (check, "accord check runs/mine", "every committed row can be read back"),
    ):
        epilog = f"\b\nExample:\n  {example}\n\nExit status: 0 {done}; {faults}"
        app.command(epilog=epilog)(function)


def show(record: RecordPath, as_json: Json = False) -> None:
    """Describe RECORD: its networks, epochs, samples and classes, and how it was made."""
    from accord.report._record_text import description_text
    from accord.store import describe

    description = describe(record)
    if as_json:
        _print_json(dataclasses.asdict(description))
    else:
        typer.echo(description_text(description))


def predict(
    record: RecordPath,
    rule: Annotated[
        str | None,
        typer.Option("--rule", metavar="NAME", help=RULE_HELP, show_default=DEFAULT),
    ] = None,
    fitted: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="instead of --rule: what `accord fit` learnt from other samples of these networks",
        ),
    ] = None,
    networks: Networks = None,
    epochs: Epochs = None,
    common: Common = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help=".npy, .csv or .parquet", show_default="one class per line"
        ),
    ] = None,
) -> None:
    """Combine every epoch in RECORD into one predicted class per sample.

    Reads the record only: no network is loaded and no GPU is used.
    """
    from accord._predictions import check_ending

    if out is not None:
        check_ending(out)
    named = _named_rule(rule, fitted)
    opened = open_selected(record, common=common, networks=networks, epochs=epochs)
    chosen = resolve_told(opened, named)
    prediction = opened.predict(chosen)
    if prediction.note:
        typer.echo(f"accord: {chosen.name}: {prediction.note}", err=True)
    if out is None:
        sys.stdout.write("\n".join(map(str, prediction.labels.tolist())) + "\n")
    else:
        opened.save(prediction, out)
        typer.echo(f"{out}: {counted(len(prediction), 'label')} by {chosen.name}", err=True)


def _named_rule(rule: str | None, fitted: Path | None) -> "str | Rule":
    """Return what was asked for, before the record is read: a rule that is there."""
    from accord.rules import find_rule, load_rule
    from accord.rules._recommend import RECOMMENDED

    if fitted is None:
        return rule if rule == RECOMMENDED else find_rule(DEFAULT if rule is None else rule)
    if rule is not None:
        raise ChoiceError(
            f"--rule {rule} and --fitted {fitted} both name a rule; the file knows its own. "
            "Leave one of them out."
        )
    return load_rule(fitted)


def resolve_told(record: "Record", rule: "str | Rule") -> "Rule":
    """Return a rule by its name; say which the recommended one is, and why."""
    from accord.rules._recommend import resolve_rule

    found, why = resolve_rule(rule, record.reader)
    if why:
        typer.echo(f"accord: {why}", err=True)
    return found


def score(
    record: RecordPath,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="NAME",
            help="only this rule, or `recommended`; may be repeated",
            show_default="all",
        ),
    ] = None,
    networks: Networks = None,
    epochs: Epochs = None,
    common: Common = False,
    as_json: Json = False,
) -> None:
    """Score every rule that RECORD allows against its true labels."""
    from accord.analysis._scores import left_out
    from accord.report._record_text import score_json, score_text

    named = [_named_rule(name, None) for name in rule or ()]
    opened = open_selected(record, common=common, networks=networks, epochs=epochs)
    scores = opened.score([resolve_told(opened, one) for one in named] or None)
    missing = {} if rule else left_out(opened.reader)
    for name, why in missing.items():
        typer.echo(f"accord: {name} is left out: {why}", err=True)
    if as_json:
        _print_json(score_json(opened, scores) | ({"left_out": missing} if missing else {}))
    else:
        typer.echo(score_text(opened, scores))


def report(
    record: RecordPath,
    out: Annotated[Path, typer.Option(metavar="FILE", help="the page to write")] = Path(
        "report.html"
    ),
    networks: Networks = None,
    common: Common = False,
) -> None:
    """Write one self-contained HTML page: the rules compared, curves and histograms."""
    if out.suffix not in {".html", ".htm"}:
        raise ChoiceError(f"{out}: a report is an .html file")
    from accord._record import open_record
    from accord.report.html import write_report
    from accord.store._storage import local_path

    out = local_path(out)
    write_report(open_record(record, common=common, networks=parse_numbers(networks)), out)
    typer.echo(f"{out}: written", err=True)


def check(record: RecordPath) -> None:
    """Read every row of RECORD back and compare it with its checksum.

    Leftovers of interrupted writers and networks of unequal length are told and do no harm;
    a damaged row is named.
    """
    from accord.store import check_record

    result = check_record(record)
    for finding in result.findings:
        typer.echo(f"{'damaged' if finding.damage else 'note'}: {finding.text}")
    damaged = sum(finding.damage for finding in result.findings)
    verdict = f"{damaged} damaged" if damaged else "all can be read back"
    typer.echo(f"{record}: {counted(result.rows, 'row')}, {verdict}")
    if not result.sound:
        raise typer.Exit(1)


def _print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document))
