"""Gather rows that others wrote, one array for each epoch of each network."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError
from accord.store._validation import (
    SUM_TOLERANCE,
    check_whole,
    row_from_logits,
    row_from_predictions,
)

Named = tuple[str, NDArray[Any]]  # what to call an array in a message, and the array


@dataclass(frozen=True)
class Source:
    """What was read: the arrays of each network, epoch by epoch, and facts of the samples."""

    networks: Sequence[Sequence[Named]]
    numbers: tuple[int, ...]
    sample_info: dict[str, NDArray[Any]] = field(default_factory=dict)
    kind: str | None = None  # where it is known what the arrays are


def gather_rows(
    networks: Sequence[Sequence[Named]], *, kind: str | None = None
) -> dict[str, NDArray[Any]]:
    """Return `labels` (network, epoch, sample) and, if there are any, `probabilities`.

    All arrays must be of the kind and shape of the first: labels, probabilities or logits,
    whichever `kind_of` finds unless `kind` says. Labels are taken from a table's largest entry,
    before anything is rounded.

    >>> table = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> gather_rows([[("a", table)]])["labels"]
    array([[[0, 1]]])
    """
    _check_lengths(networks)
    first, example = networks[0][0]
    told, kind = kind, kind or kind_of(first, example)
    shape = (len(networks), len(networks[0]), *example.shape)
    labels = np.empty(shape[:3], np.int64)
    tables = np.empty(shape, np.float16) if kind != "labels" else None
    for number, epochs in enumerate(networks):
        for epoch, (name, values) in enumerate(epochs):
            _check_shape(name, values, first, example)
            if not told and kind_of(name, values) != kind:
                raise PredictionError(
                    f"{name}: holds {kind_of(name, values)}, where {first} holds {kind}"
                )
            if tables is None:
                labels[number, epoch] = values
            else:
                labels[number, epoch], tables[number, epoch] = _row(name, values, kind)
    return {"labels": labels} if tables is None else {"labels": labels, "probabilities": tables}


def kind_of(name: str, values: NDArray[Any]) -> str:
    """Tell labels, probabilities and logits apart, and refuse what could be either.

    One whole number per sample is a label. A table is probabilities if every entry lies in
    0..1 and every row adds up to 1, and logits if an entry lies outside.

    >>> kind_of("a", np.array([[2.5, -1.0]]))
    'logits'
    """
    if values.ndim == 1 and values.size:
        check_whole(values, f"{name}: labels")
        return "labels"
    if values.ndim != 2 or values.shape[0] == 0 or values.shape[1] < 2:
        raise PredictionError(
            f"{name}: labels (sample,) or a table (sample, class) is wanted; got shape "
            f"{values.shape}"
        )
    if values.dtype.kind != "f":
        raise PredictionError(
            f"{name}: a table of {values.dtype} could be anything; for labels give one number per "
            "sample, for probabilities or logits floating-point numbers"
        )
    return _kind_of_table(name, values)


def _kind_of_table(name: str, values: NDArray[Any]) -> str:
    if not np.isfinite(values).all():
        raise PredictionError(f"{name}: holds NaN or infinity. Has the network diverged?")
    if values.min() < 0 or values.max() > 1 + SUM_TOLERANCE:
        return "logits"
    sums = values.sum(axis=1, dtype=np.float64)
    if np.abs(sums - 1).max() <= SUM_TOLERANCE:
        return "probabilities"
    raise PredictionError(
        f"{name}: all entries lie in 0..1, yet rows add up to {sums.min():g}..{sums.max():g}: "
        "neither probabilities nor, for sure, logits. Normalise them, or write labels."
    )


def _row(
    name: str, values: NDArray[Any], kind: str
) -> tuple[NDArray[Any], NDArray[np.float16] | None]:
    samples, classes = values.shape
    size = {"samples": samples, "classes": classes}
    try:
        if kind == "logits":
            row = row_from_logits(values, **size, keep=True)
        else:
            row = row_from_predictions(values, **size, probabilities=True)
    except PredictionError as error:
        raise PredictionError(f"{name}: {error}") from error
    return row.labels, row.probabilities


def _check_lengths(networks: Sequence[Sequence[Named]]) -> None:
    counts = [len(epochs) for epochs in networks]
    if not counts or 0 in counts:
        raise PredictionError("at least one network with at least one epoch is wanted")
    if len(set(counts)) > 1:
        raise PredictionError(
            f"all networks need the same number of epochs; got {', '.join(map(str, counts))}"
        )


def _check_shape(name: str, values: NDArray[Any], first: str, example: NDArray[Any]) -> None:
    if values.shape != example.shape:
        raise PredictionError(
            f"{name}: shape {values.shape}, where {first} has {example.shape}. All networks "
            "predict the same samples at every epoch."
        )
