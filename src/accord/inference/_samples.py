"""New samples, as a run's networks expect them."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.data._dataset import Images, Inputs, Labels
from accord.data._images import ImageFiles
from accord.errors import SourceError
from accord.kernels import check_class_range
from accord.training._input_schema import InputSchema


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples that no network was trained on, with labels if they have any."""

    inputs: Inputs
    truth: Labels | None = None  # (sample,)
    ids: NDArray[Any] | None = None  # (sample,)
    name: str = "the samples"
    notes: tuple[str, ...] = ()  # what was left out in reading, for people to read

    def __len__(self) -> int:
        return len(self.inputs)

    def part(self, span: slice) -> Inputs:
        """Return neighbouring inputs; image files are decoded now."""
        if isinstance(self.inputs, ImageFiles):
            return self.inputs.read(np.arange(len(self))[span])
        return self.inputs[span]

    @property
    def sample_bytes(self) -> int:
        """About how many bytes one sample takes in memory."""
        if isinstance(self.inputs, tuple):
            return 4096
        return max(1, int(np.prod(self.inputs.shape[1:])) * self.inputs_itemsize)

    @property
    def inputs_itemsize(self) -> int:
        """How many bytes one number takes."""
        return self.inputs.itemsize if isinstance(self.inputs, np.ndarray) else 1

    def digest(self) -> str:
        """Return a short name for what the samples are, to tell others from them."""
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


def check_samples(samples: Samples, traits: InputSchema) -> None:
    """Refuse samples that a run's networks cannot be shown.

    Raises:
        SourceError: there are none, or they are of another kind, shape or class.
    """
    if not len(samples):
        raise SourceError(f"{samples.name}: holds no samples.")
    wanted, came = _wanted(traits), _describe(samples.inputs)
    if came != wanted:
        raise SourceError(
            f"{samples.name}: holds {came}; the run's networks were trained on {wanted}."
        )
    if traits.kind == "table" and not np.isfinite(samples.inputs).all():  # type: ignore[arg-type]
        raise SourceError(f"{samples.name}: holds numbers that are not finite. Fill or drop them.")
    _check_labels(samples, traits)


def _check_labels(samples: Samples, traits: InputSchema) -> None:
    truth = samples.truth
    if truth is None:
        return
    if truth.shape != (len(samples),):
        raise SourceError(
            f"{samples.name}: there must be one label for each of the {len(samples)} samples, or "
            f"none at all; got shape {truth.shape}."
        )
    if truth.dtype.kind not in "iu":
        raise SourceError(f"{samples.name}: labels must be whole numbers; got {truth.dtype}.")
    check_class_range(
        truth, classes=traits.classes, name=f"{samples.name}: labels", error=SourceError
    )


def _wanted(traits: InputSchema) -> str:
    if traits.kind == "image":
        return _image(traits.channels, *traits.size)
    if traits.kind == "text":
        return "pairs of texts" if traits.pairs else "texts"
    return f"rows of {traits.channels} numbers"


def _describe(inputs: Inputs) -> str:
    if isinstance(inputs, tuple):
        kinds = {_describe_text(one) for one in inputs}
        return kinds.pop() if len(kinds) == 1 else "a mixture of " + " and ".join(sorted(kinds))
    if len(inputs.shape) == 4:
        return _image(*inputs.shape[1:])
    return f"rows of {inputs.shape[1]} numbers"


def _describe_text(text: Any) -> str:
    if isinstance(text, str):
        return "texts"
    if isinstance(text, tuple) and len(text) == 2 and all(isinstance(one, str) for one in text):
        return "pairs of texts"
    return "what is neither a text nor a pair of texts"


def _image(channels: int, rows: int, columns: int) -> str:
    return f"images of {channels} × {rows} × {columns} (channel, row, column)"


def as_labels(values: NDArray[Any], class_names: tuple[str, ...], *, where: str) -> Labels:
    """Return labels as numbers, whether they are given as such or by the classes' names.

    Where the classes are named by other numbers than their own, numbers are names.

    >>> as_labels(np.array(["dog", "cat"]), ("cat", "dog"), where="x")
    array([1, 0])
    >>> as_labels(np.array([2, 1]), ("1", "2"), where="x")
    array([1, 0])
    """
    if values.dtype.kind in "iu" and not named_by_numbers(class_names):
        return values
    numbers = {name: number for number, name in enumerate(class_names)}
    names = [str(value) for value in values.tolist()]
    strange = sorted(set(names) - set(numbers))
    if strange:
        raise SourceError(
            f"{where}: {strange[0]!r} is none of the run's {len(numbers)} classes "
            f"({', '.join(class_names[:8])}{', …' if len(numbers) > 8 else ''})."
        )
    return np.array([numbers[name] for name in names], np.int64)


def named_by_numbers(class_names: tuple[str, ...]) -> bool:
    """Tell whether the classes are named by other numbers than their own."""
    own = tuple(map(str, range(len(class_names))))
    return class_names != own and all(name.removeprefix("-").isdecimal() for name in class_names)


def to_grey(images: Images) -> Images:
    """Turn RGB into one channel, (sample, 1, row, column), weighing the colours as eyes do.

    >>> to_grey(np.full((1, 3, 1, 1), 7, np.uint8)).ravel()
    array([7], dtype=uint8)
    """
    weights = np.array([299, 587, 114])
    grey = np.einsum("schw,c->shw", images, weights, dtype=np.int64)
    return np.asarray((grey + 500) // 1000, np.uint8)[:, np.newaxis]
