"""Every exception that Accord raises on purpose, and words that messages share.

Each descends from `AccordError` and from the built-in that a caller would guess::

    AccordError
    ├── ChoiceError          (ValueError)         an argument names something that is not there
    │   ├── NetworksMissing                       networks are compared, and there is one
    │   └── SpecError                             a spec asks for something that cannot be
    ├── PredictionError      (ValueError)         labels, probabilities or logits are not usable
    ├── TruthMissing         (ValueError)         a rule or a score needs true labels
    ├── ProbabilitiesMissing (ValueError)         probabilities are wanted that were not recorded
    ├── ExtraMissing         (ImportError)        an optional dependency is not installed
    ├── SourceError          (ValueError)         a file to import is not what it should be
    ├── StorageError         (OSError)            the disk or the object store refused
    ├── TrainingError        (RuntimeError)       a network cannot be trained on
    │   └── NotCapturable                         a step cannot be held in a CUDA graph
    ├── ClusterError         (ConnectionError)    no cluster answers, or it lacks what is asked for
    │   └── NodeUnfit                             a node lacks Accord, or does not see the run
    └── RecordError          (ValueError)
        ├── RecordMissing    (FileNotFoundError)  nothing there
        ├── NotARecord                            something else is there, or half a record
        ├── VersionError                          written in a format this Accord cannot read
        ├── RecordMismatch                        samples, classes or truth differ from the record's
        ├── RecordExists     (FileExistsError)    would overwrite
        ├── RecordBusy       (BlockingIOError)    another writer holds the network
        ├── RecordClosed                          the recorder was closed
        ├── RowExists                             the row was written before
        ├── RowDamaged                            a committed row cannot be read back
        └── UnequalNetworks                       networks hold different numbers of epochs
"""

import difflib
from collections.abc import Iterable


def suggest(name: str, names: Iterable[str]) -> str:
    """Offer the nearest of some names, or else all of them, to end an error message with.

    >>> suggest("majorty", ["majority", "single"]), suggest("x", ["b", "a"])
    ("Did you mean 'majority'?", 'There are: b, a')
    """
    known = list(names)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    return f"There are: {', '.join(known)}" if known else "There are none."


def missing_extra(
    feature: str, package: str, *, extra: str | None = None, cause: ImportError | None = None
) -> "ExtraMissing":
    """Return the error for a feature whose optional dependency cannot be imported.

    Args:
        feature: what was used, as the subject of the message.
        package: the package that it requires.
        extra: the extra of Accord that installs the package, if one does.
        cause: the failed import, where it may have another reason than a missing package.

    >>> raise missing_extra("reading .parquet files", "pyarrow", extra="parquet")
    Traceback (most recent call last):
    accord.errors.ExtraMissing: reading .parquet files requires pyarrow: \
pip install 'accord[parquet]'
    """
    failed = f", which cannot be imported here ({cause})" if cause else ""
    install = f"'accord[{extra}]'" if extra else package
    return ExtraMissing(f"{feature} requires {package}{failed}: pip install {install}")


def counted(number: int, what: str) -> str:
    """Return a number and what it counts.

    >>> counted(1, "network"), counted(5, "network"), counted(3, "class")
    ('1 network', '5 networks', '3 classes')
    """
    several = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{number} {what if number == 1 else several}"


class AccordError(Exception):
    """Anything that went wrong in a way Accord foresaw."""


class ChoiceError(AccordError, ValueError):
    """An argument names something that does not exist, or has the wrong form."""


class NetworksMissing(ChoiceError):
    """Networks must be compared with each other, and there is only one."""


class SpecError(ChoiceError):
    """A spec has an unknown key, an impossible value, or differs from the run's own."""


class PredictionError(AccordError, ValueError):
    """Labels, probabilities or logits are of the wrong shape, type or range."""


class TruthMissing(AccordError, ValueError):
    """A rule or a score needs the true labels, and the record has none."""


class ProbabilitiesMissing(AccordError, ValueError):
    """A rule or a packed record needs probabilities, and networks recorded labels alone."""


class ExtraMissing(AccordError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class SourceError(AccordError, ValueError):
    """A file to import is missing an array, holds a wrong one, or is not readable."""


class StorageError(AccordError, OSError):
    """The disk or the object store refused to read or write."""


class TrainingError(AccordError, RuntimeError):
    """Training cannot go on: no network is left, or the device ran out of memory."""


class NotCapturable(TrainingError):
    """A network does something that a CUDA graph cannot hold; the readable loop can train it."""


class ClusterError(AccordError, ConnectionError):
    """A cluster cannot be reached, lacks what is asked for, or lost a task for good."""


class NodeUnfit(ClusterError):
    """A node of a cluster has no Accord, another one, or does not see the run's folder."""


class RecordError(AccordError, ValueError):
    """A record cannot be used as asked."""


class RecordMissing(RecordError, FileNotFoundError):
    """There is nothing at the record's path."""


class NotARecord(RecordError):
    """What is at the path is not a record, or only half of one."""


class VersionError(RecordError):
    """The record is in a format that this version of Accord cannot read."""


class RecordMismatch(RecordError):
    """What the caller says of the record differs from what the record says."""


class RecordExists(RecordError, FileExistsError):
    """Writing here would overwrite something."""


class RecordBusy(RecordError, BlockingIOError):
    """Another writer is recording this network now."""


class RecordClosed(RecordError):
    """The recorder was closed and takes no more rows."""


class RowExists(RecordError):
    """The row was recorded before."""


class RowDamaged(RecordError):
    """A committed row is missing or does not match its checksum."""


class UnequalNetworks(RecordError):
    """The networks hold different numbers of epochs."""
