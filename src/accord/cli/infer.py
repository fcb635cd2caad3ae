"""`accord infer`: predict new samples with the checkpoints of a run."""

import json
import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accord.cli import _arguments as shared
from accord.cli._progress import Bar, resumable
from accord.errors import counted

if TYPE_CHECKING:
    from accord.inference import Inferred

EPILOG = shared.epilog(
    "accord infer runs/digits new.npz --out labels.csv",
    "accord infer runs/photos folder/of/images --exit exact",
    "accord infer runs/photos folder/of/images --exit 0.01 --json",
    "accord infer runs/digits new.npz --record runs/digits/new",
    done="predicted",
    faults="1 the run, a checkpoint or the data are at fault; 2 an argument is wrong.",
)


def infer(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="folder that `accord train` wrote, with checkpoints",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="new samples, labelled or not: .npz, .npy, .csv, .tsv, .parquet, .txt, an image, "
            "or a folder",
            show_default=False,
        ),
    ],
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="how to combine votes, as for `accord predict`",
            show_default=shared.DEFAULT_RULE,
        ),
    ] = None,
    fitted: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="instead of --rule: a rule that `accord fit` wrote"),
    ] = None,
    exit: Annotated[
        str,
        typer.Option(
            metavar="none|exact|ALPHA",
            help="when to stop evaluating a sample: never; once its label is certain; or once it "
            "is the label of all votes but for a risk of ALPHA, such as 0.01",
        ),
    ] = "none",
    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="format of DATA: npz, npy, images, csv, tsv, parquet, txt, or run, the layout "
            "of the run's training data",
            show_default="by its name",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="RECORD", help="write every vote to a record, for all other commands"),
    ] = None,
    out: shared.LabelsFile = None,
    as_json: shared.Json = False,
) -> None:
    """Predict new samples with every saved checkpoint of a run.

    Checkpoints are loaded one after another, on a GPU if one is available. DATA is scaled like the
    training samples of RUN. If it has labels, the share of predictions equal to them is printed. An
    interrupted inference with --record resumes where it stopped.
    """
    from accord._predictions import check_ending, save_prediction

    if out is not None:
        check_ending(out)
    shared.require_torch("inference")
    from accord import inference

    chosen = shared.wanted_rule(rule, fitted)
    again = shlex.join(["accord", "infer", str(run), str(data), "--record", str(record)])
    again += ", with the same options"
    with nullcontext() if record is None else resumable(again), Bar("evaluating") as bar:
        found = inference.infer(
            run, data, rule=chosen, exit=exit, record=record, format=format, progress=bar.samples
        )
    if out is not None:
        save_prediction(found.prediction, out, sample_info=found.sample_info)
    _print_summary(found, out, record)
    if as_json:
        typer.echo(json.dumps(summary(found, exit=exit, labels=out is None)))
    elif out is None:
        sys.stdout.write("\n".join(map(str, found.labels.tolist())) + "\n")


def _print_summary(found: "Inferred", out: Path | None, record: Path | None) -> None:
    shared.print_notes(*_notes(found))
    agreed = "right" if found.reference == "truth" else "equal to the given labels"
    parts = [
        f"{counted(len(found), 'label')} by {found.rule}",
        f"{counted(len(found.networks), 'network')}, {counted(len(found.epochs), 'epoch')}",
        f"{100 * found.saved:.1f} % of the votes saved" if found.saved else "",
        "" if found.accuracy is None else f"{100 * found.accuracy:.2f} % {agreed}",
    ]
    where = f"{out}: " if out else ""
    typer.echo(where + "; ".join(filter(None, parts)), err=True)
    if record is not None:
        typer.echo(f"{record}: every vote. Next: accord show {shlex.quote(str(record))}", err=True)


def _notes(found: "Inferred") -> list[str]:
    return [note for note in (*found.notes, found.prediction.note) if note]


def summary(found: "Inferred", *, exit: str, labels: bool) -> dict[str, Any]:
    """Return the document that `--json` prints."""
    document: dict[str, Any] = {
        "samples": len(found),
        "classes": found.sample_info.classes,
        "class_names": list(found.sample_info.class_names or ()),
        "networks": list(found.networks),
        "epochs": list(found.epochs),
        "rule": found.rule,
        "exit": exit,
        "votes": found.voters * len(found),
        "asked": int(found.evaluated.sum()),
        "saved": found.saved,
        "notes": _notes(found),
    }
    if found.accuracy is not None:
        document |= {"accuracy": found.accuracy, "reference": found.reference}
    if labels:
        document["labels"] = found.labels.tolist()
    return document
