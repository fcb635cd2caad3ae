"""`accord distill`: train one network that replaces the checkpoints of a run."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accord.cli import _arguments as shared
from accord.cli._progress import Bar, resumable
from accord.errors import counted

if TYPE_CHECKING:
    from accord.inference import Distilled

EPILOG = shared.epilog(
    "accord distill runs/digits",
    "accord distill runs/digits --compare",
    "accord distill runs/digits --students 3 --targets shares --out runs/students",
    "accord infer runs/digits/student new.npz --out labels.csv",
    done="all networks were trained",
    faults="1 the run is at fault, or a network failed; 2 an argument is wrong.",
)


def distill(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="folder that `accord train` wrote, with a record of the training split",
            show_default=False,
        ),
    ],
    targets: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="what a student learns: posterior (of an audit), proposed (labels of an audit), "
            "shares (of the votes), map (labels of max agreement) or given (labels)",
        ),
    ] = "posterior",
    students: Annotated[
        int, typer.Option(metavar="N", help="number of students, to be averaged", min=1)
    ] = 1,
    epochs: Annotated[
        int | None,
        typer.Option(metavar="N", help="epochs of training", min=1, show_default="as in RUN"),
    ] = None,
    extra: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA",
            help="further samples, labelled by the checkpoints of RUN; their own labels are not "
            "used",
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="also train baselines on the given labels, from three seeds each, and print one "
            "table",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="run folder of the students", show_default="RUN/student"),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="remove earlier students, and start anew")
    ] = False,
    as_json: shared.Json = False,
) -> None:
    """Train one network that replaces the checkpoints of RUN.

    This student learns the training labels as the votes of RUN correct them, and predicts with one
    forward pass. It is a run like any other: score, report and infer
    work on it. An interrupted command resumes. If hardly any label is wrong or none was memorised,
    no gain is to be expected, which is printed first.
    """
    shared.require_torch("training")
    shared.check_local(out)
    from accord.inference import plan_distillation

    options: dict[str, Any] = {"targets": targets, "students": students, "epochs": epochs}
    options |= {"extra": extra, "out": out, "compare": compare}
    with resumable(_command(run, options, as_json)), Bar("training") as bar:
        plan = plan_distillation(run, **options, overwrite=overwrite)
        shared.print_notes(*plan.notes)
        found = plan.train(progress=bar.training, on_start=bar.begin)
    _print_summary(found, notes=found.notes[len(plan.notes) :])
    if as_json:
        typer.echo(json.dumps(document(found)))
    elif found.methods:
        typer.echo(table(found))
    if found.failed:
        raise typer.Exit(1)


def _command(run: Path, options: dict[str, Any], as_json: bool) -> str:
    words = ["accord", "distill", str(run)]
    for name, value in options.items():
        if value is True:
            words.append(f"--{name}")
        elif value not in (None, False):
            words += [f"--{name}", str(value)]
    return shlex.join([*words, "--json"] if as_json else words)


def _print_summary(found: "Distilled", *, notes: tuple[str, ...]) -> None:
    failed = (f"student {number} failed: {error}" for number, error in found.failed.items())
    shared.print_notes(*notes, *failed)
    students = counted(found.students, "student")
    score = f"Next: accord score {shlex.quote(str(found.run))}"
    typer.echo(f"{found.run}: {students}, trained on {found.targets}. {score}", err=True)


def table(found: "Distilled") -> str:
    """Return the accuracies as a table."""
    from accord.report._text_table import text_table

    accuracy = "accuracy %" if found.reference == "truth" else "equal to given labels %"
    rows = []
    for one in found.methods:
        interval = (
            ""
            if one.interval is None
            else "{:.1f} … {:.1f}".format(*(100 * end for end in one.interval))
        )
        shown = f"{100 * one.accuracy:.1f}"
        rows.append([one.name, shown, interval, str(len(one.per_network)), str(one.passes)])
    heads = ["method", accuracy, "95 % interval", "networks", "passes"]
    return "\n".join(text_table(heads, rows, right=[1, 2, 3, 4]))


def document(found: "Distilled") -> dict[str, Any]:
    """Return the document that `--json` prints."""
    accuracies = {"accuracy": found.accuracy, "accuracy_all": found.accuracy_all}
    return {
        "run": str(found.run),
        "students": found.students,
        "targets": found.targets,
        **({} if found.accuracy is None else accuracies | {"reference": found.reference}),
        "methods": [
            {
                "name": one.name,
                "accuracy": one.accuracy,
                "interval": one.interval,
                "per_network": one.per_network,
                "passes": one.passes,
            }
            for one in found.methods
        ],
        "failed": {str(number): error for number, error in found.failed.items()},
        "notes": found.notes,
    }
