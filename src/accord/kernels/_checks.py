"""Validation of labels."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import AccordError, PredictionError
from accord.kernels._blocks import Labels

LARGEST_TABLE = 4 * 2**30  # bytes


def check_labels(labels: Labels, *, classes: int) -> None:
    """Check that labels are integers in 0..classes-1.

    Every axis before the last is a voter axis: (network, sample), (network, epoch, sample).

    Raises:
        PredictionError: the labels' type, shape or range is wrong.

    >>> check_labels(np.array([[0, 2], [1, 1]]), classes=3)
    >>> check_labels(np.array([[1, 2], [3, 4]]), classes=4)
    Traceback (most recent call last):
    accord.errors.PredictionError: labels must lie in 0..3 for 4 classes; got 1..4. Are the \
labels counted from 1, or is `classes` too small?
    """
    _check_classes(classes)
    if not np.issubdtype(labels.dtype, np.integer):
        raise PredictionError(
            f"labels must be integers; got {labels.dtype}. "
            "Are they probabilities or logits? Take the largest class of each first."
        )
    if labels.ndim < 2 or math.prod(labels.shape[:-1]) == 0:
        raise PredictionError(
            "labels must hold at least one voter, as (network, sample) or "
            f"(network, epoch, sample); got shape {labels.shape}. "
            "For one network at one epoch, give labels[None]."
        )
    check_class_range(labels, classes=classes)


def check_class_range(
    labels: NDArray[Any],
    *,
    classes: int,
    name: str = "labels",
    error: type[AccordError] = PredictionError,
) -> None:
    """Check that integers lie in 0..classes-1.

    Args:
        labels: integers of an integer or floating type.
        classes: the number of classes.
        name: the subject of the message, such as "data.csv: labels".
        error: the exception to raise.
    """
    if _in_range(labels, classes):
        return
    hint = "Are the labels counted from 1, or is `classes` too small?"
    if labels.min() < 0:
        hint = (
            "Do negative numbers mark samples without a class? Leave those samples out; a vote "
            "that is missing can be imported as NaN."
        )
    raise error(
        f"{name} must lie in 0..{classes - 1} for {classes} classes; "
        f"got {labels.min():.0f}..{labels.max():.0f}. {hint}"
    )


def _check_classes(classes: Any) -> None:
    if not isinstance(classes, int | np.integer) or classes < 1:
        raise PredictionError(f"classes must be a whole number, at least 1; got {classes!r}.")


def _in_range(labels: Labels, classes: int) -> bool:
    if labels.size == 0:
        return True
    if labels.dtype.kind not in "iu":
        return bool(labels.min() >= 0 and labels.max() < classes)
    lowest, highest = np.iinfo(labels.dtype).min, np.iinfo(labels.dtype).max
    # Each minimum is a pass over memory: skip those that the type already answers.
    return (lowest >= 0 or labels.min() >= 0) and (highest < classes or labels.max() < classes)


def check_epochs(labels: Labels) -> None:
    """Check that labels have network, epoch and sample axes."""
    if labels.ndim != 3:
        raise PredictionError(
            f"labels must have the axes (network, epoch, sample); got shape {labels.shape}. "
            "For a single network, give labels[None]."
        )


def check_table(samples: int, classes: int) -> None:
    """Check that a table of samples and classes fits into 4 GiB."""
    size = 8 * samples * classes
    if size > LARGEST_TABLE:
        raise PredictionError(
            f"a table of {samples} samples by {classes} classes would take "
            f"{size / 2**30:.1f} GiB; the largest is {LARGEST_TABLE // 2**30} GiB. "
            "`winners` and `margins` need no table; or count some of the samples at a time."
        )
