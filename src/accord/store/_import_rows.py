"""Check and stack the rows of an imported record.

Every importer returns a `Source`: rows by network and epoch, of labels, probabilities or logits.
`reader_of` finds out which, stacks them, and marks the votes that are missing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.errors import PredictionError, SourceError, counted
from accord.store._metadata import make_sample_info
from accord.store._record_format import AXES, LABELS, SAMPLE_ARRAYS
from accord.store._record_reader import ArrayReader
from accord.store._validation import (
    SUM_TOLERANCE,
    Row,
    as_classes,
    check_probabilities,
    check_whole,
    number_names,
    row_from_logits,
    row_from_probabilities,
    to_numpy,
)
from accord.store._writer import MOST_NETWORKS

Named = tuple[str, NDArray[Any]]  # the name of an array in messages, and the array
ROUNDING: Final = 1e-3  # by which the probability of a label may be below the largest


@dataclass(frozen=True)
class Source:
    networks: Sequence[Sequence[Named]]  # by network and epoch: (sample,) or (sample, class)
    names: Sequence[str] = ()  # of the networks: numbers, or other names
    progress: tuple[float, ...] | None = None
    sample_info: Mapping[str, Any] = field(default_factory=dict)
    probabilities: NDArray[Any] | None = None  # stored beside labels
    kind: str | None = None  # labels, probabilities or logits, if known
    split: str = "test"


def by_network(networks: Mapping[str, Sequence[Named]], **options: Any) -> Source:
    """Build a source from networks with names: numbers become their numbers."""
    names = sort_networks(networks)
    return Source([networks[name] for name in names], names, **options)


def sort_networks(names: Iterable[str]) -> list[str]:
    """Sort the names of networks: by value if all are numbers."""
    names = sorted(names)
    if all(map(str.isdecimal, names)):
        names.sort(key=int)
        for one, other in pairwise(names):
            if int(one) == int(other):
                raise SourceError(f"networks {one} and {other} have the same number; rename one")
    return names


def progress_of(epochs: Sequence[float]) -> tuple[float, ...]:
    """Return the true epochs of sorted epochs: of 0, 1, 2 … the first is 1.

    >>> progress_of([5, 10]), progress_of([0, 1])
    ((5.0, 10.0), (1.0, 2.0))
    """
    from_zero = list(epochs) == list(range(len(epochs)))
    return tuple(float(epoch) + from_zero for epoch in epochs)


@dataclass(frozen=True)
class Votes:
    kind: str
    labels: NDArray[Any]  # (network, epoch, sample), 0 where missing
    probabilities: NDArray[np.float16] | None  # (network, epoch, sample, class), 0 where missing
    missing: NDArray[np.bool_]  # (network, epoch, sample)


def reader_of(
    source: Source, *, classes: int | None, name: str, **sample_info: object
) -> tuple[ArrayReader, str]:
    """Build a reader of a source, and describe in a few words what was found."""
    info = {**source.sample_info, **sample_info}
    names = info.get("class_names")
    names = None if names is None else to_numpy(names).tolist()
    votes = stack_rows(source.networks, kind=source.kind, class_names=names)
    missing = votes.missing
    _check_samples(votes.labels.shape, info)
    classes = _classes(votes, source.probabilities, info) if classes is None else classes
    made = make_sample_info(
        samples=votes.labels.shape[2], classes=classes, split=source.split, **info
    )
    labels = as_classes(votes.labels, classes=classes)
    numbered = bool(source.names) and all(map(str.isdecimal, source.names))
    numbered = numbered and int(source.names[-1]) < MOST_NETWORKS  # they are sorted
    beside = source.probabilities
    if beside is not None:
        beside = _checked_tables(beside, labels, missing, classes)
    reader = ArrayReader(
        labels,
        made,
        probabilities=votes.probabilities if beside is None else beside,
        missing=missing,
        numbers=list(map(int, source.names)) if numbered else None,
        progress=source.progress,
        metadata=[{"name": one} for one in ([] if numbered else source.names)],
        name=name,
    )
    kind = votes.kind if beside is None else "labels and probabilities"
    sizes = zip((*labels.shape, classes), AXES, strict=True)
    found = f"{kind} of {', '.join(counted(*size) for size in sizes)}"
    found += ", stored as probabilities" if kind == "logits" else ""
    share = 100 * missing.mean()
    found += f"; {share:.2g} % of the votes are missing" if share else ""
    if not source.names and max(labels.shape[:2]) > labels.shape[2]:
        found += "; few samples: are the axes in another order? --axes sample,network,epoch"
    one_based = votes.kind == LABELS and labels[~missing].min() > 0
    return reader, found + ("; no label is 0: are they counted from 1?" if one_based else "")


def _check_samples(shape: tuple[int, ...], info: Mapping[str, Any]) -> None:
    for name in SAMPLE_ARRAYS[:3]:
        size = np.size(info.get(name, ()))
        if size in shape[:2] and size != shape[2]:
            raise PredictionError(
                f"{name} has {counted(size, 'value')}, but the axis sample has {shape[2]}. "
                "Are the axes in another order? Example: --axes sample,network,epoch"
            )


def _classes(votes: Votes, beside: NDArray[Any] | None, info: Mapping[str, Any]) -> int:
    if "class_names" in info:
        return np.size(info["class_names"])
    for table in (votes.probabilities, beside):
        if table is not None and table.ndim:
            return int(table.shape[-1])
    largest = [votes.labels.max()]
    for name in [name for name in ("truth", "given") if name in info]:
        values = to_numpy(info[name])
        check_whole(values, name)
        largest.append(values.max(initial=0))
    return int(max(largest)) + 1


def _checked_tables(
    values: NDArray[Any], labels: NDArray[Any], missing: NDArray[np.bool_], classes: int
) -> NDArray[np.float16]:
    if values.shape != (*labels.shape, classes):
        raise PredictionError(
            f"probabilities must have shape {(*labels.shape, classes)}, "
            f"(network, epoch, sample, class); got {values.shape}"
        )
    tables = np.zeros(values.shape, np.float16)
    for network, epoch in np.ndindex(labels.shape[:2]):
        voted = np.flatnonzero(~missing[network, epoch])
        table, row = values[network, epoch][voted], labels[network, epoch][voted]
        if not voted.size:
            continue
        check_probabilities(table, samples=voted.size, classes=classes)
        below = table.max(axis=1) - table[np.arange(voted.size), row] > ROUNDING
        if below.any():
            at = int(below.argmax())
            raise PredictionError(
                f"labels and probabilities contradict each other: network {network}, epoch "
                f"{epoch}, sample {voted[at]} has label {row[at]}, but class "
                f"{table[at].argmax()} has the largest probability. Leave one of them out."
            )
        tables[network, epoch, voted] = table
    return tables


def stack_rows(
    networks: Sequence[Sequence[Named]],
    *,
    kind: str | None = None,
    class_names: Sequence[str] | None = None,
) -> Votes:
    """Stack the rows of all networks into arrays of labels and probabilities.

    All rows must have the kind and shape of the first: labels, probabilities or logits, by
    default as `kind_of` finds. Labels are the largest entries of a table, before rounding.
    A vote is missing where a masked array masks it, and where a label is NaN.
    """
    _check_lengths([len(epochs) for epochs in networks])
    first, example = networks[0][0]
    missing = np.zeros((*map(len, (networks, networks[0])), *example.shape[:1]), bool)
    rows = {}
    for number, epochs in enumerate(networks):
        for epoch, (name, values) in enumerate(epochs):
            if values.shape != example.shape:
                raise PredictionError(
                    f"{name}: has shape {values.shape}, but {first} has {example.shape}. All "
                    "networks predict the same samples at every epoch."
                )
            missing[number, epoch] = gaps = _gaps(values)
            plain = np.ma.getdata(values)
            plain = plain[~gaps] if gaps.any() else plain
            rows[number, epoch] = name, number_names(plain, class_names, name)
    kind = kind or _common_kind(rows.values())
    large = any(values.dtype == np.uint64 for _, values in rows.values())  # int64 would wrap
    labels = np.zeros(missing.shape, np.uint64 if large else np.int64)
    tables = None if kind == LABELS else np.zeros((*missing.shape, example.shape[-1]), np.float16)
    for place, (name, values) in rows.items():
        if tables is None:
            labels[place][~missing[place]] = values
        elif len(values):
            row = _row(name, values, kind)
            labels[place][~missing[place]] = row.labels
            tables[place][~missing[place]] = row.probabilities
    return Votes(kind, labels, tables, missing)


def _check_lengths(epochs: Sequence[int]) -> None:
    if not epochs or 0 in epochs:
        raise PredictionError("expected at least one network with at least one epoch")
    if len(set(epochs)) > 1:
        raise PredictionError(
            f"all networks need the same number of epochs; got {', '.join(map(str, epochs))}"
        )


def _common_kind(rows: Iterable[Named]) -> str:
    found = [(kind_of(name, values), name) for name, values in rows if values.size]
    if not found:
        raise PredictionError("every vote is missing; at least one must have a label")
    kind, first = found[0]
    for other, name in found:
        if other != kind:
            raise PredictionError(f"{name}: has {other}, but {first} has {kind}")
    return kind


def _row(name: str, values: NDArray[Any], kind: str) -> Row:
    make = row_from_logits if kind == "logits" else row_from_probabilities
    try:
        return make(values, samples=len(values), classes=values.shape[1], keep=True)
    except PredictionError as error:
        raise PredictionError(f"{name}: {error}") from error


def _gaps(values: NDArray[Any]) -> NDArray[np.bool_]:  # (sample,)
    gaps = np.ma.getmaskarray(values)
    data = np.ma.getdata(values)
    if values.ndim == 1 and data.dtype.kind == "f":
        gaps = gaps | np.isnan(data)
    return np.asarray(gaps.any(axis=tuple(range(1, values.ndim))))


def kind_of(name: str, values: NDArray[Any]) -> str:
    """Infer whether an array holds labels, probabilities or logits.

    One whole number per sample is a label. A table holds probabilities if every entry lies in
    0..1 and every row sums to 1, and logits if any entry lies outside.
    """
    if values.ndim == 1 and values.size:
        if values.dtype.kind == "f" and (fractions := values[values != np.floor(values)]).size:
            raise PredictionError(
                f"{name}: labels must be whole numbers; got {fractions[0]:g}. For probabilities or "
                "logits, name the axis of classes: --axes network,sample,class or axes=…"
            )
        check_whole(values, f"{name}: labels")
        return "labels"
    if values.ndim != 2 or values.shape[0] == 0 or values.shape[1] < 2:
        raise PredictionError(
            f"{name}: expected labels (sample,) or a table (sample, class); "
            f"got shape {values.shape}"
        )
    if values.dtype.kind != "f":
        raise PredictionError(
            f"{name}: a table of {values.dtype} is ambiguous; for labels pass one number per "
            "sample, for probabilities or logits floating-point numbers"
        )
    if not np.isfinite(values).all():
        raise PredictionError(f"{name}: has NaN or infinity. Has the network diverged?")
    if values.min() < 0 or values.max() > 1 + SUM_TOLERANCE:
        return "logits"
    sums = values.sum(axis=1, dtype=np.float64)
    if np.abs(sums - 1).max() <= SUM_TOLERANCE:
        return "probabilities"
    raise PredictionError(
        f"{name}: all entries lie in 0..1, but rows sum to {sums.min():g}..{sums.max():g}: "
        "these may be logits or unnormalised probabilities. Normalise them, or pass labels."
    )
