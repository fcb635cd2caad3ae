"""Import records from arrays and from files of other programs."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import cause_of
from accord.errors import ChoiceError, PredictionError, SourceError
from accord.store._import_arrays import (
    ImportOptions,
    choose_arrays,
    epochs_of,
    parse_axes,
    read_array,
    read_npz,
    rows_of,
)
from accord.store._import_folders import (
    find_dynamics,
    find_npy_files,
    read_dynamics,
    read_files,
    read_npy_files,
)
from accord.store._import_rows import Source, reader_of
from accord.store._import_tables import AUM_FILE, find_aum, read_aum, read_votes
from accord.store._packed import write_packed
from accord.store._record_format import SAMPLE_ARRAYS
from accord.store._record_reader import ArrayReader
from accord.store._storage import CountProgress
from accord.store._validation import to_votes

FORMATS: Final[dict[str, Callable[[Path, ImportOptions], Source]]] = {
    "npz": read_npz,
    "npy": read_array,
    "files": read_files,
    "npy-folder": partial(read_npy_files, test=True),
    "npy-folder-train": partial(read_npy_files, test=False),
    **{kind: partial(read_votes, ending=f".{kind}") for kind in ("csv", "tsv", "parquet")},
    "aum": read_aum,
    "cartography": read_dynamics,
}
FOLDERS: Final[dict[str, Callable[[Path], Collection[object]]]] = {
    "npy-folder": partial(find_npy_files, test=True),
    "npy-folder-train": partial(find_npy_files, test=False),
    "cartography": find_dynamics,
    "aum": find_aum,
}
READS_AXES: Final = ("npz", "npy", "files")
LAYOUTS: Final = f"""\
These layouts can be imported:
  npz, npy     np.savez("logs.npz", labels=labels), axes network, epoch, sample; other axes or
               probabilities: accord import logs.npz RECORD --axes sample,network,epoch --key NAME
  npz          one array per network, network_0, network_1 ..., axes epoch, sample
  npy files    accord import logs RECORD --pattern 'seed{{network}}/epoch_{{epoch}}.npy'
  csv, parquet a header network,epoch,sample,label and one line per vote
  aum          {AUM_FILE}
  cartography  training_dynamics/dynamics_epoch_0.jsonl ..."""


def import_record(
    source: str | os.PathLike[str],
    record: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    pattern: str | None = None,
    axes: str | Iterable[str] | None = None,
    key: str | None = None,
    classes: int | None = None,
    progress: CountProgress | None = None,
    **sample_info: object,
) -> str:
    """Import a file or folder as a packed record.

    Args:
        source: a file or a folder.
        record: the output path, which must not exist.
        format: one of `FORMATS`. By default this follows from the file's ending or the folder's
            files.

            - `npz`, `npy`: arrays of labels, probabilities or logits; an npz may also hold
              `truth`, `given`, `ids`, `class_names` and `split`;
            - `files`: npy or npz files named by `pattern`;
            - `npy-folder`: `resnet<i>/test_resnet_<i>_<epoch>.npy`, one file per network and
              epoch; `npy-folder-train`: the same without `test_`;
            - `csv`, `tsv`, `parquet`: one row per vote, with columns `network`, `epoch`, `sample`
              and `label`;
            - `aum`: `full_aum_records.csv` of the package aum;
            - `cartography`: `training_dynamics/dynamics_epoch_<e>.jsonl`, logits by guid.
        pattern: the names of files in a folder, such as `seed{network}/epoch_{epoch}.npy`.
        axes: the axes of the arrays in their order, such as "sample,network,epoch,class".
        key: the name of the array in an npz file, or of one for each network: `seed_{network}`.
        classes: the number of classes, by default derived from the source.
        progress: called with samples done and the total.
        **sample_info: `truth`, `given`, `ids`, `class_names`, instead of those in the source.

    Returns:
        A description of what was read.

    Raises:
        SourceError: the source is missing, damaged or incomplete. Nothing is written.
        ChoiceError: the format is unknown, or the folder has files of several formats.
        RecordExists: something exists at `record`.
    """
    path, arrays = Path(source), _sample_arrays("import_record", sample_info)
    options = ImportOptions(pattern, parse_axes(axes), key)
    try:
        name = _find_format(path, format, options)
        if not path.exists():
            raise SourceError(f"{path}: no such file")
        found = FORMATS[name](path, options)
        reader, read = reader_of(found, classes=classes, name=str(path), **arrays)
    except OSError as error:
        raise SourceError(f"{path}: cannot read: {cause_of(error)}") from error
    except (PredictionError, SourceError) as error:
        text = str(error)
        raise SourceError(text if text.startswith(str(path)) else f"{path}: {text}") from error
    write_packed(reader, record, progress=progress)
    return read


def import_arrays(
    record: str | os.PathLike[str],
    networks: Iterable[Iterable[object]],
    *,
    axes: str | Iterable[str] | None = None,
    classes: int | None = None,
    split: str = "test",
    **sample_info: object,
) -> str:
    """Import arrays in memory as a packed record.

    Args:
        record: the output path, which must not exist.
        networks: for each network, one array per epoch: labels (sample,), or probabilities or
            logits (sample, class); all of one kind. A single array with axes in the order
            network, epoch, sample (, class) is accepted too. A vote is missing where a masked
            array masks it, or where a label is NaN.
        axes: the axes of a single array in another order, such as "sample,network,epoch"; without
            network, those of each array in a list.
        classes: the number of classes, by default derived from the arrays.
        split: the part of the data that the samples come from.
        **sample_info: `truth`, `given`, `ids`, `class_names`, as for `Recorder`.

    Returns:
        A description of what was read.

    Raises:
        PredictionError: an array is invalid, or has another shape or kind than the first.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/record"
    >>> import_arrays(path, [[[0, 1], [0, 1]], [[0, 0], [0, 1]]], truth=[0, 1])
    'labels of 2 networks, 2 epochs, 2 samples, 2 classes'
    """
    arrays, named = _sample_arrays("import_arrays", sample_info), parse_axes(axes)
    if named and "network" in named:
        rows = rows_of("the array", to_votes(networks), named)
    elif named:
        rows = [epochs_of(f"network {i}", to_votes(one), named) for i, one in enumerate(networks)]
    else:
        rows = [
            [(f"network {i}, epoch {epoch}", to_votes(row)) for epoch, row in enumerate(one)]
            for i, one in enumerate(networks)
        ]
    reader, read = reader_of(Source(rows, split=split), classes=classes, name="arrays", **arrays)
    write_packed(reader, record)
    return read


def reader_from_arrays(
    arrays: Mapping[str, NDArray[Any]],
    *,
    classes: int | None,
    name: str = "arrays",
    split: str = "test",
) -> ArrayReader:
    """Build a reader from a mapping of named arrays."""
    source = choose_arrays({"split": np.array(split), **arrays}, ImportOptions())
    return reader_of(source, classes=classes, name=name)[0]


def _sample_arrays(function: str, sample_info: Mapping[str, object]) -> dict[str, object]:
    unexpected = sorted(sample_info.keys() - set(SAMPLE_ARRAYS))
    if unexpected:
        raise TypeError(f"{function} got an unexpected argument {unexpected[0]!r}")
    return {name: value for name, value in sample_info.items() if value is not None}


def _find_format(path: Path, name: str | None, options: ImportOptions) -> str:
    names = [name] if name else ["files"] if options.pattern else _formats_of(path)
    if len(names) != 1 or names[0] not in FORMATS:
        problem = f"could be read as {' or '.join(names)}" if names else "has no known files"
        if len(names) == 1:
            problem = f"no importer for {names[0]!r}"
        raise ChoiceError(
            f"{path}: {problem}; choose one with --format: {', '.join(FORMATS)}. {LAYOUTS}"
        )
    if (options.pattern is None) == (names[0] == "files"):
        raise ChoiceError(
            f"{path}: the format files needs --pattern, and no other takes it. Example: "
            "--pattern 'seed{network}/epoch_{epoch}.npy'"
        )
    if (options.axes or options.key) and names[0] not in READS_AXES:
        raise ChoiceError(f"{path}: {names[0]} has neither axes nor keys: leave out --axes, --key")
    return names[0]


def _formats_of(path: Path) -> list[str]:
    if path.is_dir():
        return [name for name, find in FOLDERS.items() if find(path)]
    if not path.suffix and not path.exists():
        raise SourceError(f"{path}: no such file or folder")
    ending = path.suffix.removeprefix(".")
    return ["aum"] if ending == "csv" and find_aum(path) else [ending]
