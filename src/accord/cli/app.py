"""The command line as a whole: commands in groups, errors as exit statuses.

Each command is a module beside this one, with a function of the same name and its `EPILOG`: it
declares its options, calls the library and prints.
Library modules are imported inside the commands, so that `accord --help` stays fast. `run` maps
errors to exit statuses: 2 for a wrong argument, 1 for faulty data, 130 for an interrupt.
"""

import importlib
import logging
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from accord._version import __version__
from accord.cli._progress import Stopped
from accord.cli.train import RayCommand
from accord.errors import AccordError, ChoiceError, NetworksMissing

INTERRUPTED: Final = 130  # exit status
# Newer releases of typer carry their own copy of click, so its name depends on the release.
UsageError: Any = typer.BadParameter.__base__

GROUPS: Final = {  # the modules of the commands
    "Record": ("import_", "show", "check", "pack", "remove"),
    "Predict": ("predict", "fit", "infer", "distill"),
    "Inspect": ("score", "audit", "watch", "trust", "report"),
    "Train": ("train", "compare"),
    "Paper": ("demo", "reproduce", "bench"),
}


class GroupedCommands(TyperGroup):
    """Lists the commands of a help page under the names of their groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each group."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        width = max(len(name) for name, _ in commands)
        for group in GROUPS:
            rows = [
                (name.ljust(width), command.get_short_help_str(formatter.width - 6 - width))
                for name, command in commands
                if command is not None and getattr(command, "rich_help_panel", None) == group
            ]
            with formatter.section(group):
                formatter.write_dl(rows)


app = typer.Typer(
    name="accord",
    cls=GroupedCommands,
    help=(
        "Predict what an ensemble agreed on, over all its networks and all its epochs. "
        "Start with: accord demo"
    ),
    epilog=(
        "\b\nExamples:\n"
        "  accord demo\n"
        "  accord score runs/mine\n"
        "  accord predict runs/mine --out labels.csv\n\n"
        "Exit status: 0 done; 1 the data or the record is at fault; 2 the arguments are."
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for group, commands in GROUPS.items():
    for command in commands:
        module = importlib.import_module(f"accord.cli.{command}")
        app.command(
            command.rstrip("_"),
            cls=RayCommand if command in ("train", "reproduce") else None,
            epilog=module.EPILOG,
            rich_help_panel=group,
        )(getattr(module, command))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"accord {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="the version")
    ] = False,
) -> None:
    pass


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    logging.basicConfig(format="accord: %(message)s")  # warnings of the library
    try:
        result = app(list(arguments), standalone_mode=False)
    except typer.Exit as leaving:
        return leaving.exit_code
    except Stopped as stopped:
        return _fail(str(stopped), INTERRUPTED)
    except (typer.Abort, KeyboardInterrupt):
        return _fail("stopped", INTERRUPTED)
    except AccordError as error:
        return _fail(str(error), _exit_status(error, arguments))
    except BrokenPipeError:  # `accord predict … | head`
        sys.stderr.close()
        return 0
    except UsageError as error:
        error.show()
        return 2
    if result == INTERRUPTED:  # newer releases of typer return it instead of raising
        return _fail("stopped", INTERRUPTED)
    return result if isinstance(result, int) else 0


def _exit_status(error: AccordError, arguments: Sequence[str]) -> int:
    if isinstance(error, NetworksMissing):
        # The record is at fault if it holds one network, the argument if it selected one.
        selected = any(one.partition("=")[0] == "--networks" for one in arguments)
        return 2 if selected else 1
    return 2 if isinstance(error, ChoiceError) else 1


def _fail(message: str, status: int) -> int:
    typer.echo(f"accord: {message}", err=True)
    return status
