"""Read predictions from arrays in files: npz, npy, and folders of them."""

import glob
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import load_npy, load_npz
from accord.errors import ChoiceError, PredictionError, SourceError
from accord.store._import_rows import Named, Source, by_network, progress_of
from accord.store._layout import AXES, LABELS, PROBABILITIES, SAMPLE_ARRAYS

Axes = tuple[str, ...]
Files = Mapping[str, Mapping[float, Path]]  # network -> epoch -> file

ONE_NETWORK: Final = re.compile(r"(?:network|arr)_?(?P<network>\d+)")  # the name of its array
TABLES: Final = (PROBABILITIES, "logits")


@dataclass(frozen=True)
class ImportOptions:
    """How to read a source."""

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
    return [
        [(f"{name}, network {number}, epoch {epoch}", row) for epoch, row in enumerate(rows)]
        for number, rows in enumerate(moved)
    ]


def epochs_of(name: str, values: NDArray[Any], axes: Axes | None) -> list[Named]:
    """Split an array of one network into named rows by epoch."""
    moved = arrange(name, values, axes, AXES[1:3])
    return [(f"{name}, epoch {epoch}", row) for epoch, row in enumerate(moved)]


def read_array(path: Path, options: ImportOptions) -> Source:
    """Read the predictions of all networks from an npy file."""
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
    """Choose the arrays of predictions: one of all networks, or one for each."""
    key, axes = options.key, options.axes
    pattern = compile_pattern(key, "network") if key and "{" in key else ONE_NETWORK
    by_name = {found["network"]: one for one in arrays if (found := pattern.fullmatch(one))}
    if (pattern is not ONE_NETWORK and by_name) or (
        not key and len(by_name) > 1 and not {LABELS, *TABLES} & arrays.keys()
    ):
        return by_network(
            {name: epochs_of(one, arrays[one], axes) for name, one in by_name.items()}
        )
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
    if key in TABLES and "class" not in (axes or ()):
        axes = (*(axes or AXES[:3]), "class")
    beside = arrays.get(PROBABILITIES) if key == LABELS and options.key is None else None
    return Source(
        rows_of(key, arrays[key], axes),
        probabilities=None if beside is None else arrange(PROBABILITIES, beside, axes, AXES[:3]),
        kind=key if key in TABLES else None,
    )


def compile_pattern(pattern: str, *fields: str) -> re.Pattern[str]:
    """Compile the pattern of a name, such as `seed{network}/epoch_{epoch}.npy`.

    >>> compile_pattern("s{network}/{network}-{epoch}.npy", "network", "epoch").fullmatch(
    ...     "s1/1-20.npy"
    ... ).groupdict()
    {'network': '1', 'epoch': '20'}
    """
    shapes = {"network": "[^/]+?", "epoch": r"\d+(?:\.\d+)?"}
    expression, seen = "", set()
    for part in re.split(r"(\{[^{}]*\}|\*)", pattern):
        name = part[1:-1] if part.startswith("{") else ""
        if part.startswith("{") and name not in fields:
            listed = " and ".join(f"{{{one}}}" for one in fields)
            raise ChoiceError(f"{pattern!r}: a pattern may contain {listed} and *; got {part}")
        if name:
            expression += f"(?P={name})" if name in seen else f"(?P<{name}>{shapes[name]})"
            seen.add(name)
        else:
            expression += "[^/]*" if part == "*" else re.escape(part)
    if not seen:
        raise ChoiceError(
            f"{pattern!r}: a pattern must contain {' or '.join(f'{{{one}}}' for one in fields)}. "
            "Example: 'seed{network}/epoch_{epoch}.npy'"
        )
    return re.compile(expression)


def read_files(folder: Path, options: ImportOptions) -> Source:
    """Read predictions from npy and npz files whose names match a pattern."""
    if not folder.is_dir():
        raise SourceError(f"{folder}: --pattern names files in a folder; this is a file")
    given = (options.pattern or "").removeprefix("./")
    pattern = compile_pattern(given, "network", "epoch")
    paths = glob.escape(re.sub(r"\{\w*\}|\*", "*", given)).replace("[*]", "*")
    files = find_files(folder, pattern, re.sub(r"\*+", "*", paths))
    if not files:
        some = [file.relative_to(folder).as_posix() for file in sorted(folder.rglob("*.np[yz]"))]
        have = f"{', '.join(some[:2])}{', …' * (len(some) > 2)}" if some else "no .npy or .npz file"
        raise SourceError(f"{folder}: no file is named {given!r}; it has {have}")
    epochs = sorted(set().union(*files.values()))
    for network, found in files.items():
        missing = [epoch for epoch in epochs if epoch not in found]
        if missing:
            raise SourceError(
                f"{folder}: network {network} lacks epoch {missing[0]:g}, which others have "
                f"({next(iter(found.values()))} is there). Was the run interrupted?"
            )
    by_epoch = "epoch" in pattern.groupindex
    networks = {
        network: [
            row for epoch in epochs for row in _read_file(found[epoch], options, one_epoch=by_epoch)
        ]
        for network, found in files.items()
    }
    progress = progress_of(epochs) if by_epoch else None
    return by_network(networks, progress=progress, sample_info=sample_files(folder))


def find_files(folder: Path, pattern: re.Pattern[str], paths: str) -> Files:
    """Find the files of each network and epoch; an epoch that is not named is 0."""
    files: dict[str, dict[float, Path]] = {}
    for file in sorted(folder.glob(paths)):
        found = pattern.fullmatch(file.relative_to(folder).as_posix())
        if found is None or not file.is_file() or _holds_samples(file, folder):
            continue
        names = found.groupdict()
        number, epoch = names.get("network", "0"), float(names.get("epoch") or 0)
        network = str(int(number)) if number.isdecimal() else number
        other = files.setdefault(network, {}).setdefault(epoch, file)
        if other != file:
            raise SourceError(
                f"{file}: has the same network {network} and epoch {epoch:g} as {other}. "
                "Rename or remove one; import networks of several kinds one kind at a time."
            )
    return files


def sample_files(folder: Path) -> dict[str, NDArray[Any]]:
    """Read what is known about the samples from `truth.npy`, `given.npy` and so on."""
    files = {name: folder / f"{name}.npy" for name in SAMPLE_ARRAYS}
    return {name: load_npy(file) for name, file in files.items() if file.exists()}


def _holds_samples(file: Path, folder: Path) -> bool:
    return file.parent == folder and file.suffix == ".npy" and file.stem in SAMPLE_ARRAYS


def _read_file(file: Path, options: ImportOptions, *, one_epoch: bool) -> list[Named]:
    if file.suffix == ".npz":
        arrays = load_npz(file)
        key = options.key or (next(iter(arrays)) if len(arrays) == 1 else LABELS)
        if key not in arrays:
            raise SourceError(f"{file}: no array named {key!r}; it has {', '.join(arrays)}: --key")
        values = arrays[key]
    else:
        values = load_npy(file)
    if one_epoch:
        return [(str(file), arrange(str(file), values, options.axes, AXES[2:3]))]
    return epochs_of(str(file), values, options.axes)
