"""Reader of npz files."""

from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from accord._files import load_npz
from accord.data._dataset import Dataset, Inputs, Kind, Labels, Split, hold_out
from accord.errors import ChoiceError, SourceError

Arrays = dict[str, NDArray[Any]]
_SPELLINGS = (  # of inputs and labels, for training and testing
    ("train_inputs", "train_labels", "test_inputs", "test_labels"),
    ("x_train", "y_train", "x_test", "y_test"),
)
_CHANNELS = (1, 3, 4)
MOST_CLASSES: Final = 2**20  # without class_names; the names generated for them take 66 MB


def read_npz(
    path: Path, *, held_out: float | None = None, seed: int = 0, channels: str | None = None
) -> Dataset:
    """Read a data set from the arrays of an npz file.

    The file holds `train_inputs`, `train_labels`, `test_inputs` and `test_labels` (or
    `x_train`, `y_train`, `x_test` and `y_test`), or `inputs` and `labels` alone. It may
    hold `train_truth` (or `truth`), `train_ids`, `test_ids` (or `ids`) and `class_names`.
    Inputs are images (uint8, three or four axes), a table (numbers, two axes) or texts
    (one axis, or pairs of two). Pickled objects are refused.

    Args:
        path: the file.
        held_out: for `inputs` and `labels`, the share of each class to test on.
        seed: selects the samples that are held out.
        channels: "first" or "last", where the shape of the images does not decide.
    """
    if channels not in (None, "first", "last"):
        raise ChoiceError(f"channels must be 'first' or 'last'; got {channels!r}.")
    arrays = load_npz(path)
    spelling = next((names for names in _SPELLINGS if set(names) <= set(arrays)), None)
    if spelling is not None:
        if held_out is not None:
            raise ChoiceError(f"{path}: {spelling[2]} is the test set; leave out held_out.")
        train = _as_split(path, arrays, spelling[0], spelling[1], "train_", channels)
        test = _as_split(path, arrays, spelling[2], spelling[3], "test_", channels)
    elif {"inputs", "labels"} <= set(arrays):
        if held_out is None:
            raise ChoiceError(
                f"{path}: holds inputs and labels, and no test set. "
                "To hold out a share of the samples: held_out=0.2"
            )
        whole = _as_split(path, arrays, "inputs", "labels", "", channels)
        train, test = hold_out(whole, held_out, seed)
    else:
        raise SourceError(
            f"{path}: holds {', '.join(arrays) or 'nothing'}; expected "
            f"{', '.join(_SPELLINGS[0])}, or inputs and labels."
        )
    names = _class_names(path, arrays, train, test)
    return Dataset(path.stem, _kind(train.inputs), names, train=train, test=test)


def _as_split(
    path: Path, arrays: Arrays, inputs: str, labels: str, part: str, channels: str | None
) -> Split:
    given = flat_labels(arrays[labels])
    if not np.issubdtype(given.dtype, np.integer):
        raise SourceError(
            f"{path}: {labels} must be integers; got {given.dtype}. Number the classes from 0, "
            "and put their names into class_names."
        )
    try:
        values = arrays[inputs]
        if values.dtype == np.uint8 and values.ndim == 4:
            channels = channels or _find_channels(values.shape)
        return Split(
            as_inputs(values, channels="last" if channels == "last" else "first"),
            given,
            truth=arrays.get(f"{part}truth"),
            ids=arrays.get(f"{part}ids"),
        )
    except (SourceError, ChoiceError) as error:
        raise type(error)(f"{path}: {inputs}: {error}") from error


def flat_labels(labels: NDArray[Any]) -> Labels:
    """Flatten labels of shape (sample, 1)."""
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def as_inputs(values: NDArray[Any], *, channels: Literal["first", "last"]) -> Inputs:
    """Convert an array to texts, images or features.

    Raises:
        SourceError: the array is of another type or shape.
    """
    if values.dtype.kind == "U" and values.ndim == 1:
        return tuple(values.tolist())
    if values.dtype.kind == "U" and values.ndim == 2 and values.shape[1] == 2:
        return tuple((one, other) for one, other in values.tolist())
    if values.dtype == np.uint8 and values.ndim == 3:
        return values[:, None]
    if values.dtype == np.uint8 and values.ndim == 4:
        return values.transpose(0, 3, 1, 2) if channels == "last" else values
    if values.dtype.kind in "biuf" and values.ndim == 2:
        return values.astype(np.float32)
    raise SourceError(
        "inputs must be uint8 images with three or four axes, numbers with two, or strings; "
        f"got {values.dtype} of shape {values.shape}. Are the images scaled to 0..1?"
    )


def _find_channels(shape: tuple[int, ...]) -> str:
    first, last = shape[1] in _CHANNELS, shape[3] in _CHANNELS
    if first == last:
        raise ChoiceError(
            f"images of shape {shape} may have their channels first or last. "
            "Name the axis: channels='first'"
        )
    return "last" if last else "first"


def _kind(inputs: Inputs) -> Kind:
    if isinstance(inputs, tuple):
        return "text"
    return "image" if isinstance(inputs, np.ndarray) and inputs.ndim == 4 else "table"


def _class_names(path: Path, arrays: Arrays, train: Split, test: Split) -> tuple[str, ...]:
    if "class_names" in arrays:
        return tuple(str(name) for name in arrays["class_names"].tolist())
    classes = 1 + max(int(split.labels.max(initial=0)) for split in (train, test))
    if classes > MOST_CLASSES:
        raise SourceError(
            f"{path}: a data set without class_names has at most {MOST_CLASSES} classes; the "
            f"labels go up to {classes - 1}. Are the labels ids or hashes? Number the classes "
            "from 0."
        )
    return tuple(str(number) for number in range(classes))
