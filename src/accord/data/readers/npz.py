"""Users' own arrays, from an npz file."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import load_npz
from accord.data._dataset import Dataset, Inputs, Kind, Split, hold_out
from accord.errors import ChoiceError, SourceError

Arrays = dict[str, NDArray[Any]]
_SPELLINGS = (  # of inputs and labels, for training and testing
    ("train_inputs", "train_labels", "test_inputs", "test_labels"),
    ("x_train", "y_train", "x_test", "y_test"),
)
_CHANNELS = (1, 3, 4)
MOST_CLASSES: Final = 2**20  # without names of their own; the names made for them take 66 MB


def read_npz(
    path: Path, *, held_out: float | None = None, seed: int = 0, channels: str | None = None
) -> Dataset:
    """Read arrays by their names; pickled objects are refused.

    The file holds `train_inputs`, `train_labels`, `test_inputs` and `test_labels` (or
    `x_train`, `y_train`, `x_test` and `y_test`), or `inputs` and `labels` alone. It may
    hold `train_truth` (or `truth`), `train_ids`, `test_ids` (or `ids`) and `class_names`.
    Inputs are images (uint8, three or four axes), a table (numbers, two axes) or texts
    (one axis, or pairs of two).

    Args:
        path: the file.
        held_out: of `inputs` alone, the share of each class to test on.
        seed: which samples are held out.
        channels: "first" or "last", where four axes leave it open.
    """
    arrays = load_npz(path)
    spelling = next((names for names in _SPELLINGS if set(names) <= set(arrays)), None)
    if spelling is not None:
        _check_undivided(path, held_out, spelling[2])
        train = _as_split(path, arrays, spelling[0], spelling[1], "train_", channels)
        test = _as_split(path, arrays, spelling[2], spelling[3], "test_", channels)
    elif {"inputs", "labels"} <= set(arrays):
        whole = _as_split(path, arrays, "inputs", "labels", "", channels)
        train, test = hold_out(whole, _checked_share(path, held_out), seed)
    else:
        raise SourceError(
            f"{path}: holds {', '.join(arrays) or 'nothing'}; there must be "
            f"{', '.join(_SPELLINGS[0])}, or inputs and labels."
        )
    names = _class_names(path, arrays, train, test)
    return Dataset(path.stem, _kind(train.inputs), names, train=train, test=test)


def _checked_share(path: Path, held_out: float | None) -> float:
    if held_out is None:
        raise ChoiceError(
            f"{path}: holds inputs and labels, and nothing to test on. "
            "To hold some samples out: held_out=0.2"
        )
    return held_out


def _check_undivided(path: Path, held_out: float | None, test: str) -> None:
    if held_out is not None:
        raise ChoiceError(f"{path}: {test} is there to test on; leave out held_out.")


def _as_split(
    path: Path, arrays: Arrays, inputs: str, labels: str, part: str, channels: str | None
) -> Split:
    given = arrays[labels]
    if not np.issubdtype(given.dtype, np.integer):
        raise SourceError(
            f"{path}: {labels} must be integers; got {given.dtype}. Number the classes from 0; "
            "their names may be in class_names."
        )
    if given.ndim == 2 and given.shape[1] == 1:  # as Keras stores CIFAR
        given = given[:, 0]
    try:
        return Split(
            _as_inputs(arrays[inputs], channels),
            given,
            truth=arrays.get(f"{part}truth"),
            ids=arrays.get(f"{part}ids"),
        )
    except (SourceError, ChoiceError) as error:
        raise type(error)(f"{path}: {inputs}: {error}") from error


def _as_inputs(values: NDArray[Any], channels: str | None) -> Inputs:
    if values.dtype.kind == "U" and values.ndim == 1:
        return tuple(values.tolist())
    if values.dtype.kind == "U" and values.ndim == 2 and values.shape[1] == 2:
        return tuple((one, other) for one, other in values.tolist())
    if values.dtype == np.uint8 and values.ndim == 3:
        return values[:, None]
    if values.dtype == np.uint8 and values.ndim == 4:
        return values.transpose(0, 3, 1, 2) if _channels_last(values, channels) else values
    if values.dtype.kind in "biuf" and values.ndim == 2:
        return values.astype(np.float32)
    raise SourceError(
        "inputs must be uint8 images of three or four axes, numbers of two, or texts; "
        f"got {values.dtype} of shape {values.shape}. Are the images scaled to 0..1?"
    )


def _channels_last(images: NDArray[np.uint8], channels: str | None) -> bool:
    if channels is not None:
        if channels not in ("first", "last"):
            raise ChoiceError(f"channels are 'first' or 'last'; got {channels!r}.")
        return channels == "last"
    first, last = images.shape[1] in _CHANNELS, images.shape[3] in _CHANNELS
    if first == last:
        raise ChoiceError(
            f"images of shape {images.shape} may have their channels first or last. "
            "Say which: channels='first'"
        )
    return last


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
