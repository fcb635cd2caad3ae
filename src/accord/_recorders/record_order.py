"""Sort samples and classes into the order of a record."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import ChoiceError, PredictionError, counted
from accord.store import SampleInfo, to_numpy


def positions_of(classes: object, sample_info: SampleInfo) -> NDArray[np.intp]:
    """Map the classes of a network to class indices of the record.

    Classes are found by the record's class names or, if they are whole numbers that are not
    among the names, by value. A network may know fewer classes than the record.

    >>> info = SampleInfo(samples=1, classes=3, class_names=("ham", "eggs", "spam"))
    >>> positions_of(["eggs", "ham"], info)
    array([1, 0])
    >>> positions_of([0, 2], info)
    array([0, 2])
    """
    values = to_numpy(classes)
    if values.ndim != 1:
        raise ChoiceError(
            f"a network predicts one class per sample; its classes must be a flat list, got shape "
            f"{values.shape}. Record each output of a multi-output estimator separately."
        )
    named, numbered = _by_name(values, sample_info), _by_value(values, sample_info)
    if named is not None and numbered is not None and not np.array_equal(named, numbered):
        raise ChoiceError(
            f"classes {_listed(values)} could be names or positions among the record's "
            f"{_listed(sample_info.class_names)}. "
            "Open the recorder with other class_names, or none."
        )
    found = numbered if named is None else named
    if found is None:
        raise ChoiceError(
            f"classes {_listed(values)} are not all among the record's, "
            f"{_listed(sample_info.class_names or range(sample_info.classes))}. "
            "Open the recorder with class_names, one per class."
        )
    return found


def place_labels(labels: object, classes: object, positions: NDArray[np.intp]) -> NDArray[np.intp]:
    """Convert labels to class indices of the record.

    A column (sample, 1), as CatBoost predicts, is flattened.
    """
    values, known = to_numpy(labels), to_numpy(classes)
    values = values[:, 0] if values.shape[1:] == (1,) else values
    order = np.argsort(known)
    found = order[np.searchsorted(known, values, sorter=order).clip(max=len(known) - 1)]
    unknown = values[known[found] != values]
    if unknown.size:
        raise PredictionError(f"{unknown.flat[0]!r} was predicted but is none of {_listed(known)}")
    placed: NDArray[np.intp] = positions[found]
    return placed


def place_columns(
    table: NDArray[Any], positions: NDArray[np.intp], *, classes: int, logits: bool = False
) -> NDArray[Any]:
    """Sort the columns of an array (sample, class) by the classes of the record.

    Classes that the network does not know get probability 0.
    """
    if table.ndim != 2 or table.shape[1] != len(positions):
        raise PredictionError(
            f"a table with one column for each of {len(positions)} classes was expected; "
            f"got shape {table.shape}"
        )
    if np.array_equal(positions, np.arange(classes)):
        return table
    # A logit that lies 1,000 below all others has a softmax of exactly 0.
    low = np.nanmin(table, initial=0.0) - 1000.0 if logits else 0.0
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


SHOWN: Final = 3  # ids that a message lists before "…"


class Order:
    """Mapping from sample ids to positions in a record.

    Without `ids`, a sample's id is its position, 0 to `samples` - 1.
    """

    def __init__(self, samples: int, ids: object = None) -> None:
        self.samples = samples
        self.ids = None if ids is None else as_ids(ids)
        # Sorted once, so that `positions` finds all names by bisection in one call.
        self._sorter = np.argsort(np.arange(samples) if self.ids is None else self.ids)

    def positions(self, ids: object) -> NDArray[np.intp]:
        names = as_ids(ids)
        if self.ids is None:
            if names.dtype.kind == "U":
                raise PredictionError(
                    f"the batches carry ids such as {str(names[0])!r}, and the record does not "
                    "have ids. Open it with Recorder(…, ids=names)"
                )
            known = (names >= 0) & (names < self.samples)
            self._check_known(names, known)
            return names.astype(np.intp)
        if names.dtype.kind != self.ids.dtype.kind:
            raise PredictionError(
                f"the record has ids such as {self.ids[0].item()!r}; the batches carry "
                f"{names[0].item()!r}. Give the batches the same ids: with_ids(dataset, ids)"
            )
        nearest = np.searchsorted(self.ids, names, sorter=self._sorter)
        places = self._sorter[np.minimum(nearest, self.samples - 1)]
        self._check_known(names, self.ids[places] == names)
        return places

    def names(self, positions: NDArray[np.intp]) -> str:
        shown = positions[:SHOWN] if self.ids is None else self.ids[positions[:SHOWN]]
        more = ", …" if len(positions) > SHOWN else ""
        return ", ".join(repr(name) for name in shown.tolist()) + more

    def _check_known(self, names: NDArray[Any], known: NDArray[np.bool_]) -> None:
        if not known.all():
            unknown = names[~known]
            shown = ", ".join(repr(name) for name in unknown[:SHOWN].tolist())
            raise PredictionError(
                f"{len(unknown)} of the ids are not in the record: {shown}"
                f"{', …' if len(unknown) > SHOWN else ''}. "
                f"It has {counted(self.samples, 'sample')}, {self.names(np.arange(self.samples))}. "
                "Is it another dataset?"
            )


def as_ids(ids: object) -> NDArray[Any]:
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
        raise PredictionError(f"ids must fit into signed 64-bit integers; got {values.max()}")
    return values.astype(np.int64)


def assemble(predicted: NDArray[Any], ids: object, order: Order) -> NDArray[Any]:
    """Sort predictions into the order of the record.

    Of several predictions for one sample the first counts: a DistributedSampler repeats samples
    to fill its last batch, and in evaluation mode they get the same prediction again. Without
    ids (None), predictions must come in the record's order.

    >>> assemble(np.array([7, 5, 1, 7]), [0, 2, 1, 0], Order(3))
    array([7, 1, 5])
    """
    if ids is None:
        if len(predicted) != order.samples:
            drops = "drop the last batch (drop_last=True)"
            repeats = "repeat samples (which requires ids)"
            raise PredictionError(
                f"got {counted(len(predicted), 'prediction')} for "
                f"{counted(order.samples, 'sample')}. Does the evaluation loader "
                f"{drops if len(predicted) < order.samples else repeats}, "
                "or has the dataset changed its size?"
            )
        return predicted
    positions = order.positions(ids)
    if len(predicted) != len(positions):
        raise PredictionError(
            f"each prediction needs one id; got {counted(len(predicted), 'prediction')} and "
            f"{counted(len(positions), 'id')}"
        )
    present, first = np.unique(positions, return_index=True)
    if len(present) < order.samples:
        missing = np.setdiff1d(np.arange(order.samples), present)
        raise PredictionError(
            f"{len(missing)} of {order.samples} samples are missing: {order.names(missing)}. "
            "Does the evaluation loader drop the last batch, or skip samples?"
        )
    return np.asarray(predicted[first])
