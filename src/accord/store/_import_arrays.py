"""Read predictions from arrays with named axes, in npz and npy files."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import load_npy, load_npz
from accord.errors import ChoiceError, PredictionError, SourceError
from accord.store._import_rows import Named, Source, by_network
from accord.store._record_format import AXES, LABELS, PROBABILITIES, SAMPLE_ARRAYS

Axes = tuple[str, ...]

ONE_NETWORK: Final = re.compile(r"(?:network|arr)_?(?P<network>\d+)")  # the name of its array
SHAPES: Final = {"network": "[^/]+?", "epoch": r"\d+(?:\.\d+)?"}  # in the names of files
TABLES: Final = (PROBABILITIES, "logits")


@dataclass(frozen=True)
class ImportOptions:
    pattern: str | None = None
    axes: Axes | None = None
    key: str | None = None


def parse_axes(axes: str | Iterable[str] | None) -> Axes | None:
    """Parse the names of axes.

    >>> parse_axes("sample, network,epoch")
    ('sample', 'network', 'epoch')
    """
    if axes is None:
        return None
    names = [one.strip() for one in (axes.split(",") if isinstance(axes, str) else axes)]
    if not set(names) <= set(AXES) or len(set(names)) < len(names) or "sample" not in names:
        raise ChoiceError(
            f"axes must name the axes of the array in their order: sample, and any of network, "
            f"epoch and class, each once; got {','.join(names)!r}. Example: sample,network,epoch"
        )
    return tuple(names)


def arrange(name: str, values: NDArray[Any], axes: Axes | None, wanted: Axes) -> NDArray[Any]:
    """Move the axes of an array to the order `wanted` and class, and add those that it lacks."""
    axes = wanted if axes is None else axes
    if values.ndim == len(axes) + 1 and "class" not in axes:
        axes = (*axes, "class")
    surplus = [axis for axis in axes if axis not in (*wanted, "class")]
    if surplus:
        raise ChoiceError(
            f"{name}: is of a single {surplus[0]}; leave {surplus[0]} out of the axes"
        )
    if values.ndim != len(axes) or 0 in values.shape:
        raise SourceError(
            f"{name} must have axes ({', '.join(axes)}), none empty; got shape {values.shape}. "
            "Name the axes that it has: --axes sample,network,epoch or axes=…; "
            "for probabilities or logits with class"
        )
    order = [axis for axis in (*wanted, "class") if axis in axes]
    moved = values.transpose([axes.index(axis) for axis in order])
    for position, axis in enumerate(wanted):
        if axis not in axes:
            moved = np.expand_dims(moved, position)
    return moved


def rows_of(name: str, values: NDArray[Any], axes: Axes | None) -> list[list[Named]]:
    """Split an array into named rows by network and epoch."""
    moved = arrange(name, values, axes, AXES[:3])
    return [epochs_of(f"{name}, network {i}", rows, None) for i, rows in enumerate(moved)]


def epochs_of(name: str, values: NDArray[Any], axes: Axes | None) -> list[Named]:
    """Split an array of one network into named rows by epoch."""
    moved = arrange(name, values, axes, AXES[1:3])
    return [(f"{name}, epoch {epoch}", row) for epoch, row in enumerate(moved)]


def read_array(path: Path, options: ImportOptions) -> Source:
    return Source(rows_of("the array", load_npy(path), options.axes))


def read_npz(path: Path, options: ImportOptions) -> Source:
    """Read predictions and what is known about samples from an npz file."""
    try:
        arrays = load_npz(path)
    except SourceError as error:
        raise SourceError(
            f"{error}. Write it with np.savez(file, labels=labels, truth=truth), "
            "with arrays of numbers or text."
        ) from error
    return choose_arrays(arrays, options)


def choose_arrays(arrays: Mapping[str, NDArray[Any]], options: ImportOptions) -> Source:
    """Find predictions, and what is known about samples, among named arrays."""
    arrays = dict(arrays)
    info: dict[str, Any] = {name: arrays.pop(name) for name in SAMPLE_ARRAYS if name in arrays}
    split = arrays.pop("split", np.array("test"))
    if split.shape or split.dtype.kind != "U" or not str(split):
        raise PredictionError(
            'split must be a name, as in np.savez(file, labels=labels, split="train"); '
            f"got {split.dtype} of shape {split.shape}"
        )
    source = _choose(arrays, options)
    return replace(source, sample_info=info, split=str(split))


def _choose(arrays: dict[str, NDArray[Any]], options: ImportOptions) -> Source:
    key, axes = options.key, options.axes
    pattern = compile_pattern(key, "network") if key and "{" in key else ONE_NETWORK
    by_name = {found["network"]: one for one in arrays if (found := pattern.fullmatch(one))}
    if (pattern is not ONE_NETWORK and by_name) or (
        not key and len(by_name) > 1 and not {LABELS, *TABLES} & arrays.keys()
    ):
        return by_network(
            {name: epochs_of(one, arrays[one], axes) for name, one in by_name.items()}
        )
    key = find_key(arrays, key)
    if key in TABLES and "class" not in (axes or ()):
        axes = (*(axes or AXES[:3]), "class")
    beside = arrays.get(PROBABILITIES) if key == LABELS and options.key is None else None
    return Source(
        rows_of(key, arrays[key], axes),
        probabilities=None if beside is None else arrange(PROBABILITIES, beside, axes, AXES[:3]),
        kind=key if key in TABLES else None,
    )


def find_key(arrays: Mapping[str, NDArray[Any]], key: str | None) -> str:
    if key is None:
        known = [name for name in (LABELS, *TABLES) if name in arrays]
        key = known[0] if known else next(iter(arrays)) if len(arrays) == 1 else LABELS
    if key not in arrays:
        have = [f"{name} {values.shape}" for name, values in arrays.items()]
        raise SourceError(
            f"no array named {key!r}; it has {', '.join(have) or 'nothing'}. Choose one with "
            "--key NAME, one for each network with --key 'seed_{network}', or write it "
            "under that name: np.savez(file, labels=labels)"
        )
    return key


def compile_pattern(pattern: str, *fields: str) -> re.Pattern[str]:
    """Compile the pattern of a name, such as `seed{network}/epoch_{epoch}.npy`.

    >>> compile_pattern("s{network}/{network}-{epoch}.npy", "network", "epoch").fullmatch(
    ...     "s1/1-20.npy"
    ... ).groupdict()
    {'network': '1', 'epoch': '20'}
    """
    names = re.findall(r"\{([^{}]*)\}", pattern)
    listed = [f"{{{one}}}" for one in fields]
    for name in names:
        if name not in fields:
            raise ChoiceError(
                f"{pattern!r}: a pattern may contain {' and '.join(listed)} and *; got {{{name}}}"
            )
    if not names:
        raise ChoiceError(
            f"{pattern!r}: a pattern must contain {' or '.join(listed)}. "
            "Example: 'seed{network}/epoch_{epoch}.npy'"
        )
    expression = re.escape(pattern).replace(r"\*", "[^/]*")
    for name in set(names):
        mark = re.escape(f"{{{name}}}")
        expression = expression.replace(mark, f"(?P<{name}>{SHAPES[name]})", 1)
        expression = expression.replace(mark, f"(?P={name})")
    return re.compile(expression)
