"""Put what arrived in batches, in any order, into the order of a record's rows."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, PredictionError, counted
from accord.store import SampleInfo
from accord.store._validation import to_numpy

FAR_BELOW: Final = 1000.0  # the softmax of a logit so far below all others is exactly 0


def positions_of(classes: object, sample_info: SampleInfo) -> NDArray[np.intp]:
    """Return which of the record's classes each of a network's classes is.

    Classes are found by the record's class names or, if they are whole numbers that the names
    do not mention, by their value. A network may know fewer classes than the record.

    Raises:
        ChoiceError: a class is not among the record's, or both readings are possible and differ.

    >>> facts = SampleInfo(samples=1, classes=3, class_names=("ham", "eggs", "spam"))
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
    named, counted = _by_name(values, sample_info), _by_value(values, sample_info)
    if named is not None and counted is not None and not np.array_equal(named, counted):
        raise ChoiceError(
            f"classes {_listed(values)} could be names or positions among the record's "
            f"{_listed(sample_info.class_names)}. "
            "Open the recorder with other class_names, or none."
        )
    found = counted if named is None else named
    if found is None:
        raise ChoiceError(
            f"classes {_listed(values)} are not all among the record's, "
            f"{_listed(sample_info.class_names or range(sample_info.classes))}. "
            "Open the recorder with "
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


def _by_name(values: NDArray[Any], sample_info: SampleInfo) -> NDArray[np.intp] | None:
    where = {name: position for position, name in enumerate(sample_info.class_names or ())}
    if len(where) < sample_info.classes or not all(
        str(value) in where for value in values.tolist()
    ):
        return None
    return np.array([where[str(value)] for value in values.tolist()], np.intp)


def _by_value(values: NDArray[Any], sample_info: SampleInfo) -> NDArray[np.intp] | None:
    if values.dtype.kind not in "iuf" or (values != np.floor(values)).any():
        return None
    if values.size and (values.min() < 0 or values.max() >= sample_info.classes):
        return None
    return values.astype(np.intp)


def _listed(values: Any) -> str:
    shown = [str(value) for value in values]
    return ", ".join(shown[:5]) + (" …" if len(shown) > 5 else "")


SHOWN: Final = 3  # ids that a message names before it says "…"


class Order:
    """Which sample stands where in the rows of one record.

    Without `ids`, a sample is called by its position, 0 to `samples` - 1.

    >>> Order(3, ids=["b", "c", "a"]).positions(["a", "b"])
    array([2, 0])
    """

    def __init__(self, samples: int, ids: object = None) -> None:
        self.samples = samples
        self.ids = None if ids is None else as_ids(ids)
        # Sorted once: each name is then found by bisection, all of them in one call.
        self._sorter = np.argsort(np.arange(samples) if self.ids is None else self.ids)

    def positions(self, ids: object) -> NDArray[np.intp]:
        """Return where each of some samples stands.

        Raises:
            PredictionError: an id that the record does not have.
        """
        names = as_ids(ids)
        if self.ids is None:
            self._check_numbers(names)
            known = (names >= 0) & (names < self.samples)
            self._check_known(names, known)
            return names.astype(np.intp)
        self._check_same_kind(names, self.ids)
        nearest = np.searchsorted(self.ids, names, sorter=self._sorter)
        places = self._sorter[np.minimum(nearest, self.samples - 1)]
        self._check_known(names, self.ids[places] == names)
        return places

    def names(self, positions: NDArray[np.intp]) -> str:
        """Name a few samples, for a message."""
        shown = positions[:SHOWN] if self.ids is None else self.ids[positions[:SHOWN]]
        more = ", …" if len(positions) > SHOWN else ""
        return ", ".join(repr(name) for name in shown.tolist()) + more

    def _check_numbers(self, names: NDArray[Any]) -> None:
        if names.dtype.kind == "U":
            raise PredictionError(
                f"the batches name their samples, such as {str(names[0])!r}, and the record does "
                "not know the names. Open it with Recorder(…, ids=names)"
            )

    def _check_same_kind(self, names: NDArray[Any], ids: NDArray[Any]) -> None:
        if names.dtype.kind != ids.dtype.kind:
            raise PredictionError(
                f"the record calls its samples by ids such as {ids[0].item()!r}; the batches carry "
                f"{names[0].item()!r}. Give the batches the same ids: with_ids(dataset, ids)"
            )

    def _check_known(self, names: NDArray[Any], known: NDArray[np.bool_]) -> None:
        if not known.all():
            strange = names[~known]
            shown = ", ".join(repr(name) for name in strange[:SHOWN].tolist())
            raise PredictionError(
                f"the record does not know {len(strange)} of the ids that arrived: {shown}"
                f"{', …' if len(strange) > SHOWN else ''}. "
                f"It has {counted(self.samples, 'sample')}, {self.names(np.arange(self.samples))}. "
                "Is it another dataset?"
            )


def as_ids(ids: object) -> NDArray[Any]:
    """Return ids as one line of int64 or of text, or say what is wrong.

    >>> as_ids([3, 1])
    array([3, 1])
    """
    values = to_numpy(ids)
    if values.dtype.kind in "OT":
        values = values.astype(np.str_)
    if values.dtype.kind not in "iuU" or values.ndim != 1:
        raise PredictionError(
            "ids must be whole numbers or text, one for each sample; "
            f"got {values.dtype} of shape {values.shape}"
        )
    if values.dtype.kind == "U":
        return values
    if values.dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max:
        raise PredictionError(f"ids must fit into 64 bits with a sign; got {values.max()}")
    return values.astype(np.int64)


def assemble(predicted: NDArray[Any], ids: object, order: Order) -> NDArray[Any]:
    """Put predictions into the record's order, one for each sample.

    A sample that arrived more than once counts as it came first: a DistributedSampler repeats
    samples to fill its last batch, and in evaluation mode it gets the same prediction again.
    Without ids (None), predictions must arrive in the record's order.

    Args:
        predicted: (sample,) or (sample, class), as they arrived.
        ids: which sample each one is, or None.
        order: where each sample stands.

    Raises:
        PredictionError: samples are missing, too many, or not the record's.

    >>> assemble(np.array([7, 5, 1, 7]), [0, 2, 1, 0], Order(3))
    array([7, 1, 5])
    """
    if ids is None:
        _check_number(len(predicted), order.samples)
        return predicted
    positions = order.positions(ids)
    _check_pairs(len(predicted), len(positions))
    there, first = np.unique(positions, return_index=True)
    if len(there) < order.samples:
        _refuse_missing(np.setdiff1d(np.arange(order.samples), there), order)
    return np.asarray(predicted[first])


def _refuse_missing(missing: NDArray[np.intp], order: Order) -> None:
    raise PredictionError(
        f"{len(missing)} of {order.samples} samples did not arrive: {order.names(missing)}. "
        "Does the evaluation loader drop the last batch, or skip samples?"
    )


def _check_pairs(predicted: int, ids: int) -> None:
    if predicted != ids:
        raise PredictionError(
            f"each prediction needs one id; got {counted(predicted, 'prediction')} and "
            f"{counted(ids, 'id')}"
        )


def _check_number(arrived: int, samples: int) -> None:
    said = f"{counted(arrived, 'prediction')} arrived for {counted(samples, 'sample')}"
    if arrived < samples:
        raise PredictionError(
            f"{said}. Does the evaluation loader drop the last batch (drop_last=True), or has the "
            "dataset changed its size?"
        )
    if arrived > samples:
        raise PredictionError(
            f"{said}. Does the evaluation loader repeat samples, or has the dataset changed its "
            "size? Repeated samples need ids."
        )
