"""Containers for data sets and utilities to split them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord.data._image_files import ImageFiles
from accord.errors import ChoiceError, SourceError
from accord.kernels import check_class_range

Images: TypeAlias = NDArray[np.uint8]  # (sample, channel, row, column), 0 to 255
Features: TypeAlias = NDArray[np.float32]  # (sample, feature)
Texts: TypeAlias = tuple[str, ...]
TextPairs: TypeAlias = tuple[tuple[str, str], ...]
Inputs: TypeAlias = Images | ImageFiles | Features | Texts | TextPairs
Labels: TypeAlias = NDArray[np.integer]  # (sample,) -> class
Kind: TypeAlias = Literal["image", "table", "text"]
EncodingKind: TypeAlias = Literal["number", "one-hot", "date", "words"]


@dataclass(frozen=True)
class Encoding:
    """Encoding of a column of a table as numbers, learnt on the training rows."""

    kind: EncodingKind
    values: tuple[str, ...] = ()  # of a one-hot column; of dates, their format
    weights: tuple[float, ...] = ()  # of hashed words: inverse document frequencies
    fill: float | str | None = None  # stands for missing values; None refuses them
    marked: bool = False  # a further feature is 1 where a value is missing

    @property
    def width(self) -> int:
        widths = {"number": 1, "one-hot": len(self.values), "date": 4, "words": len(self.weights)}
        return widths[self.kind] + self.marked


# The columns of a table by name: numbers (None), one feature per value (the values), or learnt.
NamedColumns: TypeAlias = tuple[tuple[str, tuple[str, ...] | Encoding | None], ...]


@dataclass(frozen=True, eq=False)
class Split:
    """Container for samples and their labels.

    Raises:
        SourceError: labels, truth or ids do not hold one entry for each sample.

    >>> split = Split(("good", "bad"), np.array([1, 0]))
    >>> len(split), split.choose(np.array([1])).inputs
    (2, ('bad',))
    """

    inputs: Inputs
    labels: Labels  # as given in the data, right or wrong
    truth: Labels | None = None  # labels known to be right
    ids: NDArray[Any] | None = None  # file names or numbers; by default the row, from 0

    def __post_init__(self) -> None:
        if self.ids is None:
            object.__setattr__(self, "ids", np.arange(len(self.inputs)))
        for name in ("labels", "truth", "ids"):
            values = getattr(self, name)
            if values is not None and values.shape != (len(self.inputs),):
                raise SourceError(
                    f"`{name}` must hold one entry for each of the {len(self.inputs)} samples; "
                    f"got shape {values.shape}."
                )

    def __len__(self) -> int:
        return len(self.labels)

    def choose(self, samples: NDArray[np.integer] | NDArray[np.bool_]) -> "Split":
        """Select samples by position or by a boolean mask."""
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
    """Container for the training and test samples of a data set.

    Raises:
        SourceError: a split is empty, a label is out of range, all training samples are
            of one class, or the inputs are not of `kind`.

    >>> split = Split(np.zeros((2, 3), np.float32), np.array([0, 1]))
    >>> Dataset("flat", "table", ("no", "yes"), train=split, test=split).classes
    2
    """

    name: str
    kind: Kind
    class_names: tuple[str, ...]
    train: Split
    test: Split  # without a sample if none is held out
    notes: tuple[str, ...] = ()  # descriptions of omitted samples
    columns: NamedColumns | None = None  # of a table whose columns have names

    def __post_init__(self) -> None:
        for part, split in (("train", self.train), ("test", self.test)):
            if part == "test" and not len(split):
                continue
            where = f"{self.name}: the {part} split"
            _check_inputs(where, self.kind, split.inputs)
            check_label_range(f"{where}: labels", split.labels, self.classes)
            if split.truth is not None:
                check_label_range(f"{where}: truth", split.truth, self.classes)
        if len(self.test):
            _check_alike(self.name, self.train.inputs, self.test.inputs)
        labels = self.train.labels
        if (labels == labels[0]).all():
            raise SourceError(
                f"{self.name}: all {len(labels)} training samples are of class {labels[0]}. "
                "A classifier needs at least two classes."
            )

    @property
    def classes(self) -> int:
        """Number of classes."""
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
        raise SourceError(f"{where} is empty. Is the path right?")
    if isinstance(inputs, np.ndarray):
        found = f"{inputs.dtype} of shape {inputs.shape}"
        wanted = {"image": (4, "uint8"), "table": (2, "float32")}
        fits = wanted.get(kind) == (inputs.ndim, inputs.dtype.name)
    else:
        found = "texts" if isinstance(inputs, tuple) else "image files"
        fits = kind == ("text" if isinstance(inputs, tuple) else "image")
    if not fits:
        raise SourceError(
            f"{where} holds {found}, but kind is {kind!r}: images are uint8 "
            "(sample, channel, row, column), tables float32 (sample, feature), texts a tuple."
        )
    if kind == "table" and not np.isfinite(inputs).all():  # type: ignore[arg-type]
        raise SourceError(f"{where} holds numbers that are not finite. Fill or drop those samples.")


def _check_alike(name: str, train: Inputs, test: Inputs) -> None:
    if isinstance(train, np.ndarray) and isinstance(test, np.ndarray):
        if train.shape[1:] != test.shape[1:]:
            raise SourceError(
                f"{name}: training and test samples must have the same shape; "
                f"got {train.shape[1:]} and {test.shape[1:]}."
            )
    elif isinstance(train, tuple) and isinstance(train[0], tuple) != isinstance(test[0], tuple):  # type: ignore[index]
        raise SourceError(f"{name}: one split holds single texts, the other pairs of texts.")


def check_label_range(name: str, labels: Labels, classes: int) -> None:
    if not np.issubdtype(labels.dtype, np.integer):
        raise SourceError(f"{name} must be integers; got {labels.dtype}.")
    check_class_range(labels, classes=classes, name=name, error=SourceError)


def hold_out(split: Split, share: float, seed: int) -> tuple[Split, Split]:
    """Split samples into two random subsets, stratified by class.

    `round(share * samples)` are held out: of each class its share rounded down, and one more
    of the classes with the largest remainders, lower classes first. Every class keeps at least
    one sample. Classes are those of `split.labels`, wrong or not. Both parts keep the order of
    `split`.

    Args:
        split: the samples.
        share: the share to hold out, between 0 and 1; 0 holds out nothing.
        seed: the same seed holds out the same samples.

    Returns:
        The remaining samples, then the held-out ones.

    Raises:
        ChoiceError: `share` does not lie between 0 and 1, or is too small to hold out a sample.

    >>> split = Split(tuple("abcdefgh"), np.array([0, 0, 0, 0, 0, 0, 1, 1]))
    >>> rest, held = hold_out(split, 0.5, seed=0)
    >>> rest.labels, held.labels
    (array([0, 0, 0, 1]), array([0, 0, 0, 1]))
    """
    if not 0 <= share < 1:
        raise ChoiceError(
            f"the share to hold out must lie between 0 and 1; got {share}. "
            "Is it a percentage, or a number of samples?"
        )
    held = np.zeros(len(split), dtype=bool)
    quotas = _quotas(np.unique(split.labels, return_counts=True)[1], share)
    for samples, quota in zip(_shuffled(split.labels, seed), quotas.tolist(), strict=True):
        held[samples[:quota]] = True
    if share and not held.any():
        raise ChoiceError(
            f"a share of {share} of {len(split)} samples holds out none. Increase the share: "
            "validation or held_out under [data]."
        )
    return split.choose(~held), split.choose(held)


def assign_folds(labels: Labels, folds: int, seed: int) -> NDArray[np.intp]:
    """Assign each sample to one of several folds, stratified by class.

    The sizes of two folds differ by at most 1, in all and of each class. The same seed draws the
    same folds.

    >>> assign_folds(np.array([0, 0, 0, 0, 1, 1, 1]), 2, seed=0)
    array([1, 0, 0, 1, 0, 1, 0])
    """
    if not 2 <= folds <= len(labels):
        raise ChoiceError(
            f"{len(labels)} samples can be divided into 2 to {len(labels)} folds; got {folds}"
        )
    found = np.empty(len(labels), np.intp)
    found[np.concatenate(list(_shuffled(labels, seed)))] = np.arange(len(labels)) % folds
    return found


def fewer_per_class(split: Split, count: int, seed: int) -> Split:
    """Draw a random subset with at most `count` samples per class.

    Args:
        split: the samples, whose order is kept.
        count: at least 1.
        seed: the same seed keeps the same samples.

    Raises:
        ChoiceError: `count` is below 1.

    >>> split = Split(tuple("abcdef"), np.array([0, 0, 0, 0, 1, 1]))
    >>> fewer_per_class(split, 3, seed=0).labels
    array([0, 0, 0, 1, 1])
    """
    if count < 1:
        raise ChoiceError(f"per_class must be at least 1; got {count}.")
    kept = np.concatenate([samples[:count] for samples in _shuffled(split.labels, seed)])
    return split.choose(np.sort(kept))


def _shuffled(labels: Labels, seed: int) -> Iterator[NDArray[np.intp]]:
    random = np.random.default_rng(seed)
    for label in np.unique(labels):
        yield random.permutation(np.flatnonzero(labels == label))


def _quotas(sizes: NDArray[np.intp], share: float) -> NDArray[np.intp]:
    exact = share * sizes
    quotas: NDArray[np.intp] = np.floor(exact).astype(np.intp)
    missing = round(share * int(sizes.sum())) - int(quotas.sum())
    by_remainder = np.argsort(quotas - exact, kind="stable")  # largest first
    can_spare = by_remainder[quotas[by_remainder] + 1 < sizes[by_remainder]]
    quotas[can_spare[: max(missing, 0)]] += 1
    return quotas
