"""Which of a record's classes each class, or each column, of a network is."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, PredictionError
from accord.store import Facts
from accord.store.intake import to_numpy

FAR_BELOW: Final = 1000.0  # the softmax of a logit so far below all others is exactly 0


def positions_of(classes: object, facts: Facts) -> NDArray[np.intp]:
    """Return which of the record's classes each of a network's classes is.

    Classes are found by the record's class names or, if they are whole numbers that the names
    do not mention, by their value. A network may know fewer classes than the record.

    Raises:
        ChoiceError: a class is not among the record's, or both readings are possible and differ.

    >>> facts = Facts(samples=1, classes=3, class_names=("ham", "eggs", "spam"))
    >>> positions_of(["eggs", "ham"], facts)
    array([1, 0])
    >>> positions_of([0, 2], facts)
    array([0, 2])
    """
    values = to_numpy(classes)
    if values.ndim != 1:
        raise ChoiceError(
            f"a network says one class per sample; its classes must be one list, got shape "
            f"{values.shape}. Record each output of a multi-output estimator by itself."
        )
    named, counted = _by_name(values, facts), _by_value(values, facts)
    if named is not None and counted is not None and not np.array_equal(named, counted):
        raise ChoiceError(
            f"classes {_listed(values)} could be names or positions among the record's "
            f"{_listed(facts.class_names)}. Open the recorder with other class_names, or none."
        )
    found = counted if named is None else named
    if found is None:
        raise ChoiceError(
            f"classes {_listed(values)} are not all among the record's, "
            f"{_listed(facts.class_names or range(facts.classes))}. Open the recorder with "
            "class_names, every label in its place."
        )
    return found


def place_labels(labels: object, classes: object, positions: NDArray[np.intp]) -> NDArray[np.intp]:
    """Turn labels, each one of `classes`, into the record's classes.

    >>> place_labels(["b", "a", "b"], np.array(["a", "b"]), np.array([2, 0]))
    array([0, 2, 0])
    """
    values, known = to_numpy(labels), to_numpy(classes)
    order = np.argsort(known)
    found = order[np.searchsorted(known, values, sorter=order).clip(max=len(known) - 1)]
    strange = values[known[found] != values]
    if strange.size:
        raise PredictionError(f"{strange.flat[0]!r} was predicted and is none of {_listed(known)}")
    placed: NDArray[np.intp] = positions[found]
    return placed


def place_columns(
    table: NDArray[Any], positions: NDArray[np.intp], *, classes: int, logits: bool = False
) -> NDArray[Any]:
    """Put each column of a table (sample, class) where the record has that class.

    Classes that the network does not know get probability 0.

    >>> place_columns(np.array([[0.9, 0.1]]), np.array([2, 0]), classes=3)
    array([[0.1, 0. , 0.9]])
    """
    if table.ndim != 2 or table.shape[1] != len(positions):
        raise PredictionError(
            f"one column for each of {len(positions)} classes is wanted; got shape {table.shape}"
        )
    if np.array_equal(positions, np.arange(classes)):
        return table
    low = np.nanmin(table, initial=0.0) - FAR_BELOW if logits else 0.0
    whole = np.full((len(table), classes), low, np.float64)
    whole[:, positions] = table
    return whole


def _by_name(values: NDArray[Any], facts: Facts) -> NDArray[np.intp] | None:
    where = {name: position for position, name in enumerate(facts.class_names or ())}
    if len(where) < facts.classes or not all(str(value) in where for value in values.tolist()):
        return None
    return np.array([where[str(value)] for value in values.tolist()], np.intp)


def _by_value(values: NDArray[Any], facts: Facts) -> NDArray[np.intp] | None:
    if values.dtype.kind not in "iuf" or (values != np.floor(values)).any():
        return None
    if values.size and (values.min() < 0 or values.max() >= facts.classes):
        return None
    return values.astype(np.intp)


def _listed(values: Any) -> str:
    shown = [str(value) for value in values]
    return ", ".join(shown[:5]) + (" …" if len(shown) > 5 else "")
