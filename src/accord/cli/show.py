"""`accord show`: describe a record."""

import dataclasses
import json

import typer

from accord.cli import _arguments as shared

EPILOG = shared.epilog("accord show runs/mine", done="shown")


def show(
    record: shared.RecordPath, split: shared.Split = None, as_json: shared.Json = False
) -> None:
    """Describe RECORD: networks, epochs, samples and classes.

    Also shows what else is stored, the form and size, and the versions that wrote it.
    """
    from accord.report._command_text import description_text
    from accord.store import describe

    description = describe(record, split=split)
    if as_json:
        described = dataclasses.asdict(description)
        described["about"] = described.pop("metadata")  # the documented key
        typer.echo(json.dumps(described))
    else:
        typer.echo(description_text(description))
