"""Rules that learn from one record, kept in a file to use on another."""

import io
import os
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, RecordMismatch, SourceError
from accord.rules.rule import Rule
from accord.store import Rows
from accord.store.places import Folder

Arrays = Mapping[str, NDArray[Any]]
RULE: Final = "rule"  # the array that holds the rule's name
VERSION: Final = "version"  # the array that holds the version of the file's form
FORM: Final = 1  # that version; files of another are refused


class FittedRule(Rule):
    """A rule that learns how to weigh votes, by default from the very rows it predicts.

    `fit` returns a rule that has learnt from some samples and predicts others with it.
    """

    arrays: ClassVar[tuple[str, ...]]  # the names of what it learns

    @abstractmethod
    def fit(self, rows: Rows) -> Self:
        """Return the rule with what these rows tell."""

    @abstractmethod
    def learnt(self) -> Arrays | None:
        """Return what was learnt, by name; None before `fit`."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the rule with what `learnt` returned."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learnt to an .npz file, whole or not at all.

        Raises:
            ChoiceError: nothing was learnt yet, or the file has another ending.
            StorageError: the file cannot be written.
        """
        learnt, path = self.learnt(), Path(path)
        if learnt is None:
            raise ChoiceError(f"{self.name} has learnt nothing yet to save. Fit it: rule.fit(rows)")
        if path.suffix != ".npz":
            raise ChoiceError(f"{path}: what a rule learnt is kept in an .npz file")
        about = {RULE: np.array(self.name), VERSION: np.array(FORM)}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **about, **learnt)
        Folder(path.absolute().parent).put(path.name, buffer.getvalue())

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
        return cls.from_arrays(found)


def read_arrays(path: str | os.PathLike[str]) -> Arrays:
    """Read all that a rule's `save` wrote; the rule's name is among it."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as opened:
            found = {name: opened[name] for name in opened.files}
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise SourceError(
            f"{path}: not a readable .npz file ({error}). "
            "It is written by `accord fit`, or a fitted rule's save()."
        ) from error
    if RULE not in found:
        raise SourceError(f"{path}: holds arrays, but not what a rule learnt")
    _check_version(path, found)
    return found


def _check_version(path: str | os.PathLike[str], found: Arrays) -> None:
    version = int(found.get(VERSION, np.array(FORM)))  # the first files told none
    if version != FORM:
        raise SourceError(
            f"{path}: what a rule learnt is kept here in form {version}; this Accord reads form "
            f"{FORM}. Fit it again (accord fit), or read it with the Accord that wrote it."
        )


def check_voters(rows: Rows, rule: str, **fitted: int) -> None:
    """Refuse rows whose networks, epochs or classes are not as many as the rule was fitted on.

    Raises:
        RecordMismatch: they are not.
    """
    for what, wanted in fitted.items():
        there = getattr(rows, what)
        if there != wanted:
            raise RecordMismatch(
                f"{rows.name}: {rule} was fitted on {wanted} {what}; this record has {there}. "
                "It can be used on other samples, but only of the same networks and epochs."
            )


def check_networks(rows: Rows, rule: str) -> None:
    """Refuse to fit what compares networks with each other if there is only one.

    Raises:
        ChoiceError: there is one network.
    """
    if rows.networks < 2:
        raise ChoiceError(
            f"{rows.name}: {rule} learns from how alike the networks vote, and there is one. "
            "Record at least two, or use max-agreement."
        )
