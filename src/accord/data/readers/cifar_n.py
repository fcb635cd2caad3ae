"""CIFAR-10N and CIFAR-100N: CIFAR with labels that people gave."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.data.dataset import Dataset, Labels
from accord.data.noise.files import read_columns
from accord.data.readers.cifar import (
    CIFAR10_NEEDS,
    CIFAR100_NEEDS,
    read_cifar10,
    read_cifar100,
)
from accord.data.readers.locate import Spellings, missing
from accord.errors import ChoiceError, SourceError

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
    """Read CIFAR-10 with human labels to train on; the clean ones are the truth.

    Args:
        path: the CIFAR-10 folder, as for `cifar10`.
        labels: "aggre", "worse", "random1", "random2" or "random3".
        labels_file: the published `CIFAR-10_human.pt`, or an .npz of the same arrays. By
            default looked for in `path` and the folder above.
        complete: refuse other than 50,000 training and 10,000 test images.
    """
    base = read_cifar10(path, complete=complete)
    column = _choose(labels, _CIFAR10N)
    file = _find_labels(path, labels_file, _HUMAN10)
    return _with_labels(base, "cifar10n", file, column, "clean_label")


def read_cifar100n(
    path: Path, *, labels: str = "noisy", labels_file: str | None = None, complete: bool = True
) -> Dataset:
    """Read CIFAR-100 with human labels to train on; the clean ones are the truth.

    Args:
        path: the CIFAR-100 folder, as for `cifar100`.
        labels: "noisy" for the 100 classes, "noisy_coarse" for the 20 superclasses.
        labels_file: the published `CIFAR-100_human.pt`, or an .npz of the same arrays. By
            default looked for in `path` and the folder above.
        complete: refuse other than 50,000 training and 10,000 test images.
    """
    column = _choose(labels, _CIFAR100N)
    coarse = column == "noisy_coarse_label"
    base = read_cifar100(path, labels="coarse" if coarse else "fine", complete=complete)
    file = _find_labels(path, labels_file, _HUMAN100)
    clean = "clean_coarse_label" if coarse else "clean_label"
    return _with_labels(base, "cifar100n", file, column, clean)


def _choose(name: str, columns: dict[str, str]) -> str:
    if name in columns.values():
        return name
    if name not in columns:
        raise ChoiceError(f"there are no labels {name!r}; there are {', '.join(columns)}.")
    return columns[name]


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
    arrays = read_columns(file)
    absent = [each for each in (column, clean) if each not in arrays]
    if absent:
        raise SourceError(
            f"{file}: it holds no {' and no '.join(absent)}, but {', '.join(arrays) or 'nothing'}."
        )
    given, truth = (_as_labels(file, arrays[each], len(base.train)) for each in (column, clean))
    if not np.array_equal(truth, base.train.labels):
        wrong = int((truth != base.train.labels).sum())
        raise SourceError(
            f"{file}: {wrong:,} of {len(truth):,} clean labels are not CIFAR's. "
            "Its samples must come in the order of CIFAR's own files."
        )
    return replace(base, name=name, train=replace(base.train, labels=given, truth=truth))


def _as_labels(file: Path, values: NDArray[Any], samples: int) -> Labels:
    if values.shape != (samples,) or not np.issubdtype(values.dtype, np.integer):
        raise SourceError(
            f"{file}: there must be one integer for each of {samples:,} training images; "
            f"got {values.dtype} of shape {values.shape}."
        )
    return values.astype(np.int64)


CIFAR10N_NEEDS: Final = (*CIFAR10_NEEDS, _beside(_HUMAN10))
CIFAR100N_NEEDS: Final = (*CIFAR100_NEEDS, _beside(_HUMAN100))
