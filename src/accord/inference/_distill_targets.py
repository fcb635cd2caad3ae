"""Make targets for a student from the votes of a run on its training samples."""

import os
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._record import Record, open_record
from accord.analysis import Audit
from accord.analysis._record_notes import MEMORISED_LATE
from accord.errors import NetworksMissing, RecordError, RecordMissing, SourceError
from accord.inference._infer import infer
from accord.kernels._checks import check_table
from accord.training import Run

TARGETS: Final = {
    "posterior": "the probability of each class by the audit",
    "proposed": "the labels that the audit proposes",
    "shares": "the shares of all votes",
    "map": "the labels of max agreement",
    "given": "the given labels",
}
AUDITED: Final = ("posterior", "proposed")  # given labels, if the audit is refused
LEAST_WRONG: Final = 0.03  # of the labels; below, students gain nothing
NO_GAIN: Final = (
    "no gain over training on the given labels is to be expected: {}. Labels made by rules are a "
    "blind spot: networks learn a rule at once, and neither the audit nor a student undoes it"
)


def open_train_record(run: Run) -> Record:
    path = run.find_record("train")
    if path is None:
        raise RecordMissing(
            f"{run.path}: the run did not record its training split, and targets are made from the "
            'votes on it. Add it below [record], splits = ["test", "train"], and train again into '
            "another folder (accord train DATA records it by itself)"
        )
    run.check_labels()
    recorded = run.recorded_epochs("train")
    most = max(recorded.values())
    record = open_record(path, networks=[number for number in recorded if recorded[number] == most])
    samples = len(run.data.splits["train"])
    if record.samples != samples:
        raise SourceError(
            f"{path}: holds {record.samples} samples; the training data hold {samples}. Restore "
            "the data that the run was trained on"
        )
    return record


def audit_labels(record: Record, *, required: bool) -> Audit | RecordError | None:
    """Audit the labels. Return the reason if networks contradict none of them."""
    try:
        return record.audit()
    except NetworksMissing:
        if required:
            raise
        return None
    except RecordError as error:
        if type(error) is not RecordError:  # the record is damaged
            raise
        return error


def no_gain_note(audit: Audit | RecordError | None) -> str | None:
    if audit is None:
        return None
    if isinstance(audit, RecordError):
        return NO_GAIN.format(f"there is no audit ({audit})")
    late = audit.memorised_late
    if audit.fitted_at_once or (late is not None and late < MEMORISED_LATE):
        return NO_GAIN.format("the networks memorised hardly any label late")
    if audit.noise_rate < LEAST_WRONG:
        return NO_GAIN.format(f"the audit finds {100 * audit.noise_rate:.1f} % wrong labels")
    return None


def make_targets(
    record: Record, audit: Audit | RecordError | None, name: str
) -> NDArray[np.floating[Any]]:  # (sample, class)
    """Make the targets of the training samples from their votes."""
    if name == "shares":
        return record.agreement()
    if isinstance(audit, Audit) and name == "posterior":
        return audit.posteriors()
    labels = record.predict().labels if name == "map" else record.given
    if isinstance(audit, Audit) and name == "proposed":
        labels = audit.proposed
    assert labels is not None
    return certain_targets(labels, record.classes)


def certain_targets(labels: NDArray[Any], classes: int) -> NDArray[np.float32]:
    check_table(len(labels), classes)
    table = np.zeros((len(labels), classes), np.float32)
    np.put_along_axis(table, labels.astype(np.intp)[:, np.newaxis], 1, axis=1)
    return table


def vote_shares(run: Run, extra: str | os.PathLike[str]) -> NDArray[np.float64]:
    with tempfile.TemporaryDirectory(prefix="accord-") as folder:
        infer(run.path, Path(extra), record=Path(folder) / "votes")
        return open_record(Path(folder) / "votes").agreement()
