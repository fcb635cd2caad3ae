"""Put the commands together; turn errors into messages and exit statuses."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from accord._version import __version__
from accord.cli import audit, compare, fit, infer, make, read, reproduce, train, trust, watch
from accord.cli._progress import Stopped
from accord.errors import AccordError, ChoiceError, NetworksMissing

STOPPED: Final = 130  # the status of what was stopped at the keyboard
# Newer releases of typer carry their own copy of click, so its name depends on the release.
UsageError: Any = typer.BadParameter.__base__

app = typer.Typer(
    name="accord",
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
read.add_to(app)
fit.add_to(app)
audit.add_to(app)
make.add_to(app)
train.add_to(app)
infer.add_to(app)
watch.add_to(app)
trust.add_to(app)
compare.add_to(app)
reproduce.add_to(app)


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
    try:
        result = app(list(arguments), standalone_mode=False)
    except typer.Exit as leaving:
        return leaving.exit_code
    except Stopped as stopped:
        return _fail(str(stopped), STOPPED)
    except (typer.Abort, KeyboardInterrupt):
        return _fail("stopped", STOPPED)
    except AccordError as error:
        return _fail(str(error), _blame(error, arguments))
    except BrokenPipeError:  # `accord predict … | head`
        sys.stderr.close()
        return 0
    except UsageError as error:
        error.show()
        return 2
    return _status(result)


def _blame(error: AccordError, arguments: Sequence[str]) -> int:
    if isinstance(error, NetworksMissing):  # the record has one network, or one was chosen
        return 2 if any(one.partition("=")[0] == "--networks" for one in arguments) else 1
    return 2 if isinstance(error, ChoiceError) else 1


def _status(result: object) -> int:
    if result == STOPPED:  # newer releases of typer return it
        return _fail("stopped", STOPPED)
    return result if isinstance(result, int) else 0


def _fail(message: str, status: int) -> int:
    typer.echo(f"accord: {message}", err=True)
    return status
