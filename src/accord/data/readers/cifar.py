"""CIFAR-10 and CIFAR-100, in the binary or the Python layout."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord.data.cifar_classes import CIFAR10_NAMES, CIFAR100_NAMES, CIFAR100_SUPERCLASSES
from accord.data.dataset import Dataset, Split
from accord.data.readers.locate import Spellings, find_all, missing, need_folder
from accord.data.readers.published import check_checksums, check_counts
from accord.data.unpickle import load_pickle
from accord.errors import ChoiceError, SourceError

Batch: TypeAlias = tuple[NDArray[np.uint8], dict[str, NDArray[np.int64]]]  # images, labels by name

_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class _Layout:
    folder: str
    train: tuple[str, ...]
    test: str
    checksums: dict[str, str]
    read: Callable[[Path, tuple[str, ...]], Batch]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.train, self.test)


def read_cifar10(path: Path, *, complete: bool = True, verify: bool = False) -> Dataset:
    """Read CIFAR-10 from `cifar-10-batches-bin`, `cifar-10-batches-py` or the folder above.

    Args:
        path: the folder.
        complete: refuse other than 50,000 training and 10,000 test images.
        verify: compare each file with its published checksum.
    """
    layout, folder = _find_layout(path, _CIFAR10, "CIFAR-10")
    train, test = _read_splits(layout, folder, ("labels",), verify)
    return _as_dataset("cifar10", folder, CIFAR10_NAMES, train, test, "labels", complete)


def read_cifar100(
    path: Path, *, labels: str = "fine", complete: bool = True, verify: bool = False
) -> Dataset:
    """Read CIFAR-100 from `cifar-100-binary`, `cifar-100-python` or the folder above.

    Args:
        path: the folder.
        labels: "fine" for the 100 classes, "coarse" for the 20 superclasses.
        complete: refuse other than 50,000 training and 10,000 test images.
        verify: compare each file with its published checksum (Python layout alone).
    """
    names = {"fine": CIFAR100_NAMES, "coarse": CIFAR100_SUPERCLASSES}
    if labels not in names:
        raise ChoiceError(f"the labels of CIFAR-100 are 'fine' or 'coarse'; got {labels!r}.")
    layout, folder = _find_layout(path, _CIFAR100, "CIFAR-100")
    train, test = _read_splits(layout, folder, ("coarse_labels", "fine_labels"), verify)
    column = f"{labels}_labels"
    return _as_dataset("cifar100", folder, names[labels], train, test, column, complete)


def _find_layout(path: Path, layouts: tuple[_Layout, ...], what: str) -> tuple[_Layout, Path]:
    need_folder(path, what=what)
    for layout in layouts:
        for folder in (path, path / layout.folder):
            if (folder / layout.test).is_file():
                return layout, folder
    tried = [name for layout in layouts for name in (layout.test, f"{layout.folder}/{layout.test}")]
    raise missing(path, tried, what=what)


def _read_splits(
    layout: _Layout, folder: Path, columns: tuple[str, ...], verify: bool
) -> tuple[Batch, Batch]:
    files = find_all(folder, layout.names, what="all batches")
    if verify:
        check_checksums(files, layout.checksums)
    batches = [layout.read(file, columns) for file in files]
    return _join(batches[:-1]), batches[-1]


def _join(batches: list[Batch]) -> Batch:
    images = np.concatenate([images for images, _ in batches])
    names = batches[0][1]
    return images, {name: np.concatenate([labels[name] for _, labels in batches]) for name in names}


def _as_dataset(
    name: str,
    folder: Path,
    class_names: tuple[str, ...],
    train: Batch,
    test: Batch,
    column: str,
    complete: bool,
) -> Dataset:
    if complete:
        check_counts(folder, (len(train[0]), len(test[0])), (50_000, 10_000))
    splits = [Split(images, labels[column]) for images, labels in (train, test)]
    return Dataset(name, "image", class_names, train=splits[0], test=splits[1])


def _read_binary(path: Path, columns: tuple[str, ...]) -> Batch:
    try:
        data = np.fromfile(path, np.uint8)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error
    width = len(columns) + _PIXELS
    if not data.size:
        raise SourceError(f"{path}: is empty. Was it copied or unpacked to its end?")
    if data.size % width:
        raise SourceError(
            f"{path}: holds {data.size:,} bytes, which is no multiple of {width:,}: "
            f"{len(columns)} for the label and {_PIXELS:,} pixels. Is it cut off?"
        )
    rows = data.reshape(-1, width)
    labels = {name: rows[:, at].astype(np.int64) for at, name in enumerate(columns)}
    return rows[:, len(columns) :].reshape(-1, 3, 32, 32), labels


def _read_python(path: Path, columns: tuple[str, ...]) -> Batch:
    batch: Any = load_pickle(path)
    names = {"data", *columns}
    if not isinstance(batch, dict) or not names <= batch.keys():
        raise SourceError(f"{path}: not a batch of CIFAR: it must hold {', '.join(sorted(names))}.")
    pixels = np.asarray(batch["data"])
    if pixels.dtype != np.uint8 or pixels.ndim != 2 or pixels.shape[1] != _PIXELS:
        raise SourceError(
            f"{path}: data must be uint8 of shape (sample, {_PIXELS}); "
            f"got {pixels.dtype} of shape {pixels.shape}."
        )
    labels = {name: np.asarray(batch[name], np.int64) for name in columns}
    return pixels.reshape(-1, 3, 32, 32), labels


_CIFAR10: Final = (
    _Layout(
        "cifar-10-batches-bin",
        tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
        "test_batch.bin",
        {
            "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
            "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
            "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
            "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
            "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
            "test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c",
        },
        _read_binary,
    ),
    _Layout(
        "cifar-10-batches-py",
        tuple(f"data_batch_{number}" for number in range(1, 6)),
        "test_batch",
        {
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
            "test_batch": "40351d587109b95175f43aff81a1287e",
        },
        _read_python,
    ),
)
_CIFAR100: Final = (
    _Layout("cifar-100-binary", ("train.bin",), "test.bin", {}, _read_binary),
    _Layout(
        "cifar-100-python",
        ("train",),
        "test",
        {"train": "16019d7e3df5f24257cddd939b257f8d", "test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
        _read_python,
    ),
)


def _needs(layouts: tuple[_Layout, ...]) -> tuple[Spellings, ...]:
    return tuple(
        (*names, *(f"{one.folder}/{name}" for one, name in zip(layouts, names, strict=True)))
        for names in zip(*(layout.names for layout in layouts), strict=True)
    )


CIFAR10_NEEDS: Final = _needs(_CIFAR10)
CIFAR100_NEEDS: Final = _needs(_CIFAR100)
