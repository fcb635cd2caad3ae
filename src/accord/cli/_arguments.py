"""Arguments and options that several commands share."""

import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from accord.errors import ChoiceError, missing_extra

if TYPE_CHECKING:
    from accord._record import Record
    from accord.rules import Rule

DEFAULT_RULE: Final = "max-agreement"
RULE_HELP: Final = "name of a rule, or `recommended`; `accord score` compares them"
RECORD_FAULTS: Final = "1 the record is missing, incomplete or damaged; 2 an argument is wrong."

RecordPath = Annotated[
    str,
    typer.Argument(
        metavar="RECORD",
        help="folder, packed record, run folder or URL; `accord show RECORD` describes it",
        show_default=False,
    ),
]
Common = Annotated[
    bool, typer.Option("--common", help="if lengths differ, use the epochs that all networks have")
]
Split = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="which record of a run folder", show_default="test"),
]
Json = Annotated[bool, typer.Option("--json", help="print JSON and nothing else")]
Networks = Annotated[
    str | None, typer.Option(metavar="0,2", help="only these networks", show_default="all")
]
Epochs = Annotated[
    str | None,
    typer.Option(
        metavar="A:B:STEP", help="only these epochs, as a Python slice", show_default="all"
    ),
]


LabelsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help=".npy, .csv or .parquet", show_default="one class per line"),
]


def epilog(*examples: str, done: str, faults: str = RECORD_FAULTS) -> str:
    """Return the end of a command's help: examples and exit statuses."""
    lines = "\n".join(f"  {example}" for example in examples)
    return f"\b\nExample:\n{lines}\n\nExit status: 0 {done}; {faults}"


def in_colour() -> bool:
    """Return whether to colour results: on a terminal, unless `NO_COLOR` is set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def print_notes(*notes: str) -> None:
    """Print notes to standard error."""
    for note in notes:
        typer.echo(f"accord: {note}", err=True)


def require_torch(what: str) -> None:
    """Raise if torch, which `what` requires, is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise missing_extra(what, "torch", extra="train")


def check_local(out: Path | None) -> None:
    """Raise if a URL is given where a local folder is required."""
    # More than one letter before the colon: one alone is a drive.
    url = None if out is None else re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", out.as_posix())
    if url:
        raise ChoiceError(
            f"--out takes a folder of this machine; got the URL {url[1]}://{url[2]}. Checkpoints "
            "need a file system; a record may lie in an object store: accord.Recorder writes it "
            "there."
        )


def output_path(path: Path | None) -> Path | None:
    """Return the path of a file to write, `~` expanded; raise if it is a URL."""
    from accord._files import local_path

    return None if path is None else local_path(path)


def parse_slice(text: str | None) -> slice | None:
    """Parse `A:B:STEP` as Python does.

    >>> parse_slice(":120"), parse_slice("::2"), parse_slice("-1")
    (slice(None, 120, None), slice(None, None, 2), slice(-1, None, None))
    """
    if text is None:
        return None
    try:
        parts = [int(part) if part else None for part in text.split(":")]
    except ValueError:
        parts = []
    if not 1 <= len(parts) <= 3 or parts == [None] or (len(parts) == 3 and parts[2] == 0):
        raise ChoiceError(f"--epochs takes A:B or A:B:STEP, as a Python slice; got {text!r}")
    if len(parts) == 1:
        one = parts[0]
        return slice(one, None if one == -1 else (one or 0) + 1)
    return slice(*parts)


def parse_numbers(text: str | None) -> list[int] | None:
    """Parse a list of network numbers, such as `0,2`."""
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ChoiceError(f"--networks takes numbers like 0,2; got {text!r}") from None


def open_selected(
    record: str,
    networks: str | None,
    epochs: str | None,
    split: str | None,
    *,
    common: bool,
    first: str = "test",
) -> "Record":
    """Open a record with the networks and epochs that the options select."""
    from accord._record import Record
    from accord.store import open_reader

    numbers, span = parse_numbers(networks), parse_slice(epochs)
    reader = open_reader(record, common=common, networks=numbers, split=split, first=first)
    return Record(reader).select(epochs=span)


def check_rule(rule: str) -> "str | Rule":
    """Return the rule of a name, or the name `recommended`; raise if no rule has it."""
    from accord.rules import RECOMMENDED, find_rule

    return rule if rule == RECOMMENDED else find_rule(rule)


def wanted_rule(rule: str | None, fitted: Path | None) -> "str | Rule":
    """Return the rule that `--rule` or `--fitted` names, by default max agreement."""
    if fitted is None:
        return check_rule(rule or DEFAULT_RULE)
    if rule is not None:
        raise ChoiceError(
            f"--rule {rule} and --fitted {fitted} both name a rule; the file holds its own. "
            "Leave one of them out."
        )
    from accord.rules import load_rule

    return load_rule(fitted)


def resolve_rule(record: "Record", rule: "str | Rule") -> "Rule":
    """Return the rule; if `recommended` chose it, print the reason to standard error."""
    from accord.rules import _recommend

    found, reason = _recommend.resolve_rule(rule, record.reader)
    if reason:
        print_notes(reason)
    return found
