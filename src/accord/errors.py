"""Exceptions and utilities for error messages.

Each exception descends from `AccordError` and from the built-in that a caller would expect::

    AccordError
    ├── ChoiceError          (ValueError)         an argument names something that does not exist
    │   ├── NetworksMissing                       a comparison of networks needs more than one
    │   └── SpecError                             a spec has an impossible value
    ├── PredictionError      (ValueError)         labels, probabilities or logits are invalid
    ├── TruthMissing         (ValueError)         a rule or a score requires true labels
    ├── ProbabilitiesMissing (ValueError)         probabilities are required but not recorded
    ├── VotesMissing         (ValueError)         all votes are required but some are missing
    ├── ExtraMissing         (ImportError)        an optional dependency is not installed
    ├── SourceError          (ValueError)         a file to read is missing, damaged or invalid
    ├── StorageError         (OSError)            the disk or the object store failed
    ├── TrainingError        (RuntimeError)       training of a network cannot continue
    │   └── NotCapturable                         a step cannot be captured in a CUDA graph
    ├── ClusterError         (ConnectionError)    a cluster is unreachable or lacks resources
    │   └── NodeUnfit                             a node lacks Accord, or does not see the run
    └── RecordError          (ValueError)
        ├── RecordMissing    (FileNotFoundError)  nothing exists at the path
        ├── NotARecord                            not a record, or an incomplete one
        ├── VersionError                          its format is not supported by this version
        ├── RecordMismatch                        samples, classes or settings differ from it
        ├── RecordExists     (FileExistsError)    would be overwritten
        ├── RecordBusy       (BlockingIOError)    another writer holds the network
        ├── RecordClosed                          the recorder was closed
        ├── RowExists                             the row was written before
        ├── RowDamaged                            a committed row cannot be read
        └── UnequalNetworks                       networks have different numbers of epochs
"""

import difflib
from collections.abc import Iterable, Sequence


def suggest(name: str, names: Iterable[str]) -> str:
    """Format suggestions for an unknown name.

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
    """Create the error for a missing optional dependency.

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
    """Format a number with a singular or plural noun.

    >>> counted(1, "network"), counted(5, "network"), counted(3, "class")
    ('1 network', '5 networks', '3 classes')
    """
    several = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{number} {what if number == 1 else several}"


def listed(names: Sequence[str], *, most: int) -> str:
    """Format the first names, and the number of those that follow.

    >>> listed(["cat", "dog"], most=2), listed(["cat", "dog", "fox"], most=1)
    ('cat, dog', 'cat and 2 more')
    """
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


class AccordError(Exception):
    """Base class for all exceptions raised by Accord."""


class AccordWarning(UserWarning):
    """Warning about an ensemble whose agreement means nothing."""


class ChoiceError(AccordError, ValueError):
    """Raised when an argument has an invalid value."""


class NetworksMissing(ChoiceError):
    """Raised when networks are compared and there is only one."""


class SpecError(ChoiceError):
    """Raised when a spec is invalid or does not match its run."""


class PredictionError(AccordError, ValueError):
    """Raised when predictions have an invalid shape, type or range."""


class TruthMissing(AccordError, ValueError):
    """Raised when true labels are required but not recorded."""


class ProbabilitiesMissing(AccordError, ValueError):
    """Raised when probabilities are required but not recorded."""


class VotesMissing(AccordError, ValueError):
    """Raised when all votes are required but some are missing."""


class ExtraMissing(AccordError, ImportError):
    """Raised when an optional dependency is not installed."""


class SourceError(AccordError, ValueError):
    """Raised when an input file is missing, damaged or invalid."""


class StorageError(AccordError, OSError):
    """Raised when reading from or writing to storage fails."""


class TrainingError(AccordError, RuntimeError):
    """Raised when training diverges or runs out of device memory."""


class NotCapturable(TrainingError):
    """Raised when a training step cannot be captured in a CUDA graph."""


class ClusterError(AccordError, ConnectionError):
    """Raised when a cluster is unreachable or lacks resources."""


class NodeUnfit(ClusterError):
    """Raised when a cluster node is not configured for the run."""


class RecordError(AccordError, ValueError):
    """Base class for errors related to records."""


class RecordMissing(RecordError, FileNotFoundError):
    """Raised when a record does not exist."""


class NotARecord(RecordError):
    """Raised when a path does not contain a valid record."""


class VersionError(RecordError):
    """Raised when the format version of a record is not supported."""


class RecordMismatch(RecordError):
    """Raised when samples, classes or settings do not match the record."""


class RecordExists(RecordError, FileExistsError):
    """Raised when an output path already exists."""


class RecordBusy(RecordError, BlockingIOError):
    """Raised when a network is locked by another writer."""


class RecordClosed(RecordError):
    """Raised when a closed recorder is used."""


class RowExists(RecordError):
    """Raised when a row is already recorded."""


class RowDamaged(RecordError):
    """Raised when a row is missing or does not match its checksum."""


class UnequalNetworks(RecordError):
    """Raised when networks have different numbers of epochs."""
