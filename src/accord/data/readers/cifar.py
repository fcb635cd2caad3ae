"""Readers of CIFAR-10, CIFAR-100, CIFAR-10N and CIFAR-100N."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord.data._dataset import Dataset, Labels, Split
from accord.data._label_files import read_arrays
from accord.data._pickle import load_pickle
from accord.data.readers._find_files import (
    Spellings,
    check_checksums,
    check_counts,
    missing,
    need_folder,
)
from accord.errors import ChoiceError, SourceError, suggest

CIFAR10_NAMES: Final = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_BY_SUPERCLASS: Final = {
    "aquatic_mammals": "beaver dolphin otter seal whale",
    "fish": "aquarium_fish flatfish ray shark trout",
    "flowers": "orchid poppy rose sunflower tulip",
    "food_containers": "bottle bowl can cup plate",
    "fruit_and_vegetables": "apple mushroom orange pear sweet_pepper",
    "household_electrical_devices": "clock keyboard lamp telephone television",
    "household_furniture": "bed chair couch table wardrobe",
    "insects": "bee beetle butterfly caterpillar cockroach",
    "large_carnivores": "bear leopard lion tiger wolf",
    "large_man-made_outdoor_things": "bridge castle house road skyscraper",
    "large_natural_outdoor_scenes": "cloud forest mountain plain sea",
    "large_omnivores_and_herbivores": "camel cattle chimpanzee elephant kangaroo",
    "medium_mammals": "fox porcupine possum raccoon skunk",
    "non-insect_invertebrates": "crab lobster snail spider worm",
    "people": "baby boy girl man woman",
    "reptiles": "crocodile dinosaur lizard snake turtle",
    "small_mammals": "hamster mouse rabbit shrew squirrel",
    "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
    "vehicles_1": "bicycle bus motorcycle pickup_truck train",
    "vehicles_2": "lawn_mower rocket streetcar tank tractor",
}
CIFAR100_SUPERCLASSES: Final = tuple(_BY_SUPERCLASS)  # numbered alphabetically, like the classes
CIFAR100_NAMES: Final = tuple(sorted(" ".join(_BY_SUPERCLASS.values()).split()))
_SUPERCLASS_OF: Final = {
    name: number for number, names in enumerate(_BY_SUPERCLASS.values()) for name in names.split()
}
CIFAR100_SUPERCLASS: Final = np.array(  # (class,) -> superclass
    [_SUPERCLASS_OF[name] for name in CIFAR100_NAMES]
)
CIFAR100_SUPERCLASS.flags.writeable = False


Batch: TypeAlias = tuple[NDArray[np.uint8], dict[str, NDArray[np.int64]]]  # images, labels by name

_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class _Layout:
    folder: str
    train: tuple[str, ...]
    test: str
    checksums: dict[str, str]
    read: Callable[[Path, tuple[str, ...]], Batch]


def read_cifar10(path: Path, *, complete: bool = True, verify: bool = False) -> Dataset:
    """Read the CIFAR-10 data set in its binary or Python format.

    Args:
        path: `cifar-10-batches-bin`, `cifar-10-batches-py` or the folder above.
        complete: require all 50,000 training and 10,000 test images.
        verify: compare each file with its published checksum.
    """
    layout, folder = _find_layout(path, _CIFAR10, "CIFAR-10")
    train, test = _read_splits(layout, folder, ("labels",), "labels", complete, verify)
    return Dataset("cifar10", "image", CIFAR10_NAMES, train=train, test=test)


def read_cifar100(
    path: Path, *, labels: str = "fine", complete: bool = True, verify: bool = False
) -> Dataset:
    """Read the CIFAR-100 data set in its binary or Python format.

    Args:
        path: `cifar-100-binary`, `cifar-100-python` or the folder above.
        labels: "fine" for the 100 classes, "coarse" for the 20 superclasses.
        complete: require all 50,000 training and 10,000 test images.
        verify: compare each file with its published checksum (Python layout alone).
    """
    names = {"fine": CIFAR100_NAMES, "coarse": CIFAR100_SUPERCLASSES}
    if labels not in names:
        raise ChoiceError(f"the labels of CIFAR-100 are 'fine' or 'coarse'; got {labels!r}.")
    layout, folder = _find_layout(path, _CIFAR100, "CIFAR-100")
    columns = ("coarse_labels", "fine_labels")
    train, test = _read_splits(layout, folder, columns, f"{labels}_labels", complete, verify)
    return Dataset("cifar100", "image", names[labels], train=train, test=test)


def _find_layout(path: Path, layouts: tuple[_Layout, ...], what: str) -> tuple[_Layout, Path]:
    need_folder(path, what=what)
    for layout in layouts:
        for folder in (path, path / layout.folder):
            if (folder / layout.test).is_file():
                return layout, folder
    tried = [name for layout in layouts for name in (layout.test, f"{layout.folder}/{layout.test}")]
    raise missing(path, tried, what=what)


def _read_splits(
    layout: _Layout,
    folder: Path,
    columns: tuple[str, ...],
    column: str,
    complete: bool,
    verify: bool,
) -> tuple[Split, Split]:
    files = [folder / name for name in (*layout.train, layout.test)]
    if absent := [file.name for file in files if not file.exists()]:
        raise missing(folder, absent, what="all batches", all_of=True)
    if verify:
        check_checksums(files, layout.checksums)
    *train, (test_images, test_labels) = [layout.read(file, columns) for file in files]
    images = np.concatenate([images for images, _ in train])
    labels = np.concatenate([labels[column] for _, labels in train])
    if complete:
        check_counts(folder, (len(images), len(test_images)), (50_000, 10_000))
    return Split(images, labels), Split(test_images, test_labels[column])


def _read_binary(path: Path, columns: tuple[str, ...]) -> Batch:
    try:
        data = np.fromfile(path, np.uint8)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error
    width = len(columns) + _PIXELS
    if not data.size:
        raise SourceError(f"{path}: is empty. Was it copied or unpacked completely?")
    if data.size % width:
        raise SourceError(
            f"{path}: holds {data.size:,} bytes, not a multiple of {width:,} "
            f"({len(columns)} for the labels and {_PIXELS:,} pixels). Is it truncated?"
        )
    rows = data.reshape(-1, width)
    labels = {name: rows[:, at].astype(np.int64) for at, name in enumerate(columns)}
    return rows[:, len(columns) :].reshape(-1, 3, 32, 32), labels


def _read_python(path: Path, columns: tuple[str, ...]) -> Batch:
    batch: Any = load_pickle(path)
    names = {"data", *columns}
    if not isinstance(batch, dict) or not names <= batch.keys():
        raise SourceError(f"{path}: not a batch of CIFAR, which holds {', '.join(sorted(names))}.")
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
    files = zip(*((*layout.train, layout.test) for layout in layouts), strict=True)
    return tuple(
        (*names, *(f"{one.folder}/{name}" for one, name in zip(layouts, names, strict=True)))
        for names in files
    )


CIFAR10_NEEDS: Final = _needs(_CIFAR10)
CIFAR100_NEEDS: Final = _needs(_CIFAR100)


_CIFAR10N = {
    "aggre": "aggre_label",
    "worse": "worse_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
}
_CIFAR100N = {"noisy": "noisy_label", "noisy_coarse": "noisy_coarse_label"}
_HUMAN10: Final = ("CIFAR-10_human.pt", "CIFAR-10_human.npz", "cifar10n_labels.npz")
_HUMAN100: Final = ("CIFAR-100_human.pt", "CIFAR-100_human.npz", "cifar100n_labels.npz")


def read_cifar10n(
    path: Path, *, labels: str = "worse", labels_file: str | None = None, complete: bool = True
) -> Dataset:
    """Read the CIFAR-10N data set, with human labels for training.

    Args:
        path: the CIFAR-10 folder, as for `cifar10`, whose labels are the truth.
        labels: "aggre", "worse", "random1", "random2" or "random3".
        labels_file: the published `CIFAR-10_human.pt`, or an .npz of the same arrays. By
            default searched in `path` and the folder above.
        complete: require all 50,000 training and 10,000 test images.
    """
    base = read_cifar10(path, complete=complete)
    column = _choose(labels, _CIFAR10N)
    file = _find_labels(path, labels_file, _HUMAN10)
    return _with_labels(base, "cifar10n", file, column, "clean_label")


def read_cifar100n(
    path: Path, *, labels: str = "noisy", labels_file: str | None = None, complete: bool = True
) -> Dataset:
    """Read the CIFAR-100N data set, with human labels for training.

    Args:
        path: the CIFAR-100 folder, as for `cifar100`, whose labels are the truth.
        labels: "noisy" for the 100 classes, "noisy_coarse" for the 20 superclasses.
        labels_file: `CIFAR-100_human.pt`, as for `cifar10n`.
        complete: require all 50,000 training and 10,000 test images.
    """
    column = _choose(labels, _CIFAR100N)
    coarse = column == "noisy_coarse_label"
    base = read_cifar100(path, labels="coarse" if coarse else "fine", complete=complete)
    file = _find_labels(path, labels_file, _HUMAN100)
    clean = "clean_coarse_label" if coarse else "clean_label"
    return _with_labels(base, "cifar100n", file, column, clean)


def _choose(name: str, columns: dict[str, str]) -> str:
    if name not in columns and name not in columns.values():
        raise ChoiceError(f"no labels are called {name!r}. {suggest(name, columns)}")
    return columns.get(name, name)


def _find_labels(path: Path, labels_file: str | None, names: tuple[str, ...]) -> Path:
    if labels_file is not None:
        return Path(labels_file).expanduser()
    for folder in (path, path.parent):
        for name in names:
            if (folder / name).is_file():
                return folder / name
    raise missing(path, _beside(names), what="the file of human labels (option labels_file)")


def _beside(names: tuple[str, ...]) -> Spellings:
    return (*names, *(f"../{name}" for name in names))


def _with_labels(base: Dataset, name: str, file: Path, column: str, clean: str) -> Dataset:
    arrays = read_arrays(file)
    if absent := [each for each in (column, clean) if each not in arrays]:
        raise SourceError(
            f"{file}: holds no {' and no '.join(absent)}, but {', '.join(arrays) or 'nothing'}."
        )
    given, truth = (_as_labels(file, arrays[each], len(base.train)) for each in (column, clean))
    if not np.array_equal(truth, base.train.labels):
        wrong = int((truth != base.train.labels).sum())
        raise SourceError(
            f"{file}: {wrong:,} of {len(truth):,} clean labels differ from CIFAR's. "
            "The labels must be in the order of CIFAR's files."
        )
    return replace(base, name=name, train=replace(base.train, labels=given, truth=truth))


def _as_labels(file: Path, values: NDArray[Any], samples: int) -> Labels:
    if values.shape != (samples,) or not np.issubdtype(values.dtype, np.integer):
        raise SourceError(
            f"{file}: expected one integer for each of {samples:,} training images; "
            f"got {values.dtype} of shape {values.shape}."
        )
    return values.astype(np.int64)


CIFAR10N_NEEDS: Final = (*CIFAR10_NEEDS, _beside(_HUMAN10))
CIFAR100N_NEEDS: Final = (*CIFAR100_NEEDS, _beside(_HUMAN100))
