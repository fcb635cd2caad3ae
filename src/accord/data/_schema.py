"""Schema for input samples and utilities for their validation."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.data._dataset import Inputs, Kind, Labels, NamedColumns, check_label_range
from accord.data._image_files import ImageFiles
from accord.errors import SourceError


@dataclass(frozen=True)
class InputSchema:
    """Schema for the samples of a run."""

    kind: Kind
    class_names: tuple[str, ...]
    channels: int  # of an image; for a table, the number of columns
    size: tuple[int, int]  # rows and columns of an image
    samples: int  # the number of training samples
    mean: tuple[float, ...] | None = None  # of each channel or column; None for texts
    spread: tuple[float, ...] | None = None
    resize: int | None = None  # pixels of an image file's shorter side, before the crop
    columns: NamedColumns | None = None  # of a table whose columns have names
    pairs: bool = False  # of texts

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def shape(self) -> tuple[int, tuple[int, int]]:
        """Shape of an image, (channel, row, column)."""
        return self.channels, self.size

    @property
    def scale(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        """Mean and scale of each channel or column in the training samples."""
        if self.mean is None or self.spread is None:
            return None
        return np.array(self.mean, np.float32), np.array(self.spread, np.float32)


@dataclass(frozen=True, eq=False)
class Samples:
    """Container for samples to predict, with optional labels and ids."""

    inputs: Inputs
    truth: Labels | None = None  # (sample,), labels known to be right
    ids: NDArray[Any] | None = None  # (sample,), by default the row, from 0
    name: str = "the samples"  # for error messages
    notes: tuple[str, ...] = ()  # descriptions of omitted samples
    given: Labels | None = None  # (sample,), labels that may be wrong

    def __post_init__(self) -> None:
        if self.ids is None:
            object.__setattr__(self, "ids", np.arange(len(self.inputs)))

    def __len__(self) -> int:
        return len(self.inputs)

    def part(self, span: slice) -> Inputs:
        """Load the inputs in a range of positions."""
        if isinstance(self.inputs, ImageFiles):
            return self.inputs.read(np.arange(len(self))[span])
        return self.inputs[span]

    @property
    def sample_bytes(self) -> int:
        """Approximate size of one sample in bytes."""
        if isinstance(self.inputs, tuple):
            return 4096
        itemsize = self.inputs.itemsize if isinstance(self.inputs, np.ndarray) else 1
        return max(1, int(np.prod(self.inputs.shape[1:])) * itemsize)

    def digest(self) -> str:
        """Compute a short hash of the inputs."""
        found = hashlib.blake2b(digest_size=8)
        if isinstance(self.inputs, np.ndarray):
            found.update(repr((self.inputs.shape, self.inputs.dtype.str)).encode())
            found.update(np.ascontiguousarray(self.inputs).tobytes())
        elif isinstance(self.inputs, ImageFiles):
            found.update(repr((self.inputs.shape, self.inputs.resize)).encode())
            for name in self.inputs.names:
                data = (self.inputs.root / name).read_bytes()
                found.update(repr((name, len(data))).encode())
                found.update(data)
        else:
            found.update(repr(self.inputs).encode())
        return found.hexdigest()


def check_samples(samples: Samples, schema: InputSchema) -> None:
    if not len(samples):
        raise SourceError(f"{samples.name}: holds no samples.")
    wanted, found = _describe_schema(schema), _describe(samples.inputs)
    if found != wanted:
        raise SourceError(f"{samples.name}: holds {found}; the networks were trained on {wanted}.")
    if schema.kind == "table" and not np.isfinite(samples.inputs).all():  # type: ignore[arg-type]
        raise SourceError(f"{samples.name}: holds numbers that are not finite. Fill or drop them.")
    for labels in (samples.truth, samples.given):
        if labels is None:
            continue
        if labels.shape != (len(samples),):
            raise SourceError(
                f"{samples.name}: expected one label for each of the {len(samples)} samples, or no "
                f"labels; got shape {labels.shape}."
            )
        check_label_range(f"{samples.name}: labels", labels, schema.classes)


def _describe_schema(schema: InputSchema) -> str:
    if schema.kind == "image":
        return _describe_image(schema.channels, *schema.size)
    if schema.kind == "text":
        return "pairs of texts" if schema.pairs else "texts"
    return f"rows of {schema.channels} numbers"


def _describe(inputs: Inputs) -> str:
    if isinstance(inputs, tuple):
        kinds = {_describe_text(one) for one in inputs}
        return kinds.pop() if len(kinds) == 1 else "a mixture of " + " and ".join(sorted(kinds))
    if len(inputs.shape) == 4:
        return _describe_image(*inputs.shape[1:])
    return f"rows of {inputs.shape[1]} numbers"


def _describe_text(text: Any) -> str:
    if isinstance(text, str):
        return "texts"
    pair = isinstance(text, tuple) and len(text) == 2 and all(isinstance(one, str) for one in text)
    return "pairs of texts" if pair else "neither texts nor pairs of texts"


def _describe_image(channels: int, rows: int, columns: int) -> str:
    return f"images of {channels} × {rows} × {columns} (channel, row, column)"


def match_labels(values: NDArray[Any], class_names: tuple[str, ...], *, where: str) -> Labels:
    """Convert class names or indices to class indices.

    If the classes are named by numbers other than their indices, numbers are names.

    >>> match_labels(np.array(["dog", "cat"]), ("cat", "dog"), where="x")
    array([1, 0])
    >>> match_labels(np.array([2, 1]), ("1", "2"), where="x")
    array([1, 0])
    """
    indices = tuple(map(str, range(len(class_names))))
    numeric = all(name.removeprefix("-").isdecimal() for name in class_names)
    named_by_numbers = numeric and class_names != indices
    if values.dtype.kind in "iu" and not named_by_numbers:
        return values
    names = [str(value) for value in values.tolist()]
    unknown = sorted(set(names) - set(class_names))
    if not unknown:
        numbers = {name: number for number, name in enumerate(class_names)}
        return np.array([numbers[name] for name in names], np.int64)
    if not named_by_numbers and set(names) <= set(indices):
        return np.array([int(name) for name in names], np.int64)
    more = ", …" if len(class_names) > 8 else ""
    raise SourceError(
        f"{where}: {unknown[0]!r} is not one of the run's {len(class_names)} classes "
        f"({', '.join(class_names[:8])}{more})."
    )
