"""What every reader returns: a data set in two splits, checked."""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord.data.image_files import ImageFiles
from accord.errors import SourceError

Images: TypeAlias = NDArray[np.uint8]  # (sample, channel, row, column), 0 to 255
Features: TypeAlias = NDArray[np.float32]  # (sample, feature)
Texts: TypeAlias = tuple[str, ...]
TextPairs: TypeAlias = tuple[tuple[str, str], ...]
Inputs: TypeAlias = Images | ImageFiles | Features | Texts | TextPairs
Labels: TypeAlias = NDArray[np.integer]  # (sample,) -> class
Kind: TypeAlias = Literal["image", "table", "text"]
# A table's columns: names, each with the values that have a 0 or 1 of their own; None of a number.
NamedColumns: TypeAlias = tuple[tuple[str, tuple[str, ...] | None], ...]


@dataclass(frozen=True, eq=False)
class Split:
    """One part of the data: inputs and the class that each was given.

    Raises:
        SourceError: the parts do not hold one entry for each sample.

    >>> split = Split(("good", "bad"), np.array([1, 0]))
    >>> len(split), split.choose(np.array([1])).inputs
    (2, ('bad',))
    """

    inputs: Inputs
    labels: Labels  # as the data give them
    truth: Labels | None = None  # clean labels, where the data know them apart from `labels`
    ids: NDArray[Any] | None = None  # file names or numbers, where there are any

    def __post_init__(self) -> None:
        for what in ("labels", "truth", "ids"):
            values = getattr(self, what)
            if values is not None and values.shape != (len(self.inputs),):
                raise SourceError(
                    f"a split needs one of `{what}` for each of its {len(self.inputs)} samples; "
                    f"got shape {values.shape}."
                )

    def __len__(self) -> int:
        return len(self.labels)

    def choose(self, samples: NDArray[np.integer] | NDArray[np.bool_]) -> "Split":
        """Return the samples at these positions, in this order, or where a mask is true."""
        positions = (
            np.flatnonzero(samples) if samples.dtype == bool else np.asarray(samples, np.intp)
        )
        return replace(
            self,
            inputs=_choose_inputs(self.inputs, positions),
            labels=self.labels[positions],
            truth=None if self.truth is None else self.truth[positions],
            ids=None if self.ids is None else self.ids[positions],
        )


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples to train on, samples to test on, and the names of their classes.

    Raises:
        SourceError: a split is empty, a label is out of range, all training samples are
            of one class, or the inputs are not what `kind` says.

    >>> split = Split(np.zeros((2, 3), np.float32), np.array([0, 1]))
    >>> Dataset("flat", "table", ("no", "yes"), train=split, test=split).classes
    2
    """

    name: str
    kind: Kind
    class_names: tuple[str, ...]
    train: Split
    test: Split
    notes: tuple[str, ...] = ()  # what was left out in reading, for people to read
    columns: NamedColumns | None = None  # of a table, where they have names

    def __post_init__(self) -> None:
        for part, split in (("train", self.train), ("test", self.test)):
            _check_inputs(f"{self.name}: the {part} split", self.kind, split.inputs)
            _check_labels(f"{self.name}: the {part} split", "labels", split.labels, self.classes)
            if split.truth is not None:
                _check_labels(f"{self.name}: the {part} split", "truth", split.truth, self.classes)
        _check_alike(self.name, self.train.inputs, self.test.inputs)
        _check_classes(self.name, self.train.labels)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)


def _choose_inputs(inputs: Inputs, positions: NDArray[np.integer]) -> Inputs:
    if isinstance(inputs, ImageFiles):
        return inputs.choose(positions)
    if isinstance(inputs, tuple):
        return tuple(inputs[position] for position in positions.tolist())
    chosen: Inputs = inputs[positions]
    return chosen


def _check_inputs(where: str, kind: Kind, inputs: Inputs) -> None:
    if not len(inputs):
        raise SourceError(f"{where} is empty. Are the files where they should be?")
    if not _fits(kind, inputs):
        raise SourceError(
            f"{where} holds {_describe(inputs)}, but kind is {kind!r}: images are uint8 "
            "(sample, channel, row, column), tables float32 (sample, feature), texts a tuple."
        )
    if kind == "table" and not np.isfinite(inputs).all():  # type: ignore[arg-type]
        raise SourceError(f"{where} holds numbers that are not finite. Fill or drop those samples.")


def _check_alike(name: str, train: Inputs, test: Inputs) -> None:
    if isinstance(train, np.ndarray) and isinstance(test, np.ndarray):
        if train.shape[1:] != test.shape[1:]:
            raise SourceError(
                f"{name}: a training sample is of shape {train.shape[1:]}, a test sample of shape "
                f"{test.shape[1:]}. Both must be alike."
            )
    elif isinstance(train, tuple) and isinstance(test, tuple):
        if isinstance(train[0], tuple) == isinstance(test[0], tuple):
            return
        raise SourceError(f"{name}: one split holds single texts, the other pairs.")


def _fits(kind: Kind, inputs: Inputs) -> bool:
    if isinstance(inputs, ImageFiles):
        return kind == "image"
    if isinstance(inputs, tuple):
        return kind == "text"
    wanted = {"image": (4, "uint8"), "table": (2, "float32")}
    return wanted.get(kind) == (inputs.ndim, inputs.dtype.name)


def _describe(inputs: Inputs) -> str:
    if isinstance(inputs, np.ndarray):
        return f"{inputs.dtype} of shape {inputs.shape}"
    return "image files" if isinstance(inputs, ImageFiles) else "texts"


def _check_labels(where: str, what: str, labels: Labels, classes: int) -> None:
    if not np.issubdtype(labels.dtype, np.integer):
        raise SourceError(f"{where}: {what} must be integers; got {labels.dtype}.")
    if not 0 <= labels.min() <= labels.max() < classes:
        raise SourceError(
            f"{where}: {what} must lie in 0..{classes - 1} for {classes} classes; "
            f"got {labels.min()}..{labels.max()}. Are they counted from 1, or hidden (-1)?"
        )


def _check_classes(name: str, labels: Labels) -> None:
    if (labels == labels[0]).all():
        raise SourceError(
            f"{name}: all {len(labels)} training samples are of class {labels[0]}. "
            "A classifier needs at least two classes."
        )
