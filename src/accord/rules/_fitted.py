"""Rules that learn from one record, kept in a file to use on another."""

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

NETWORKS: Final = "networks"  # the array that holds the networks' numbers
PROGRESS: Final = "progress"  # the array that holds the true epochs
MOST_NAMED: Final = 6  # networks or epochs that a message names
ALIKE: Final = 1e-6  # of an epoch; a tenth that was added up is not quite a tenth
SAME_ONLY: Final = "It can be used on other samples, but only of the same networks and epochs."


@dataclass(frozen=True)
class Voters:
    """Networks by their own numbers, and epochs by their progress."""

    numbers: tuple[int, ...]
    progress: tuple[float, ...]  # of the first network

    @classmethod
    def of(cls, reader: RecordReader) -> Self:
        """Return the voters of these rows."""
        return cls(reader.numbers, reader.networks_info()[0].progress)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self | None:
        """Return the voters that `arrays` wrote; None if there are none, as in older files.

        Raises:
            SourceError: they are no numbers of networks, or no epochs.
        """
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
        """Return what to keep in a file."""
        return {NETWORKS: np.array(self.numbers), PROGRESS: np.array(self.progress)}

    def check(self, reader: RecordReader, rule: str, *, networks: bool) -> None:
        """Refuse rows of other epochs and, if `networks`, of other networks or another order.

        Raises:
            RecordMismatch: they are others.
        """
        there = Voters.of(reader)
        if networks and there.numbers != self.numbers:
            _refuse(reader, rule, "networks", self.numbers, there.numbers)
        same = len(there.progress) == len(self.progress)
        if not same or not np.allclose(there.progress, self.progress, rtol=0, atol=ALIKE):
            _refuse(reader, rule, "epochs of progress", self.progress, there.progress)


def _refuse(
    reader: RecordReader, rule: str, what: str, wanted: tuple[float, ...], there: tuple[float, ...]
) -> None:
    raise RecordMismatch(
        f"{reader.name}: {rule} was fitted on {what} {_named(wanted)}; these are {_named(there)}. "
        f"{SAME_ONLY}"
    )


def _named(values: tuple[float, ...]) -> str:
    texts = [f"{value:g}" for value in values]
    if len(texts) > MOST_NAMED:
        texts = [*texts[: MOST_NAMED - 2], "…", texts[-1]]
    return ", ".join(texts)


Arrays = Mapping[str, NDArray[Any]]
RULE: Final = "rule"  # the array that holds the rule's name
VERSION: Final = "version"  # the array that holds the version of the file's form
FORM: Final = 1  # that version; files of another are refused
NAMES_OF_ONE: Final = {"networks": "network", "epochs": "epoch", "classes": "class"}
UNNAMED: Final = "the file does not name its networks and epochs: they were only counted"


class FittedRule(Rule):
    """A rule that learns how to weigh votes, by default from the very rows it predicts.

    `fit` returns a rule that has learnt from some samples and predicts others with it.
    """

    arrays: ClassVar[tuple[str, ...]]  # the names of what it learns
    voters: Voters | None = None  # whom it has learnt from, as far as that is known

    @abstractmethod
    def fit(self, reader: RecordReader) -> Self:
        """Return the rule with what these rows tell."""

    @abstractmethod
    def learnt(self) -> Arrays | None:
        """Return what was learnt, by name; None before `fit`."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the rule with what `learnt` returned.

        Raises:
            SourceError: an array has the wrong shape, type or values.
        """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learnt to an .npz file, whole or not at all.

        Raises:
            ChoiceError: nothing was learnt yet, the file has another ending, or it is a URL.
            StorageError: the file cannot be written.
        """
        learnt, path = self.learnt(), local_path(path)
        if learnt is None:
            raise ChoiceError(f"{self.name} has learnt nothing yet to save. Fit it: rule.fit(rows)")
        if path.suffix != ".npz":
            raise ChoiceError(f"{path}: what a rule learnt is kept in an .npz file")
        about = {RULE: np.array(self.name), VERSION: np.array(FORM)}
        about |= {} if self.voters is None else self.voters.arrays()
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **about, **learnt)
        write_file(path, buffer.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the rule with what `save` wrote.

        Raises:
            SourceError: the file is missing, damaged, of another version of Accord, or holds
                what another rule learnt.
        """
        found = read_arrays(path)
        if str(found[RULE]) != cls.name:
            raise SourceError(f"{path}: holds what {found[RULE]} learnt, not {cls.name}")
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

    def learnt_from(self, reader: RecordReader) -> Self:
        """Return this rule, which from now on knows whom it has learnt from."""
        self.voters = Voters.of(reader)
        return self

    def _cautioned(self, prediction: Prediction) -> Prediction:
        return replace(prediction, note=self.caution) if self.caution else prediction


def read_arrays(path: str | os.PathLike[str]) -> Arrays:
    """Read all that a rule's `save` wrote; the rule's name is among it."""
    try:
        with (
            Path(path).expanduser().open("rb") as file,
            np.load(file, allow_pickle=False) as opened,
        ):
            found = {name: opened[name] for name in opened.files}
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        # What NumPy says of other files is how to unpickle them, which is not safe.
        why = error.strerror if isinstance(error, OSError) else "it is damaged, or another file"
        raise SourceError(
            f"{path}: not a readable .npz file: {why}. "
            "It is written by `accord fit`, or a fitted rule's save()."
        ) from error
    if RULE not in found:
        raise SourceError(f"{path}: holds arrays, but not what a rule learnt")
    _check_version(path, found)
    return found


def _check_version(path: str | os.PathLike[str], found: Arrays) -> None:
    version = found.get(VERSION, np.array(FORM))  # the first files told none
    if version.shape != () or version != FORM:
        raise SourceError(
            f"{path}: what a rule learnt is kept here in form {version}; this Accord reads form "
            f"{FORM}. Fit it again (accord fit), or read it with the Accord that wrote it."
        )


def check_voters(reader: RecordReader, rule: str, **fitted: int) -> None:
    """Refuse rows whose networks, epochs or classes are not as many as the rule was fitted on.

    Raises:
        RecordMismatch: they are not.
    """
    for what, wanted in fitted.items():
        there = getattr(reader, what)
        if there != wanted:
            raise RecordMismatch(
                f"{reader.name}: {rule} was fitted on {counted(wanted, NAMES_OF_ONE[what])}; "
                f"this record has {there}. {SAME_ONLY}"
            )


def check_numbers(name: str, values: NDArray[Any], shape: tuple[int | None, ...]) -> None:
    """Refuse what is not finite numbers of at least 0 in this shape; None stands for any size.

    Raises:
        SourceError: they are not.
    """
    fits = len(values.shape) == len(shape) and all(
        wanted in (None, there) for wanted, there in zip(shape, values.shape, strict=True)
    )
    if not fits or values.dtype.kind not in "iuf" or not values.size:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise SourceError(
            f"{name} must be numbers of shape ({wanted}); got {values.dtype} of shape "
            f"{values.shape}"
        )
    if not (np.isfinite(values).all() and values.min() >= 0):
        raise SourceError(
            f"{name} must be finite and at least 0; got {values.min()}..{values.max()}"
        )


def check_networks(reader: RecordReader, rule: str) -> None:
    """Refuse to fit what compares networks with each other if there is only one.

    Raises:
        NetworksMissing: there is one network.
    """
    if reader.networks < 2:
        raise NetworksMissing(
            f"{reader.name}: {rule} learns from how alike the networks vote, and there is one. "
            "Record at least two, or use max-agreement."
        )
