"""`accord score`: compare the rules on a record with true or given labels."""

import json
from typing import Annotated

import typer

from accord.cli._arguments import (
    Common,
    Epochs,
    Json,
    Networks,
    RecordPath,
    Split,
    check_rule,
    epilog,
    in_colour,
    open_selected,
    print_notes,
    resolve_rule,
)

EPILOG = epilog("accord score runs/mine --rule majority --rule max-agreement", done="scored")


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
    split: Split = None,
    as_json: Json = False,
) -> None:
    """Score every rule against the true or given labels of RECORD.

    Rules that RECORD has no data for are left out, and rules that would take too much memory
    too, with a note. The recommended rule is chosen without the true labels.
    """
    from accord.analysis import Overview, compare_rules
    from accord.report._command_text import score_json, score_text

    wanted = [check_rule(name) for name in rule or ()]
    opened = open_selected(record, split=split, common=common, networks=networks, epochs=epochs)
    found = compare_rules(opened.reader, [resolve_rule(opened, one) for one in wanted] or None)
    for name, reason in found.left_out.items():
        print_notes(f"{name} is left out: {reason}")
    print_notes(*found.notes)
    overview = Overview.of(opened.reader)
    if as_json:
        typer.echo(json.dumps(score_json(overview, found)))
    else:
        typer.echo(score_text(overview, found, colour=in_colour()))
