"""What all kinds of noise refuse."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, PredictionError

Labels: TypeAlias = NDArray[np.integer]  # (sample,) -> class


def check_noise(rate: float, classes: int) -> None:
    """Refuse a rate that is no share, and fewer than two classes."""
    if not 0 <= rate <= 1:
        raise ChoiceError(f"rate must lie in 0..1; got {rate}. Is it a percentage?")
    if classes < 2:
        raise ChoiceError(
            f"label noise needs at least 2 classes; got {classes}. "
            "A single class has no other to be mistaken for."
        )


def check_labels(labels: Labels, classes: int) -> None:
    """Refuse labels that are no row of integers in 0..classes - 1."""
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise PredictionError(
            "labels must be integers, one per sample; "
            f"got {labels.dtype} of shape {labels.shape}. Are they one-hot or probabilities?"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        raise PredictionError(
            f"labels must lie in 0..{classes - 1} for {classes} classes; "
            f"got {labels.min()}..{labels.max()}. "
            "Are the labels counted from 1, or is `classes` too small?"
        )
    if np.iinfo(labels.dtype).max < classes - 1:
        raise PredictionError(
            f"labels of type {labels.dtype} cannot hold class {classes - 1}, which noise may give. "
            "Use a wider type: labels.astype(int)"
        )


def check_mapping(mapping: NDArray[np.integer], classes: int) -> None:
    """Refuse a mapping that does not name one class for each."""
    if mapping.shape != (classes,) or not np.issubdtype(mapping.dtype, np.integer):
        raise ChoiceError(
            f"mapping must hold one class for each of the {classes} classes; "
            f"got {mapping.dtype} of shape {mapping.shape}."
        )
    if not 0 <= mapping.min() <= mapping.max() < classes:
        raise ChoiceError(
            f"mapping must lead to classes in 0..{classes - 1}; "
            f"got {mapping.min()}..{mapping.max()}. Are the classes counted from 1?"
        )
