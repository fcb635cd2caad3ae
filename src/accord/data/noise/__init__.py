"""Generate label noise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from accord._options import check_options, option_names
from accord.data._dataset import Labels
from accord.data._image_files import ImageFiles
from accord.data._label_files import labels_from_file
from accord.data.noise._generators import Mapping as ClassMapping
from accord.data.noise._generators import (
    Samples,
    asymmetric_noise,
    check_labels,
    instance_noise,
    mapped_noise,
    patrini_noise,
    superclass_noise,
    symmetric_noise,
)
from accord.errors import ChoiceError, suggest

__all__ = [
    "NOISES",
    "NoiseKind",
    "add_noise",
    "asymmetric_noise",
    "find_noise",
    "instance_noise",
    "labels_from_file",
    "mapped_noise",
    "patrini_noise",
    "superclass_noise",
    "symmetric_noise",
]

_NOT_OPTIONS: Final = ("labels", "classes", "seed")


@dataclass(frozen=True)
class NoiseKind:
    """Registry entry for a kind of label noise.

    >>> NOISES["map"].options
    ('rate', 'mapping')
    """

    name: str
    summary: str
    make: Callable[..., Labels]

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the arguments other than labels, classes and seed."""
        return tuple(option_names(self.make, given=_NOT_OPTIONS))


def add_noise(
    kind: str,
    labels: Labels,
    *,
    rate: float | None = None,
    classes: int,
    seed: int,
    samples: Samples | ImageFiles | None = None,
    mapping: ClassMapping | None = None,
    path: str | None = None,
) -> Labels:
    """Add label noise to a copy of the labels.

    Args:
        kind: "none", "symmetric", "asymmetric", "patrini", "superclass", "map",
            "instance" or "file" (see `NOISES`).
        labels: the class of each sample.
        rate: the share to move, required by all kinds but "none" and "file".
        classes: the number of classes, with labels from 0.
        seed: the same seed gives the same labels.
        samples: the samples' features, required by "instance", ignored by the others.
        mapping: the class that each class turns into, required by "map", optional for
            "asymmetric".
        path: the file of labels, required by "file": .npy, .npz, .csv or .pt, with or
            without #name.

    Raises:
        ChoiceError: `kind` is unknown, or an argument is missing or not used by the kind.
        PredictionError: `labels` are not a vector of integers in 0..classes - 1.

    >>> import numpy as np
    >>> add_noise("asymmetric", np.array([0, 1, 2]), rate=1, classes=3, seed=0)
    array([1, 2, 0])
    """
    chosen = find_noise(kind)
    if "samples" not in chosen.options:
        samples = None
    every = {"rate": rate, "samples": samples, "mapping": mapping, "path": path}
    given = {name: value for name, value in every.items() if value is not None}
    # The functions check the values themselves, arrays and numpy's numbers among them.
    check_options(f"{kind} noise", given, chosen.make, given=_NOT_OPTIONS, types=False)
    check_labels(labels, classes)
    return chosen.make(labels, classes=classes, seed=seed, **given)


def find_noise(name: str) -> NoiseKind:
    """Look up a kind of noise by name.

    >>> find_noise("symetric")
    Traceback (most recent call last):
    accord.errors.ChoiceError: no noise is called 'symetric'. Did you mean 'symmetric'?
    """
    if name in NOISES:
        return NOISES[name]
    raise ChoiceError(f"no noise is called {name!r}. {suggest(name, NOISES)}")


def _keep_labels(labels: Labels, *, classes: int, seed: int) -> Labels:  # noqa: ARG001
    return labels.copy()


def _from_file(labels: Labels, *, classes: int, seed: int, path: str) -> Labels:  # noqa: ARG001
    return labels_from_file(path, samples=len(labels), classes=classes).astype(labels.dtype)


NOISES: Final[Mapping[str, NoiseKind]] = MappingProxyType(
    {
        name: NoiseKind(name, summary, make)
        for name, summary, make in (
            ("none", "labels stay as they are", _keep_labels),
            ("symmetric", "to any other class", symmetric_noise),
            ("asymmetric", "to the next class, or along a mapping", asymmetric_noise),
            ("patrini", "Patrini's map for CIFAR-10 or CIFAR-100", patrini_noise),
            ("superclass", "within CIFAR-100's superclasses", superclass_noise),
            ("map", "a share of each class", mapped_noise),
            ("instance", "by the features of a sample", instance_noise),
            ("file", "labels from a file", _from_file),
        )
    }
)
