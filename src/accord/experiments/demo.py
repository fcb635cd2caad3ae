"""Demo with five small networks on digits with 40 % label noise.

The demo is a spec. `run_demo` trains it in DIR/demo-run, moves the finished record to DIR/record,
and predicts and reports from there. `accord compare` without a spec compares methods on it.
"""

import shutil
from pathlib import Path
from typing import Final

from accord._record import Record, open_record
from accord.analysis import summarize
from accord.errors import RecordMismatch, TrainingError
from accord.report import write_report
from accord.training import OnProgress, parse_spec, train

# Width 24 is the largest that trains within a minute on two cores, and large enough to fit most
# of the wrong labels.
SPEC: Final = """\
name = "digits-sym40"

[data]
kind = "digits"

[noise]
kind = "symmetric"
rate = 0.4

[train]
networks = 5
network = "small-cnn"
options = { width = 24 }
epochs = 40
batch = 64
optimizer = { lr = 0.02, weight_decay = 0.0 }
augment = ["shift"]

[record]
probabilities = true
"""


def run_demo(out: Path, *, progress: OnProgress | None = None) -> Record:
    """Train the demo networks and write `record`, `predictions.csv` and `report.html` to `out`.

    On one machine the record is always the same, bit by bit. An interrupted demo resumes.

    Args:
        out: a folder, created if needed.
        progress: called after each epoch of training.

    Raises:
        RecordMismatch: `out/record` holds another record.
        TrainingError: a network could not be trained.
    """
    spec, path = parse_spec(SPEC), out / "record"
    if not path.exists():
        run = out / "demo-run"
        result = train(spec, run, source=SPEC, progress=progress)
        for network, reason in result.failed.items():
            raise TrainingError(f"{run}: network {network} was stopped: {reason}")
        (run / "test").rename(path)
        shutil.rmtree(run)
    record = open_record(path)
    if (record.networks, record.epochs) != (spec.train.networks, spec.train.epochs):
        raise RecordMismatch(
            f"{path}: the demo records {spec.train.networks} networks and {spec.train.epochs} "
            f"epochs; this record has {record.networks} and {record.epochs}. Delete it, or give "
            "another folder."
        )
    record.save(record.predict(), out / "predictions.csv")
    write_report(summarize(record.reader), out / "report.html")
    return record
