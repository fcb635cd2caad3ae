"""Utilities for input validation."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, PredictionError, counted
from accord.kernels import check_class_range
from accord.store._record_format import label_dtype

SUM_TOLERANCE: Final = 1e-2  # a half-precision softmax over 1,000 classes is off by up to 0.4 %
LEAST_ROWS: Final = 5  # rows of logits that all sum to 1 are no coincidence


@dataclass(frozen=True, slots=True)
class Row:
    """Predictions of one network at one epoch."""

    labels: NDArray[Any]  # (sample,)
    probabilities: NDArray[np.float16] | None = None  # (sample, class)


def row_from_predictions(
    predicted: object,
    *,
    samples: int,
    classes: int,
    probabilities: bool,
    class_names: Sequence[str] | None = None,
) -> Row:
    """Build a row from labels (sample,), which may be names, or probabilities (sample, class)."""
    values = to_numpy(predicted)
    if values.ndim == 2 and (values.dtype.kind == "f" or values.shape[1] == classes):
        return row_from_probabilities(values, samples=samples, classes=classes, keep=probabilities)
    if probabilities:
        raise PredictionError(
            f"this recorder stores probabilities, of shape ({samples}, {classes}); "
            f"got an array of shape {values.shape}. "
            "Give probabilities or logits, or open the recorder with probabilities=False."
        )
    return Row(as_labels(values, samples=samples, classes=classes, class_names=class_names))


def row_from_probabilities(
    probabilities: NDArray[Any], *, samples: int, classes: int, keep: bool
) -> Row:
    check_probabilities(probabilities, samples=samples, classes=classes)
    labels = probabilities.argmax(axis=1).astype(label_dtype(classes))
    return Row(labels, probabilities.astype(np.float16) if keep else None)


def row_from_logits(logits: object, *, samples: int, classes: int, keep: bool) -> Row:
    """Build a row from logits."""
    values = to_numpy(logits)
    _check_table(values, "logits", samples=samples, classes=classes)
    labels = values.argmax(axis=1).astype(label_dtype(classes))
    if not keep:
        return Row(labels)
    sums = values.sum(axis=1, dtype=np.float64)
    if len(values) >= LEAST_ROWS and values.min() >= 0 and np.allclose(sums, 1, atol=1e-3):
        raise PredictionError(
            "logits must be scores before the softmax; got rows in 0..1 that sum to 1. Are they "
            "probabilities? Pass them as such: record(probabilities)"
        )
    shifted = values.astype(np.float64) - values.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    return Row(labels, (powers / powers.sum(axis=1, keepdims=True)).astype(np.float16))


def as_labels(
    values: NDArray[Any],
    *,
    samples: int,
    classes: int,
    name: str = "labels",
    class_names: Sequence[str] | None = None,
) -> NDArray[Any]:
    if values.shape != (samples,):
        hint = "Does the evaluation loader drop the last batch, or shuffle and repeat samples?"
        if values.shape == (samples, classes):
            hint = "Is it one-hot? Take the class of each sample: argmax(axis=1)."
        elif values.size == samples:
            hint = "Flatten it: reshape(-1)."
        elif values.ndim > 2:
            hint = "Are they batches? Join them: np.concatenate(batches)"
        raise PredictionError(
            f"{name} must have shape ({samples},), one class per sample; got {values.shape}. {hint}"
        )
    return as_classes(number_names(values, class_names, name), classes=classes, name=name)


def as_classes(values: NDArray[Any], *, classes: int, name: str = "labels") -> NDArray[Any]:
    check_whole(values, name)
    check_class_range(values, classes=classes, name=name)
    return values.astype(label_dtype(classes))


def check_probabilities(values: NDArray[Any], *, samples: int, classes: int) -> None:
    """Check that the probabilities of each sample sum to 1."""
    _check_table(values, "probabilities", samples=samples, classes=classes)
    low, high = values.min(), values.max()
    sums = values.sum(axis=1, dtype=np.float64)
    worst = int(np.abs(sums - 1).argmax())
    if low < 0 or high > 1 + SUM_TOLERANCE or abs(sums[worst] - 1) > SUM_TOLERANCE:
        raise PredictionError(
            f"probabilities must lie in 0..1 and sum to 1 for every sample; got "
            f"{low:g}..{high:g}, and sample {worst} sums to {sums[worst]:g}. "
            "For scores before the softmax: record(logits=…)."
        )


def to_numpy(values: object) -> NDArray[Any]:
    """Convert an array-like or a tensor to a numpy array.

    Raises:
        PredictionError: it is not an array, is a list of arrays of different lengths, a sparse
            tensor, or has masked elements.
    """
    tensor: Any = values
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        if "strided" not in str(tensor.layout):
            raise PredictionError(
                f"expected a dense tensor; got layout {tensor.layout}. Pass tensor.to_dense()"
            )
        if "bfloat16" in str(tensor.dtype):  # numpy lacks this type
            tensor = tensor.float()
        return np.asarray(tensor.numpy())
    if isinstance(values, list | tuple) and values and hasattr(values[0], "detach"):
        tensor = [to_numpy(part) for part in values]
    _check_unmasked(values)
    try:
        array = np.asarray(tensor)
    except ValueError as error:
        raise PredictionError(
            "expected an array; got a list whose parts differ in shape. "
            "Are they batches? Join them: np.concatenate(batches)"
        ) from error
    if array.dtype == object and not array.ndim:  # numpy wraps objects that are not sequences
        raise PredictionError(
            f"expected an array, tensor or list; got a {type(values).__name__}. "
            "Convert other iterables: list(…)"
        )
    return array


def to_votes(values: object) -> NDArray[Any]:
    """Convert an array-like whose masked elements are missing votes."""
    parts = values if isinstance(values, list | tuple) else []
    if any(isinstance(one, np.ma.MaskedArray) for one in parts):
        return np.ma.stack(parts)
    return values if isinstance(values, np.ma.MaskedArray) else to_numpy(values)


def ids_to_numpy(values: object) -> NDArray[Any]:
    """Convert ids to an array of integers or strings."""
    array = to_numpy(values)
    if array.dtype.kind != "f" or not isinstance(values, Sequence):
        return array
    if not all(isinstance(value, Integral) for value in values):
        return array
    # If neither int64 nor uint64 holds all of them, numpy would round them to float64.
    below = any(value < 0 for value in values)
    return np.array([str(value) for value in values]) if below else np.array(values, np.uint64)


def _check_unmasked(values: object) -> None:
    parts = values if isinstance(values, list | tuple) else [values]
    masked = sum(int(np.sum(one.mask)) for one in parts if isinstance(one, np.ma.MaskedArray))
    if masked:
        raise PredictionError(
            f"every element must have a value; got a masked array with {masked} masked. "
            "Fill them with array.filled(…), leave those samples out, or store "
            "missing votes with accord.import_arrays."
        )


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert metadata to values that JSON can represent.

    JSON lacks NaN and infinity, which become strings.
    """
    return {str(name): _plain(name, value) for name, value in values.items()}


def _plain(name: str, value: Any) -> Any:
    if hasattr(value, "tolist") and hasattr(value, "dtype"):  # numpy and torch alike
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(name, inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(name, inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ChoiceError(
        f"{name} cannot be stored with the record: {type(value).__name__} is not JSON"
    )


def check_whole(values: NDArray[Any], name: str) -> None:
    if values.dtype.kind in "iu":
        return
    if values.dtype.kind != "f":
        texts = "Number the classes from 0, or list them: class_names=[…]."
        hint = texts if _are_texts(values) else "Add .astype(int)."
        raise PredictionError(f"{name} must be whole numbers; got {values.dtype} values. {hint}")
    fractions = values[~(np.isfinite(values) & (values == np.floor(values)))]
    if fractions.size:
        raise PredictionError(
            f"{name} must be whole numbers; got {fractions.flat[0]:g}. "
            "For probabilities, pass an array of shape (samples, classes)."
        )


def _are_texts(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "UT" or (values.size > 0 and isinstance(values.flat[0], str))


def number_names(
    values: NDArray[Any], class_names: Sequence[str] | None, name: str
) -> NDArray[Any]:
    """Replace names of classes by their numbers, and keep labels that are no texts."""
    if class_names is None or not _are_texts(values):
        return values
    where = {one: number for number, one in enumerate(class_names)}
    unknown = next((value for value in values.tolist() if value not in where), None)
    if unknown is not None:
        raise PredictionError(
            f"{name} must be among the class_names {', '.join(class_names[:5])}"
            f"{' …' if len(class_names) > 5 else ''}; got {unknown!r}"
        )
    return np.array([where[value] for value in values.tolist()], np.intp)


def _check_table(values: NDArray[Any], name: str, *, samples: int, classes: int) -> None:
    if values.shape != (samples, classes):
        hint = "Does the evaluation loader drop the last batch?"
        if values.shape == (samples, 1) and classes == 2:
            pair = "0 * z, z" if name == "logits" else "1 - p, p"
            hint = f"Two classes need two columns: np.column_stack([{pair}])."
        elif values.shape == (classes, samples):
            hint = "Are the axes transposed? Pass the array's .T"
        elif values.ndim == 2 and len(values) == samples:
            hint = "Is `classes` wrong?"
        elif values.ndim > 2:
            hint = "Are they batches? Join them: np.concatenate(batches)"
        raise PredictionError(
            f"{name} must have shape ({samples}, {classes}), (sample, class); got {values.shape}. "
            f"{hint}"
        )
    if values.dtype.kind not in "fiu":
        raise PredictionError(
            f"{name} must be numbers; got {values.dtype} values. Add .astype(float)."
        )
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        others = int((~finite).sum()) - 1
        more = f", like {counted(others, 'other')}" if others else ""
        raise PredictionError(
            f"{name} must be finite; sample {int(finite.argmin())} holds NaN or infinity{more}. "
            "Has the network diverged?"
        )
