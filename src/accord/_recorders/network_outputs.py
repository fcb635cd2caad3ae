"""Convert network outputs to labels or scores."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError

NOT_FINITE: Final = np.iinfo(np.int64).min  # stands for a label whose scores hold NaN or infinity


def labels_or_scores(
    values: NDArray[Any], *, classes: int, probabilities: bool, are_logits: bool = True
) -> NDArray[Any]:
    """Convert network outputs to labels (sample,) or scores (sample, class).

    Values are scores (sample, class), logits or not; for two classes also the score of class 1
    alone, (sample,) or (sample, 1); or integer labels (sample,).

    >>> labels_or_scores(np.array([[0.5, 2.0], [0.1, np.nan]]), classes=2, probabilities=False)
    array([                   1, -9223372036854775808])
    >>> labels_or_scores(np.array([-0.3, 0.2]), classes=2, probabilities=True)
    array([[ 0. , -0.3],
           [ 0. ,  0.2]])
    """
    if values.ndim == 1 and values.dtype.kind in "iu":
        return values.astype(np.int64)
    scores = _as_scores(values, classes, are_logits=are_logits)
    if probabilities:
        return scores
    finite = np.isfinite(scores).all(axis=1)
    return np.where(finite, scores.argmax(axis=1), NOT_FINITE)


def finite_rows(kept: NDArray[Any]) -> NDArray[np.bool_]:
    if kept.ndim == 1:
        return np.asarray(kept != NOT_FINITE)
    return np.asarray(np.isfinite(kept).all(axis=1))


def two_columns(values: NDArray[Any], *, are_logits: bool = True) -> NDArray[Any]:
    """Expand the scores of a binary classifier to two columns."""
    if values.ndim != 1 and values.shape[1:] != (1,):
        return values
    column = values.reshape(-1)
    # A probability p leaves 1 - p to class 0. A logit leaves 0: the softmax of (0, z) is the
    # sigmoid of z. Ties go to class 0.
    other = np.zeros_like(column) if are_logits else 1 - column
    return np.stack([other, column], axis=1)


def _as_scores(values: NDArray[Any], classes: int, *, are_logits: bool) -> NDArray[Any]:
    if values.dtype.kind in "fiu":
        scores = two_columns(values, are_logits=are_logits) if classes == 2 else values
        if scores.ndim == 2 and scores.shape[1] == classes:
            return scores
    raise PredictionError(
        f"for {classes} classes a network must return logits of shape (batch, {classes}); "
        f"got {values.dtype} of shape {values.shape}. "
        "If it returns more than logits, select them with forward=…"
    )
