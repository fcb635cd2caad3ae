"""Functions for predicting from arrays and saving predictions."""

import importlib.util
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from accord import kernels
from accord._files import csv_text, local_path, write_file
from accord.errors import ChoiceError, PredictionError, missing_extra
from accord.rules import ABSTAINED, Prediction
from accord.store import SampleInfo, to_numpy


def max_agreement(labels: NDArray[Any], *, classes: int) -> NDArray[np.intp]:
    """Predict the class with the most votes over all networks and all epochs.

    Ties go to the lowest class.

    Args:
        labels: predicted classes (network, epoch, sample), integers from 0.
        classes: the number of classes.

    Returns:
        One class per sample.

    Two networks predict class 0 for two epochs, then both drift to class 1:

    >>> max_agreement(np.array([[[0], [0], [1]], [[0], [0], [1]]]), classes=2)
    array([0])
    """
    return kernels.winners(_checked(labels), classes=classes).labels


def agreement(labels: NDArray[Any], *, classes: int) -> NDArray[np.float64]:
    """Compute the share of votes for each class.

    >>> agreement(np.array([[[0], [0], [1]], [[0], [0], [1]]]), classes=2).round(2)
    array([[0.67, 0.33]])
    """
    return kernels.agreement(_checked(labels), classes=classes)


def _checked(labels: object) -> NDArray[Any]:
    array = to_numpy(labels)
    if array.ndim != 3:
        raise PredictionError(
            f"labels must have axes (network, epoch, sample); got shape {array.shape}. "
            "For one network, add an axis: labels[None]"
        )
    return array


Columns = dict[str, Any]


def save_prediction(
    prediction: Prediction, path: str | os.PathLike[str], *, sample_info: SampleInfo | None = None
) -> None:
    """Save a prediction to a .npy, .csv or .parquet file.

    A .npy file has labels only. The others also have scores and, if `sample_info` has them, the
    samples' ids and the classes' names.
    """
    target = check_ending(path)
    buffer = io.BytesIO()
    _ENCODERS[target.suffix](buffer, prediction_columns(prediction, sample_info))
    write_file(target, buffer.getvalue())


def check_ending(path: str | os.PathLike[str]) -> Path:
    """Validate the path of a file of predictions."""
    path = local_path(path)
    if path.suffix not in _ENCODERS:
        have = ", ".join(_ENCODERS)
        raise ChoiceError(f"{path}: predictions can be written as {have}; got {path.suffix!r}")
    if path.suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise missing_extra(f"{path}: writing .parquet files", "pyarrow", extra="parquet")
    return path


def prediction_columns(prediction: Prediction, sample_info: SampleInfo | None) -> Columns:
    columns: Columns = {"sample": np.arange(len(prediction))}
    if sample_info is not None and sample_info.ids is not None:
        columns["id"] = sample_info.ids
    columns["label"] = prediction.labels
    if sample_info is not None and sample_info.class_names is not None:
        names = np.array([*sample_info.class_names, ""])  # an abstention has no name
        columns["class"] = names[np.where(prediction.labels == ABSTAINED, -1, prediction.labels)]
    columns["score"] = prediction.scores
    return columns


def encode_csv(columns: Columns) -> bytes:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return csv_text(columns, rows).encode()


def _write_parquet(file: BinaryIO, columns: Columns) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: pa.array(column) for name, column in columns.items()}), file)


_ENCODERS: dict[str, Callable[[BinaryIO, Columns], object]] = {
    ".npy": lambda file, columns: np.save(file, columns["label"], allow_pickle=False),
    ".csv": lambda file, columns: file.write(encode_csv(columns)),
    ".parquet": _write_parquet,
}
