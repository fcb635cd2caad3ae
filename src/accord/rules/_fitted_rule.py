"""Base classes for fitted rules."""

import io
import os
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from accord._files import local_path, write_file
from accord.errors import ChoiceError, NetworksMissing, RecordMismatch, SourceError, counted
from accord.rules._base import Prediction, Rule
from accord.store import RecordReader

NETWORKS: Final = "networks"  # names of arrays in a file: the networks' numbers,
PROGRESS: Final = "progress"  # the true epochs,
RULE: Final = "rule"  # the rule's name,
VERSION: Final = "version"  # the version of the file's format
FORMAT: Final = 1  # version of the file format
MAX_NAMED: Final = 6  # networks or epochs in a message
PROGRESS_TOLERANCE: Final = 1e-6  # of an epoch, for rounding errors
SINGULAR: Final = {"networks": "network", "epochs": "epoch", "classes": "class"}
SAME_ONLY: Final = "It predicts other samples, but only of the same networks and epochs."
UNNAMED: Final = (
    "the file does not name its networks and epochs, so that only their numbers were compared"
)

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Voters:
    """Networks and epochs of a record."""

    numbers: tuple[int, ...]
    progress: tuple[float, ...]  # of the first network

    @classmethod
    def of(cls, reader: RecordReader) -> Self:
        return cls(reader.numbers, reader.networks_info()[0].progress)

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self | None:
        """Restore voters from saved arrays."""
        if NETWORKS not in arrays or PROGRESS not in arrays:
            return None
        numbers, progress = arrays[NETWORKS], arrays[PROGRESS]
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise SourceError(
                f"{NETWORKS} must be whole numbers (network,); got {numbers.dtype} of shape "
                f"{numbers.shape}"
            )
        fits = progress.ndim == 1 and progress.dtype.kind in "iuf"
        if not fits or not np.isfinite(progress).all():
            raise SourceError(
                f"{PROGRESS} must be finite numbers (epoch,); got {progress.dtype} of shape "
                f"{progress.shape}"
            )
        return cls(tuple(map(int, numbers)), tuple(map(float, progress)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {NETWORKS: np.array(self.numbers), PROGRESS: np.array(self.progress)}

    def check(self, reader: RecordReader, rule: str, *, networks: bool) -> None:
        """Check that a record has the same epochs and networks."""
        found = Voters.of(reader)
        if networks and found.numbers != self.numbers:
            raise _mismatch(reader, rule, "networks", self.numbers, found.numbers)
        same = len(found.progress) == len(self.progress)
        if not same or not np.allclose(
            found.progress, self.progress, rtol=0, atol=PROGRESS_TOLERANCE
        ):
            raise _mismatch(reader, rule, "epochs of progress", self.progress, found.progress)


def _mismatch(
    reader: RecordReader,
    rule: str,
    what: str,
    expected: tuple[float, ...],
    found: tuple[float, ...],
) -> RecordMismatch:
    return RecordMismatch(
        f"{reader.name}: {rule} was fitted on {what} {_listed(expected)}; this record has "
        f"{_listed(found)}. {SAME_ONLY}"
    )


def _listed(values: tuple[float, ...]) -> str:
    texts = [f"{value:g}" for value in values]
    if len(texts) > MAX_NAMED:
        texts = [*texts[: MAX_NAMED - 2], "…", texts[-1]]
    return ", ".join(texts)


class FittedRule(Rule):
    """Base class for rules with fitted parameters.

    `fit` returns a rule whose parameters were fitted to some samples, to predict others with.
    """

    arrays: ClassVar[tuple[str, ...]]  # the names of its parameters
    voters: Voters | None = None  # of the record it was fitted to, if known

    @abstractmethod
    def fit(self, reader: RecordReader) -> Self:
        """Fit the rule to a record."""

    @abstractmethod
    def parameters(self) -> Arrays | None:
        """Get the parameters of this rule."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Create the rule from its parameters.

        Raises:
            SourceError: an array has the wrong shape, type or values.
        """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the parameters to an .npz file atomically.

        Raises:
            ChoiceError: the rule is not fitted, or the path is a URL or ends differently.
            StorageError: the file cannot be written.
        """
        parameters, path = self.parameters(), local_path(path)
        if parameters is None:
            raise ChoiceError(f"{self.name} is not fitted. Fit it first: rule.fit(reader)")
        if path.suffix != ".npz":
            raise ChoiceError(f"{path}: a fitted rule is saved as an .npz file")
        metadata = {RULE: np.array(self.name), VERSION: np.array(FORMAT)}
        metadata |= {} if self.voters is None else self.voters.arrays()
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **metadata, **parameters)
        write_file(path, buffer.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load the rule from a file.

        Raises:
            SourceError: the file is missing, damaged, of another version of Accord, or of another
                rule.
        """
        found = read_arrays(path)
        if str(found[RULE]) != cls.name:
            raise SourceError(f"{path}: holds the rule {found[RULE]}, not {cls.name}")
        missing = [name for name in cls.arrays if name not in found]
        if missing:
            raise SourceError(f"{path}: {cls.name} needs {', '.join(missing)}; the file has none")
        try:
            rule = cls.from_arrays(found)
            rule.voters = Voters.from_arrays(found)
        except SourceError as error:
            raise SourceError(f"{path}: {error}. Fit it again: accord fit") from error
        rule.caution = "" if rule.voters else UNNAMED
        return rule

    def fitted_on(self, reader: RecordReader) -> Self:
        """Create a copy with the voters of the fitted record."""
        self.voters = Voters.of(reader)
        return self

    def _with_caution(self, prediction: Prediction) -> Prediction:
        return replace(prediction, note=self.caution) if self.caution else prediction


def read_arrays(path: str | os.PathLike[str]) -> Arrays:
    try:
        with (
            Path(path).expanduser().open("rb") as file,
            np.load(file, allow_pickle=False) as opened,
        ):
            found = {name: opened[name] for name in opened.files}
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        # NumPy's own message advises to unpickle other files, which is not safe.
        why = error.strerror if isinstance(error, OSError) else "it is damaged, or another file"
        raise SourceError(
            f"{path}: not a readable .npz file: {why}. "
            "It is written by `accord fit`, or a fitted rule's save()."
        ) from error
    if RULE not in found:
        raise SourceError(f"{path}: holds arrays, but no fitted rule")
    version = found.get(VERSION, np.array(FORMAT))  # the first files had none
    if version.shape != () or version != FORMAT:
        raise SourceError(
            f"{path}: a fitted rule in format {version}; this Accord reads format {FORMAT}. "
            "Fit it again (accord fit), or read it with the Accord that wrote it."
        )
    return found


def check_sizes(reader: RecordReader, rule: str, **fitted: int) -> None:
    """Check that the sizes of a record match a fitted rule."""
    for axis, expected in fitted.items():
        found = getattr(reader, axis)
        if found != expected:
            raise RecordMismatch(
                f"{reader.name}: {rule} was fitted on {counted(expected, SINGULAR[axis])}; "
                f"this record has {found}. {SAME_ONLY}"
            )


def check_numbers(name: str, values: NDArray[Any], shape: tuple[int | None, ...]) -> None:
    """Check that an array is finite, non-negative and of the given shape.

    Raises:
        SourceError: it holds others, or has another shape.
    """
    fits = len(values.shape) == len(shape) and all(
        expected in (None, found) for expected, found in zip(shape, values.shape, strict=True)
    )
    if not fits or values.dtype.kind not in "iuf" or not values.size:
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        raise SourceError(
            f"{name} must be numbers of shape ({expected}); got {values.dtype} of shape "
            f"{values.shape}"
        )
    if not (np.isfinite(values).all() and values.min() >= 0):
        raise SourceError(
            f"{name} must be finite and at least 0; got {values.min()}..{values.max()}"
        )


def check_networks(reader: RecordReader, rule: str) -> None:
    """Check that a record has at least two networks."""
    if reader.networks < 2:
        raise NetworksMissing(
            f"{reader.name}: {rule} compares networks to fit its parameters, and there is one. "
            "Record at least two, or use max-agreement."
        )
