"""The command that watches for overfit."""

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from accord.cli._arguments import Json, Networks, RecordPath, parse_numbers
from accord.errors import ChoiceError, counted

if TYPE_CHECKING:
    from accord._record import Record
    from accord.analysis._network_health import Member
    from accord.analysis._watch import AlarmFollower, Seen, Watch


ALARMED: Final = 3  # the exit status of --until-alarm
EVERY: Final = 10.0  # seconds between two looks
MOST_LINES: Final = 25
WIDTH: Final = 40  # of a bar for an agreement of 1
EXAMPLE = (
    "\b\nExample:\n"
    "  accord watch runs/mine\n"
    "  accord watch runs/mine --follow --until-alarm; [ $? = 3 ] && kill $TRAINING\n\n"
    "Exit status: 0 watched, alarm or not; 1 the record is missing, incomplete or damaged; "
    "2 an argument is wrong; 3 there was an alarm, with --until-alarm alone."
)


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(epilog=EXAMPLE)(watch)


def watch(
    record: RecordPath,
    networks: Networks = None,
    as_json: Json = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="wait for the record and go on while networks record, a line for each epoch",
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
            help="with --follow: how often to look",
            show_default=f"{EVERY:g}",
        ),
    ] = None,
    idle: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="with --follow: stop if no epoch came for so long",
            show_default="never",
        ),
    ] = None,
) -> None:
    """Tell whether overfit has set in, and the epoch before it. Needs no labels.

    Networks that learn wrong labels by heart stop agreeing with each other. Takes the epochs
    that all networks have, so RECORD may still be growing.
    """
    _check_waits(every, idle, follow=follow)
    numbers = parse_numbers(networks)
    alarmed = False
    if follow:
        waits = Waits(EVERY if every is None else every, idle, until_alarm=until_alarm)
        alarmed = _follow(record, numbers, waits, talk=as_json)
    if not follow or as_json:
        alarmed = _tell(record, numbers, as_json=as_json) or alarmed
    if alarmed and until_alarm:
        raise typer.Exit(ALARMED)


def _check_waits(every: float | None, idle: float | None, *, follow: bool) -> None:
    for option, value in (("--every", every), ("--idle", idle)):
        if value is not None and not follow:
            raise ChoiceError(
                f"{option} is about following a record that grows; add --follow, or leave it out"
            )


def _tell(path: str, numbers: list[int] | None, *, as_json: bool) -> bool:
    from accord._record import open_record
    from accord.analysis._network_health import members
    from accord.analysis._watch import watch as watch_rows
    from accord.store import describe

    lengths = describe(path).epochs
    opened = open_record(path, common=True, networks=numbers)
    found = watch_rows(opened.reader)
    bad = [member for member in members(opened.reader) if not member.good]
    if len({lengths[number] for number in opened.reader.numbers}) > 1:
        common = counted(opened.epochs, "epoch")
        typer.echo(f"accord: {path}: watching the {common} all have", err=True)
    if as_json:
        typer.echo(json.dumps(_document(opened, found, bad)))
    else:
        typer.echo("\n".join(_lines(opened, found, bad)))
    return found.alarm


def _document(record: "Record", found: "Watch", bad: "list[Member]") -> dict[str, Any]:
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


def _lines(record: "Record", found: "Watch", bad: "list[Member]") -> list[str]:
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
            f"The epoch whose majority vote looks best: {found.best_epoch}",
        ]
    return [
        f"alarm: {found.reason}",
        f"It fell by {100 * found.fall:.1f} points after its peak; sure: {100 * found.sure:.2f} %",
        f"The epoch before overfit: {found.epoch}",
    ]


def _warnings(record: "Record", bad: "list[Member]") -> list[str]:
    from accord.report._record_text import TRAINED_ON

    said = [f"warning: {TRAINED_ON}"] if record.reader.sample_info.trained_on else []
    return [*said, *_bad_networks(record, bad)]


def _bad_networks(record: "Record", bad: "list[Member]") -> list[str]:
    if not bad:
        return []
    kinds = ", ".join(f"network {member.network} is {member.kind}" for member in bad)
    left_out = {member.network for member in bad}
    good = ",".join(str(one) for one in record.reader.numbers if one not in left_out)
    return [f"warning: {kinds}. To leave out: --networks {good}"]


@dataclass(frozen=True)
class Waits:
    """How long to follow a record."""

    every: float  # seconds between two looks
    idle: float | None  # seconds without news after which to stop
    until_alarm: bool

    def are_over(self, last_news: float) -> bool:
        """Tell whether nothing came for too long."""
        return self.idle is not None and time.monotonic() - last_news >= self.idle


def _follow(path: str, numbers: list[int] | None, waits: Waits, *, talk: bool) -> bool:
    """Print each epoch until there is a reason to stop; tell whether there was an alarm."""
    from accord.report._record_text import TRAINED_ON

    follower = _follower(path, numbers, waits)
    last_news, told, warned = time.monotonic(), "", False
    while True:
        seen = follower.look()
        if seen and follower.trained_on and not warned:
            warned = True
            typer.echo(f"accord: warning: {TRAINED_ON}", err=True)
        for one in seen:
            typer.echo(_line(one), err=talk)
            if one.best_epoch is not None and waits.until_alarm:
                return True
        if follower.waiting_for not in ("", told):
            told = follower.waiting_for
            typer.echo(f"accord: waiting: {told}", err=True)
        if seen:
            last_news = time.monotonic()
        if waits.are_over(last_news):
            return _end(follower)
        time.sleep(waits.every)


def _follower(path: str, numbers: list[int] | None, waits: Waits) -> "AlarmFollower":
    from accord.analysis._watch import AlarmFollower, check_folder

    if waits.idle is None:  # nothing would end the wait at a path that is mistyped
        check_folder(path)
    return AlarmFollower(path, networks=numbers)


def _end(follower: "AlarmFollower") -> bool:
    if follower.missing is not None:
        raise follower.missing
    return follower.alarmed


def _line(seen: "Seen") -> str:
    text = f"epoch {seen.epoch}: agreement {100 * seen.agreement:.1f} %"
    if seen.best_epoch is None:
        return text
    verdict = seen.verdict
    return (
        f"{text}; alarm: it fell by {100 * verdict.fall:.1f} points "
        f"(sure: {100 * verdict.sure:.2f} %). The epoch before overfit: {seen.best_epoch}"
    )
