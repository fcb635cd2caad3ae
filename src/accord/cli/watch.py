"""`accord watch`: detect overfitting without labels."""

import json
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from accord.cli import _arguments as shared
from accord.errors import ChoiceError, counted

if TYPE_CHECKING:
    from accord.analysis._watch import EpochUpdate, RecordFollower


ALARMED: Final = 3  # exit status of --until-alarm
EVERY: Final = 10.0  # seconds between two reads
EPILOG = shared.epilog(
    "accord watch runs/mine",
    "accord watch runs/mine --follow --until-alarm; [ $? = 3 ] && kill $TRAINING",
    done="watched, alarm or not",
    faults="1 the record is missing, incomplete or damaged; 2 an argument is wrong; 3 an alarm, "
    "with --until-alarm only.",
)


def watch(
    record: shared.RecordPath,
    networks: shared.Networks = None,
    split: shared.Split = None,
    as_json: shared.Json = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="wait for the record and print a line for each epoch recorded"
        ),
    ] = False,
    until_alarm: Annotated[
        bool, typer.Option("--until-alarm", help="stop at the alarm, with exit status 3")
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.01,
            help="with --follow: how often to read",
            show_default=f"{EVERY:g}",
        ),
    ] = None,
    idle: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="with --follow: stop after this long without a new epoch",
            show_default="never",
        ),
    ] = None,
) -> None:
    """Detect overfitting without labels; report the last good epoch.

    Networks that memorise wrong labels agree with each other less. Uses the epochs that all
    networks have, so RECORD may still be growing.
    """
    for option, value in (("--every", every), ("--idle", idle)):
        if value is not None and not follow:
            raise ChoiceError(f"{option} requires --follow: add it, or leave {option} out")
    numbers = shared.parse_numbers(networks)
    alarmed = False
    if follow:
        from accord.analysis._watch import RecordFollower

        follower = RecordFollower(record, networks=numbers, split=split)
        waits = every or EVERY, idle
        alarmed = _follow(record, follower, *waits, until_alarm=until_alarm, to_stderr=as_json)
    if not follow or as_json:
        alarmed = _print(record, split, numbers, as_json=as_json) or alarmed
    if alarmed and until_alarm:
        raise typer.Exit(ALARMED)


def _print(path: str, split: str | None, numbers: list[int] | None, *, as_json: bool) -> bool:
    from accord._record import open_record
    from accord.analysis import Overview
    from accord.report._command_text import watch_json, watch_text
    from accord.store import describe

    lengths = describe(path, split=split).epochs
    opened = open_record(path, common=True, networks=numbers, split=split)
    overview, found, health = Overview.of(opened.reader), opened.watch(), opened.network_health()
    if len({lengths[number] for number in overview.numbers}) > 1:
        common = counted(overview.epochs, "epoch")
        shared.print_notes(f"{path}: watching the {common} that all networks have")
    if as_json:
        typer.echo(json.dumps(watch_json(overview, found, health)))
    else:
        typer.echo(watch_text(overview, found, health, colour=shared.in_colour()))
    return found.alarm


def _follow(
    path: str,
    follower: "RecordFollower",
    every: float,  # seconds between two reads
    idle: float | None,  # stop after so many seconds without a new epoch
    *,
    until_alarm: bool,
    to_stderr: bool,
) -> bool:
    """Print each epoch until a reason to stop; return whether the alarm was raised."""
    from accord.analysis import TRAINED_ON
    from accord.analysis._watch import check_parent_folder

    if idle is None:  # a mistyped path would be waited for without end
        check_parent_folder(path)
    last_news, shown, warned = time.monotonic(), "", False
    while True:
        seen = follower.poll()
        if seen and follower.trained_on and not warned:
            warned = True
            shared.print_notes(f"warning: {TRAINED_ON}")
        for one in seen:
            typer.echo(_line(one), err=to_stderr)
            if one.best_epoch is not None and until_alarm:
                return True
        if follower.waiting_for not in ("", shown):
            shown = follower.waiting_for
            shared.print_notes(f"waiting: {shown}")
        last_news = time.monotonic() if seen else last_news
        if idle is not None and time.monotonic() - last_news >= idle:
            return _end(follower)
        time.sleep(every)


def _end(follower: "RecordFollower") -> bool:
    if follower.missing is not None:
        raise follower.missing
    return follower.alarmed


def _line(seen: "EpochUpdate") -> str:
    text = f"{_after(seen.progress)}: agreement {100 * seen.agreement:.1f} %"
    if seen.best_progress is None:
        return text
    verdict = seen.verdict
    return (
        f"{text}; overfitting detected: {verdict.what} dropped by {100 * verdict.fall:.1f} points "
        f"(confidence {100 * verdict.sure:.2f} %). Last good epoch: {_after(seen.best_progress)}"
    )


def _after(progress: float) -> str:
    done = f"{round(progress, 2):g}"
    return f"after {done} epoch{'' if done == '1' else 's'}"
