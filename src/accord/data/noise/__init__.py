"""Every kind of noise by its name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from accord.data.noise._generators import Mapping as ClassMapping
from accord.data.noise._generators import (
    SampleFiles,
    Samples,
    asymmetric_noise,
    instance_noise,
    mapped_noise,
    patrini_noise,
    superclass_noise,
    symmetric_noise,
)
from accord.data.noise._label_files import Labels, check_labels, labels_from_file
from accord.errors import ChoiceError, suggest

__all__ = [
    "NOISES",
    "Noise",
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


@dataclass(frozen=True)
class NoiseKind:
    """One kind of noise: what it does, and which arguments it needs or may have."""

    name: str
    summary: str
    make: Callable[..., Labels]
    needs: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()  # besides what it needs


@dataclass(frozen=True)
class Noise:
    """What was done to the training labels: enough to do it again.

    >>> noise = Noise("symmetric", rate=0.4, seed=0)
    >>> noise.as_json()
    {'kind': 'symmetric', 'rate': 0.4, 'seed': 0}
    >>> Noise.from_json(noise.as_json()) == noise
    True
    """

    kind: str = "none"
    rate: float | None = None
    seed: int = 0
    mapping: tuple[int, ...] | None = None
    path: str | None = None

    def __post_init__(self) -> None:
        given = {name for name in ("rate", "mapping", "path") if getattr(self, name) is not None}
        kind = find_noise(self.kind)
        _check_arguments(kind, given | (kind.needs & {"samples"}))

    def apply(
        self, labels: Labels, *, classes: int, samples: Samples | SampleFiles | None = None
    ) -> Labels:
        """Return the labels with this noise added; `labels` stay as they are."""
        return add_noise(
            self.kind,
            labels,
            rate=self.rate,
            classes=classes,
            seed=self.seed,
            samples=samples,
            mapping=self.mapping,
            path=self.path,
        )

    def as_json(self) -> dict[str, Any]:
        """Return what is needed to build this again, as JSON can hold it."""
        sample_info = {name: value for name, value in vars(self).items() if value is not None}
        return (
            sample_info if self.mapping is None else {**sample_info, "mapping": list(self.mapping)}
        )

    @classmethod
    def from_json(cls, sample_info: Mapping[str, Any]) -> "Noise":
        """Build it from what `as_json` returned."""
        mapping = sample_info.get("mapping")
        return cls(**{**sample_info, "mapping": None if mapping is None else tuple(mapping)})


def add_noise(
    kind: str,
    labels: Labels,
    *,
    rate: float | None = None,
    classes: int,
    seed: int,
    samples: Samples | SampleFiles | None = None,
    mapping: ClassMapping | None = None,
    path: str | None = None,
) -> Labels:
    """Return the labels with noise of the named kind added.

    A pure function of its arguments. `NOISES` tells the kinds and what each needs.

    Args:
        kind: "none", "symmetric", "asymmetric", "patrini", "superclass", "map",
            "instance" or "file".
        labels: the class of each sample; left as they are.
        rate: the share to move; all kinds but "none" and "file" need it.
        classes: how many classes there are; labels run from 0.
        seed: the same seed always gives the same labels.
        samples: what the samples look like; "instance" needs it, the others ignore it.
        mapping: the class that each class turns into; "map" needs it, "asymmetric" may have it.
        path: where the labels are, for "file": a .npy, .npz, .csv or .pt, with or without #name.

    Raises:
        ChoiceError: `kind` is unknown, an argument is missing, or one is there that the
            kind does not use.
        PredictionError: `labels` are not a row of integers in 0..classes - 1.

    >>> import numpy as np
    >>> add_noise("asymmetric", np.array([0, 1, 2]), rate=1, classes=3, seed=0)
    array([1, 2, 0])
    """
    chosen = find_noise(kind)
    every = {"rate": rate, "samples": samples, "mapping": mapping, "path": path}
    if "samples" not in chosen.needs:
        every["samples"] = None
    given = {name: value for name, value in every.items() if value is not None}
    _check_arguments(chosen, set(given))
    check_labels(labels, classes)
    return chosen.make(labels, classes=classes, seed=seed, **given)


def find_noise(name: str) -> NoiseKind:
    """Return the kind of noise of that name; an error offers the nearest.

    >>> find_noise("symetric")
    Traceback (most recent call last):
    accord.errors.ChoiceError: no noise is called 'symetric'. Did you mean 'symmetric'?
    """
    if name in NOISES:
        return NOISES[name]
    raise ChoiceError(f"no noise is called {name!r}. {suggest(name, NOISES)}")


def _check_arguments(kind: NoiseKind, given: set[str]) -> None:
    missing = sorted(kind.needs - given)
    if missing:
        raise ChoiceError(f"{kind.name} noise needs {' and '.join(missing)}.")
    unused = sorted(given - kind.needs - kind.takes)
    if unused:
        raise ChoiceError(f"{kind.name} noise does not use {' or '.join(unused)}; leave it out.")


def _leave(labels: Labels, *, classes: int, seed: int) -> Labels:  # noqa: ARG001
    return labels.copy()


def _from_file(labels: Labels, *, classes: int, seed: int, path: str) -> Labels:  # noqa: ARG001
    read = labels_from_file(path, samples=len(labels), classes=classes)
    return read.astype(labels.dtype)


_RATE: Final = frozenset({"rate"})
NOISES: Final[Mapping[str, NoiseKind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            NoiseKind("none", "labels stay as they are", _leave),
            NoiseKind("symmetric", "to any other class", symmetric_noise, _RATE),
            NoiseKind(
                "asymmetric",
                "to the next class, or along a mapping",
                asymmetric_noise,
                _RATE,
                frozenset({"mapping"}),
            ),
            NoiseKind("patrini", "Patrini's map for CIFAR-10 or CIFAR-100", patrini_noise, _RATE),
            NoiseKind("superclass", "within CIFAR-100's superclasses", superclass_noise, _RATE),
            NoiseKind("map", "a share of each class", mapped_noise, _RATE | {"mapping"}),
            NoiseKind("instance", "by what samples look like", instance_noise, _RATE | {"samples"}),
            NoiseKind("file", "labels from a file", _from_file, frozenset({"path"})),
        )
    }
)
