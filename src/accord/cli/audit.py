"""`accord audit`: find wrong training labels."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accord.cli import _arguments as shared
from accord.errors import ChoiceError, counted

if TYPE_CHECKING:
    from accord.analysis import Audit, Decisions
    from accord.store import RecordReader

EPILOG = shared.epilog(
    "accord audit runs/mine/train --out audit.csv",
    "accord audit runs/mine/train --queue queue.csv --most 200",
    "accord audit runs/mine/train --decisions queue.csv --corrected labels.npz",
    "accord audit runs/penguins --decisions queue.csv --corrected penguins-corrected.csv",
    done="audited",
    faults="1 the record or the decisions are at fault; 2 an argument is wrong.",
)

DOUBTFUL = (
    "proposals that nobody has reviewed are used, and may replace more right labels than wrong "
    "ones: the audit has notes, or flags fewer than 12 in 100 labels, as it does on clean data. "
    "Review a queue instead: --queue queue.csv"
)


def audit(
    record: shared.RecordPath,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="write all samples, the most suspicious first"),
    ] = None,
    probabilities: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npy", help="write the share of votes (sample, class)"),
    ] = None,
    queue: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="write samples to review: .csv, or .json for Label Studio"
        ),
    ] = None,
    most: Annotated[
        int | None, typer.Option(metavar="M", help="size of the queue", show_default="all flagged")
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(metavar="URL", help="URL of a queued sample; {id} and {sample} are filled in"),
    ] = None,
    decisions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="read the decided queue: .csv, or .json from Label Studio"
        ),
    ] = None,
    corrected: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="write the labels to train on next: the own table with its label column "
            "corrected, if FILE has its ending; of images a .csv of paths; else .npz, .npy or .csv",
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="table that --corrected corrects",
            show_default="the data of the run",
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="column of labels in --source")
    ] = None,
    proposals: Annotated[
        bool,
        typer.Option(
            "--proposals", help="in --corrected, use the proposed labels of undecided samples"
        ),
    ] = False,
    networks: shared.Networks = None,
    epochs: shared.Epochs = None,
    common: shared.Common = False,
    split: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="which record of a run folder", show_default="train"),
    ] = None,
    as_json: shared.Json = False,
) -> None:
    """Find wrong training labels and propose corrections.

    Ranks the given labels of RECORD by suspicion and estimates how many are wrong. RECORD holds
    the training split, with the given labels. No true labels are needed; if RECORD has them, the
    ranking is scored against them.
    """
    out, queue, corrected = map(shared.output_path, (out, queue, corrected))
    _check_options(queue, corrected, decisions, most=most, link=link, proposals=proposals)
    data = _find_data(record, corrected, source, label)
    from accord.analysis import audit as find
    from accord.analysis import read_decisions
    from accord.analysis._audit._review_files import check_files

    check_files(
        audit=out,
        probabilities=probabilities,
        queue=queue,
        decisions=decisions,
        labels=corrected if data is None else None,
    )
    reader = shared.open_selected(
        record, networks, epochs, split, common=common, first="train"
    ).reader
    # Decisions are checked before anything is computed or written.
    decided = (
        None if decisions is None else read_decisions(decisions, sample_info=reader.sample_info)
    )
    found = find(reader)
    _write(reader, found, out, probabilities)
    if queue is not None:
        _write_queue(reader, found, queue, most, link)
    if corrected is not None:
        _write_corrected(reader, found, decided, corrected, data, proposals=proposals)
    _print(reader, found, decided, as_json=as_json)


def _check_options(
    queue: Path | None,
    corrected: Path | None,
    decisions: Path | None,
    *,
    most: int | None,
    link: str | None,
    proposals: bool,
) -> None:
    for option, value in (("--most", most), ("--link", link)):
        if value is not None and queue is None:
            raise ChoiceError(f"{option} requires a queue: add --queue queue.csv")
    if most is not None and most < 1:
        raise ChoiceError(f"--most must be at least 1; got {most}")
    if link is not None:
        from accord.analysis._audit._review_files import check_link

        check_link(link)
    if proposals and corrected is None:
        raise ChoiceError("--proposals requires a file of corrected labels: add --corrected FILE")
    if corrected is not None and decisions is None and not proposals:
        raise ChoiceError("--corrected requires --decisions, or --proposals to use all proposals")


def _write(
    reader: "RecordReader", found: "Audit", out: Path | None, probabilities: Path | None
) -> None:
    from accord.analysis import audit_probabilities, write_audit, write_probabilities

    if out is not None:
        write_audit(found, out, sample_info=reader.sample_info)
    if probabilities is not None:
        write_probabilities(audit_probabilities(reader), probabilities)


def _write_queue(
    reader: "RecordReader", found: "Audit", path: Path, most: int | None, link: str | None
) -> None:
    from accord.analysis import expected_gain, review_queue, write_queue
    from accord.report._audit_text import gain_text

    samples = review_queue(found, most)
    write_queue(found, samples, path, sample_info=reader.sample_info, link=link)
    typer.echo(f"{path}: {gain_text(expected_gain(found, samples))}", err=True)


def _find_data(
    record: str, corrected: Path | None, source: Path | None, label: str | None
) -> dict[str, Any] | None:
    """Return the table or the images that `--corrected` corrects; None for labels alone."""
    if (source is None) != (label is None) or (source is not None and corrected is None):
        raise ChoiceError("--source, --label and --corrected name a table and its labels together")
    if corrected is None:
        return None
    if source is not None:
        return {"source": source, "label": label}
    ending = corrected.suffix.lower()
    folders = Path(record), Path(record).parent
    folder = next((one for one in folders if (one / "spec.toml").is_file()), None)
    if folder is None or ending in (".npz", ".npy"):
        return None
    from accord.training import load_spec

    spec = load_spec(folder / "spec.toml")
    kind, options = spec.data.kind, spec.data.options
    if spec.noise.kind != "none" or spec.data.path is None:
        return None  # the given labels are not those of the data
    if kind == "image-folder":
        return {}
    if f".{kind}" != ending:
        return None
    path = spec.resolve_path(spec.data.path)
    return {
        "source": path / f"train{ending}" if path.is_dir() else path,
        "label": options.get("label", "label"),
        "ids": options.get("ids"),
        "lines": True,
    }


def _write_corrected(
    reader: "RecordReader",
    found: "Audit",
    decided: "Decisions | None",
    path: Path,
    data: dict[str, Any] | None,
    *,
    proposals: bool,
) -> None:
    from accord.analysis import (
        corrected_labels,
        write_corrected_list,
        write_corrected_table,
        write_labels,
    )

    labels = corrected_labels(found, decided, proposals=proposals)
    if proposals and found.proposals_doubtful:
        shared.print_notes(DOUBTFUL)
    changed = int((labels != found.given).sum())
    summary = f"{path}: {changed} of {len(labels)} labels changed."
    info = reader.sample_info
    if data is None:
        write_labels(labels, path)
        summary += f' To train on them, in a spec: noise = {{ kind = "file", path = "{path}" }}'
    elif not data:
        write_corrected_list(labels, path, sample_info=info)
    else:
        table = write_corrected_table(labels, path, sample_info=info, **data)
        summary += f" Column {table.given!r} holds the labels before."
        if rest := table.rows - table.samples:
            summary += f" {counted(rest, 'row')} outside the record stay as they were."
        words = ["accord", "train", str(path), "--label", data["label"]]
        summary += f" To train on them: {shlex.join(words)}"
    typer.echo(summary, err=True)


def _print(
    reader: "RecordReader", found: "Audit", decided: "Decisions | None", *, as_json: bool
) -> None:
    from accord.analysis import Overview, measure_gain
    from accord.report._audit_text import audit_json, audit_text, gain_text

    gain = None if decided is None else measure_gain(found, decided, reader.sample_info.truth)
    shared.print_notes(*found.notes)
    overview = Overview.of(reader)
    if as_json:
        typer.echo(json.dumps(audit_json(overview, found, gain)))
        return
    typer.echo(audit_text(overview, found))
    if gain is not None:
        typer.echo(f"\n{gain_text(gain)}")
