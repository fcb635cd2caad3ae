"""The exceptions of Accord, and functions that phrase messages.

Each exception descends from `AccordError` and from the built-in that a caller would expect::

    AccordError
    ├── ChoiceError          (ValueError)         an argument names something that does not exist
    │   ├── NetworksMissing                       a comparison of networks needs more than one
    │   └── SpecError                             a spec has an impossible value
    ├── PredictionError      (ValueError)         labels, probabilities or logits are invalid
    ├── TruthMissing         (ValueError)         a rule or a score requires true labels
    ├── ProbabilitiesMissing (ValueError)         probabilities are required but not recorded
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
from collections.abc import Iterable


def suggest(name: str, names: Iterable[str]) -> str:
    """Return the last sentence of an error message: the nearest of some names, or all of them.

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
    """Return a number with its noun in the right form.

    >>> counted(1, "network"), counted(5, "network"), counted(3, "class")
    ('1 network', '5 networks', '3 classes')
    """
    several = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{number} {what if number == 1 else several}"


class AccordError(Exception):
    """Base of all exceptions that Accord raises."""


class ChoiceError(AccordError, ValueError):
    """An argument names something that does not exist, or has an invalid value."""


class NetworksMissing(ChoiceError):
    """A comparison of networks needs more than one."""


class SpecError(ChoiceError):
    """A spec has an unknown key, an impossible value, or differs from the run's."""


class PredictionError(AccordError, ValueError):
    """Labels, probabilities or logits have a wrong shape, type or range."""


class TruthMissing(AccordError, ValueError):
    """A rule or a score requires true labels, and the record has none."""


class ProbabilitiesMissing(AccordError, ValueError):
    """A rule or a packed record requires probabilities, and some networks have only labels."""


class ExtraMissing(AccordError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class SourceError(AccordError, ValueError):
    """A file to read is missing, damaged, or has invalid contents."""


class StorageError(AccordError, OSError):
    """The disk or the object store failed to read or write."""


class TrainingError(AccordError, RuntimeError):
    """Training cannot continue: all networks diverged, or the device is out of memory."""


class NotCapturable(TrainingError):
    """A training step cannot be captured in a CUDA graph; the plain loop can run it."""


class ClusterError(AccordError, ConnectionError):
    """A cluster is unreachable, lacks the requested resources, or lost a task for good."""


class NodeUnfit(ClusterError):
    """A node of a cluster lacks Accord, has another version, or does not see the run's folder."""


class RecordError(AccordError, ValueError):
    """A record cannot be used in this way."""


class RecordMissing(RecordError, FileNotFoundError):
    """Nothing exists at the record's path."""


class NotARecord(RecordError):
    """The path holds something other than a record, or an incomplete one."""


class VersionError(RecordError):
    """The record has a format that this version of Accord cannot read."""


class RecordMismatch(RecordError):
    """Samples, classes or settings differ from those of the record."""


class RecordExists(RecordError, FileExistsError):
    """The path to write to already exists."""


class RecordBusy(RecordError, BlockingIOError):
    """Another writer holds this network."""


class RecordClosed(RecordError):
    """The recorder was closed, or belongs to another process."""


class RowExists(RecordError):
    """The row was recorded before."""


class RowDamaged(RecordError):
    """A committed row is missing or does not match its checksum."""


class UnequalNetworks(RecordError):
    """The networks have different numbers of epochs."""
