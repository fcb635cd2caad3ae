"""`accord score`: compare the rules on a record with true or given labels."""

import json
from typing import Annotated

import typer

from accord.cli import _arguments as shared

EPILOG = shared.epilog("accord score runs/mine --rule majority --rule max-agreement", done="scored")


def score(
    record: shared.RecordPath,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="only this rule, or `recommended`; may be repeated",
            show_default="all",
        ),
    ] = None,
    networks: shared.Networks = None,
    epochs: shared.Epochs = None,
    common: shared.Common = False,
    split: shared.Split = None,
    as_json: shared.Json = False,
) -> None:
    """Score every rule against the true or given labels of RECORD.

    Rules that RECORD has no data for are left out, and rules that would take too much memory
    too, with a note. The recommended rule is chosen without the true labels.
    """
    from accord.analysis import Overview, compare_rules
    from accord.report._command_text import score_json, score_text

    wanted = [shared.check_rule(name) for name in rule or ()]
    opened = shared.open_selected(record, networks, epochs, split, common=common)
    found = compare_rules(
        opened.reader, [shared.resolve_rule(opened, one) for one in wanted] or None
    )
    for name, reason in found.left_out.items():
        shared.print_notes(f"{name} is left out: {reason}")
    shared.print_notes(*found.notes)
    overview = Overview.of(opened.reader)
    if as_json:
        typer.echo(json.dumps(score_json(overview, found)))
    else:
        typer.echo(score_text(overview, found, colour=shared.in_colour()))
