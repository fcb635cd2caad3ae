"""`accord watch`: detect overfitting without labels."""

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from accord.cli._arguments import Json, Networks, RecordPath, epilog, parse_numbers
from accord.errors import ChoiceError, counted

if TYPE_CHECKING:
    from accord._record import Record
    from accord.analysis._network_health import NetworkHealth
    from accord.analysis._watch import EpochUpdate, RecordFollower, Watch


ALARMED: Final = 3  # exit status of --until-alarm
EVERY: Final = 10.0  # seconds between two reads
MOST_LINES: Final = 25
WIDTH: Final = 40  # of a bar for an agreement of 1
EPILOG = epilog(
    "accord watch runs/mine",
    "accord watch runs/mine --follow --until-alarm; [ $? = 3 ] && kill $TRAINING",
    done="watched, alarm or not",
    faults="1 the record is missing, incomplete or damaged; 2 an argument is wrong; 3 an alarm, "
    "with --until-alarm only.",
)


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(epilog=EPILOG)(watch)


def watch(
    record: RecordPath,
    networks: Networks = None,
    as_json: Json = False,
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
    _check_waits(every, idle, follow=follow)
    numbers = parse_numbers(networks)
    alarmed = False
    if follow:
        waits = Waits(EVERY if every is None else every, idle, until_alarm=until_alarm)
        alarmed = _follow(record, numbers, waits, to_stderr=as_json)
    if not follow or as_json:
        alarmed = _print(record, numbers, as_json=as_json) or alarmed
    if alarmed and until_alarm:
        raise typer.Exit(ALARMED)


def _check_waits(every: float | None, idle: float | None, *, follow: bool) -> None:
    for option, value in (("--every", every), ("--idle", idle)):
        if value is not None and not follow:
            raise ChoiceError(f"{option} requires --follow: add it, or leave {option} out")


def _print(path: str, numbers: list[int] | None, *, as_json: bool) -> bool:
    from accord._record import open_record
    from accord.analysis._network_health import network_health
    from accord.analysis._watch import watch as watch_rows
    from accord.store import describe

    lengths = describe(path).epochs
    opened = open_record(path, common=True, networks=numbers)
    found = watch_rows(opened.reader)
    bad = [member for member in network_health(opened.reader) if not member.good]
    if len({lengths[number] for number in opened.reader.numbers}) > 1:
        common = counted(opened.epochs, "epoch")
        typer.echo(f"accord: {path}: watching the {common} that all networks have", err=True)
    if as_json:
        typer.echo(json.dumps(_document(opened, found, bad)))
    else:
        typer.echo("\n".join(_lines(opened, found, bad)))
    return found.alarm


def _document(record: "Record", found: "Watch", bad: "list[NetworkHealth]") -> dict[str, Any]:
    return {
        "record": record.path,
        "alarm": found.alarm,
        "epoch": found.epoch,
        "best_epoch": found.best_epoch,
        "progress": record.progress[found.best_epoch],
        "fall": found.fall,
        "sure": found.sure,
        "reason": found.reason,
        "agreement": found.agreement.tolist(),
        "smoothed": found.smoothed.tolist(),
        "bad_networks": {str(member.network): member.kind for member in bad},
        "trained_on": record.reader.sample_info.trained_on,
    }


def _lines(record: "Record", found: "Watch", bad: "list[NetworkHealth]") -> list[str]:
    step = -(-record.epochs // MOST_LINES)
    curve = [
        f"{epoch:5}  {100 * found.agreement[epoch]:9.1f}  "
        f"{'#' * round(WIDTH * found.agreement[epoch])}"
        for epoch in range(0, record.epochs, step)
    ]

    head = (
        f"{record.path}: {counted(record.networks, 'network')}, "
        f"{counted(record.epochs, 'epoch')}, {counted(record.samples, 'sample')}"
    )
    return [head, "", "epoch  agreement", *curve, "", *_verdict(found), *_warnings(record, bad)]


def _verdict(found: "Watch") -> list[str]:
    if not found.alarm:
        return [
            f"no alarm: {found.reason}",
            f"Best epoch by majority vote: {found.best_epoch}",
        ]
    return [
        f"overfitting detected: {found.reason}",
        f"Drop after the peak: {100 * found.fall:.1f} points (confidence {100 * found.sure:.2f} %)",
        f"Last good epoch: {found.epoch}",
    ]


def _warnings(record: "Record", bad: "list[NetworkHealth]") -> list[str]:
    from accord.analysis._trust._trust_summary import TRAINED_ON

    notes = [f"warning: {TRAINED_ON}"] if record.reader.sample_info.trained_on else []
    return [*notes, *_bad_networks(record, bad)]


def _bad_networks(record: "Record", bad: "list[NetworkHealth]") -> list[str]:
    if not bad:
        return []
    kinds = ", ".join(f"network {member.network} is {member.kind}" for member in bad)
    left_out = {member.network for member in bad}
    good = ",".join(str(one) for one in record.reader.numbers if one not in left_out)
    return [f"warning: {kinds}. To leave out: --networks {good}"]


@dataclass(frozen=True)
class Waits:
    """How often to read a growing record, and when to stop."""

    every: float  # seconds between two reads
    idle: float | None  # stop after so many seconds without a new epoch
    until_alarm: bool

    def are_over(self, last_news: float) -> bool:
        """Return whether nothing new has come for too long."""
        return self.idle is not None and time.monotonic() - last_news >= self.idle


def _follow(path: str, numbers: list[int] | None, waits: Waits, *, to_stderr: bool) -> bool:
    """Print each epoch until a reason to stop; return whether the alarm was raised."""
    from accord.analysis._trust._trust_summary import TRAINED_ON

    follower = _follower(path, numbers, waits)
    last_news, shown, warned = time.monotonic(), "", False
    while True:
        seen = follower.poll()
        if seen and follower.trained_on and not warned:
            warned = True
            typer.echo(f"accord: warning: {TRAINED_ON}", err=True)
        for one in seen:
            typer.echo(_line(one), err=to_stderr)
            if one.best_epoch is not None and waits.until_alarm:
                return True
        if follower.waiting_for not in ("", shown):
            shown = follower.waiting_for
            typer.echo(f"accord: waiting: {shown}", err=True)
        if seen:
            last_news = time.monotonic()
        if waits.are_over(last_news):
            return _end(follower)
        time.sleep(waits.every)


def _follower(path: str, numbers: list[int] | None, waits: Waits) -> "RecordFollower":
    from accord.analysis._watch import RecordFollower, check_parent_folder

    if waits.idle is None:  # a mistyped path would be waited for without end
        check_parent_folder(path)
    return RecordFollower(path, networks=numbers)


def _end(follower: "RecordFollower") -> bool:
    if follower.missing is not None:
        raise follower.missing
    return follower.alarmed


def _line(seen: "EpochUpdate") -> str:
    text = f"epoch {seen.epoch}: agreement {100 * seen.agreement:.1f} %"
    if seen.best_epoch is None:
        return text
    verdict = seen.verdict
    return (
        f"{text}; overfitting detected: agreement dropped by {100 * verdict.fall:.1f} points "
        f"(confidence {100 * verdict.sure:.2f} %). Last good epoch: {seen.best_epoch}"
    )
