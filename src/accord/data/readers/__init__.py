"""The types of readers' options, held against their annotations."""

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from accord.data._dataset import Dataset
from accord.data._image_cache import IMAGE_OPTIONS, prepare_images
from accord.data.readers._locate import Spellings
from accord.data.readers.cifar import (
    CIFAR10_NEEDS,
    CIFAR10N_NEEDS,
    CIFAR100_NEEDS,
    CIFAR100N_NEEDS,
    read_cifar10,
    read_cifar10n,
    read_cifar100,
    read_cifar100n,
)
from accord.data.readers.digits import read_digits
from accord.data.readers.glue import TASKS, needs_of, read_glue
from accord.data.readers.image_folder import read_image_folder
from accord.data.readers.imagenet import (
    IMAGENET_NEEDS,
    TINY_IMAGENET_NEEDS,
    read_imagenet,
    read_tiny_imagenet,
)
from accord.data.readers.mnist import NEEDS, read_fashion_mnist, read_mnist
from accord.data.readers.npz import read_npz
from accord.data.readers.tables import read_table
from accord.data.readers.web_images import (
    ANIMAL10N_NEEDS,
    CLOTHING1M_NEEDS,
    WEBVISION_NEEDS,
    read_animal10n,
    read_clothing1m,
    read_webvision50,
)
from accord.errors import ChoiceError, suggest

__all__ = ["READERS", "Reader", "find_reader", "read_dataset"]


WORDS: Final = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def check_types(kind: str, options: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Refuse an option whose value is not of its type.

    Args:
        kind: the reader's name.
        options: what it was given, as TOML or a caller writes it.
        hints: the type of each.

    Raises:
        ChoiceError: a value is of another type.

    >>> check_types("csv", {"held_out": "0.2"}, {"held_out": float | None})
    Traceback (most recent call last):
    accord.errors.ChoiceError: csv: held_out must be a number; got '0.2'
    """
    for name, value in options.items():
        if not _is_of(value, hints[name]):
            raise ChoiceError(f"{kind}: {name} must be {_in_words(hints[name])}; got {value!r}")


def _is_of(value: Any, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_is_of(value, one) for one in get_args(hint))
    if get_origin(hint) is Sequence:
        listed = isinstance(value, list | tuple)
        return listed and all(_is_of(one, get_args(hint)[0]) for one in value)
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, (int, float) if hint is float else get_origin(hint) or hint)


def _in_words(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        words = [_in_words(one) for one in get_args(hint) if one is not NoneType]
        return " or ".join(dict.fromkeys(words))
    if get_origin(hint) is Sequence:
        return f"a list of which each is {_in_words(get_args(hint)[0])}"
    return WORDS.get(hint, "a path")


@dataclass(frozen=True)
class Reader:
    """How one layout is read.

    >>> READERS["cifar10"].options
    ('complete', 'verify')
    """

    read: Callable[..., Dataset]
    layout: str  # what the path should name, in a few words
    image_files: bool = False  # whether the images stay on disk until they are needed
    needs_path: bool = True
    needs: tuple[Spellings, ...] = ()  # files without which it cannot be read, where names tell

    @property
    def options(self) -> tuple[str, ...]:
        """The names that `read_dataset` takes for this layout."""
        settled = getattr(self.read, "keywords", {})
        parameters = inspect.signature(self.read).parameters.values()
        own = tuple(
            parameter.name
            for parameter in parameters
            if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in settled
        )
        return own + (tuple(IMAGE_OPTIONS) if self.image_files else ())


def read_dataset(kind: str, path: str | os.PathLike[str] | None = None, **options: Any) -> Dataset:
    """Read a data set from disk; nothing is ever downloaded.

    Args:
        kind: the layout's name, a key of `READERS`.
        path: the folder or file; `READERS[kind].layout` tells which.
        options: those of the layout; `READERS[kind].options` tells which. Where images
            stay on disk, also size, resize, cache and skip_unreadable, as
            `accord.data._image_cache.prepare_images` explains.

    Raises:
        ChoiceError: no such layout or option, or an option has a wrong value.
        SourceError: files are missing, damaged, or not what was published.
        ExtraMissing: pillow or pyarrow is needed and not installed.

    >>> dataset = read_dataset("digits", train_share=0.5)
    >>> dataset.kind, dataset.classes, len(dataset.train)
    ('image', 10, 898)
    """
    reader = find_reader(kind)
    _check_options(kind, reader, path, options)
    asked = {name: options.pop(name) for name in IMAGE_OPTIONS if name in options}
    where = () if path is None else (Path(path).expanduser(),)
    dataset = reader.read(*where, **options)
    return prepare_images(dataset, **asked) if asked else dataset


def find_reader(kind: str) -> Reader:
    """Return the reader of that name; an error offers the nearest.

    >>> find_reader("cifar-10")
    Traceback (most recent call last):
    accord.errors.ChoiceError: no data are called 'cifar-10'. Did you mean 'cifar10'?
    """
    if kind in READERS:
        return READERS[kind]
    raise ChoiceError(f"no data are called {kind!r}. {suggest(kind, READERS)}")


def _check_options(kind: str, reader: Reader, path: object, options: Mapping[str, Any]) -> None:
    unknown = sorted(set(options) - set(reader.options))
    if unknown:
        have = ", ".join(reader.options) or "none"
        raise ChoiceError(f"{kind} has no option {', '.join(unknown)}; there are: {have}.")
    hints = get_type_hints(getattr(reader.read, "func", reader.read))
    check_types(kind, options, {**IMAGE_OPTIONS, **hints})
    if path is None and reader.needs_path:
        raise ChoiceError(f"{kind} needs a path: {reader.layout}.")


READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "cifar10": Reader(
            read_cifar10, "the folder cifar-10-batches-bin or -py", needs=CIFAR10_NEEDS
        ),
        "cifar100": Reader(
            read_cifar100,
            "the folder cifar-100-binary or -python",
            needs=CIFAR100_NEEDS,
        ),
        "cifar10n": Reader(
            read_cifar10n,
            "CIFAR-10's folder, with CIFAR-10_human.pt",
            needs=CIFAR10N_NEEDS,
        ),
        "cifar100n": Reader(
            read_cifar100n,
            "CIFAR-100's folder, with CIFAR-100_human.pt",
            needs=CIFAR100N_NEEDS,
        ),
        "tinyimagenet": Reader(
            read_tiny_imagenet,
            "the folder tiny-imagenet-200",
            True,
            needs=TINY_IMAGENET_NEEDS,
        ),
        "imagenet": Reader(
            read_imagenet,
            "the folder of train/<wnid> and val/<wnid>",
            True,
            needs=IMAGENET_NEEDS,
        ),
        "clothing1m": Reader(
            read_clothing1m,
            "the folder of the key lists and images",
            True,
            needs=CLOTHING1M_NEEDS,
        ),
        "animal10n": Reader(
            read_animal10n,
            "the folder of training and testing",
            True,
            needs=ANIMAL10N_NEEDS,
        ),
        "webvision50": Reader(
            read_webvision50,
            "the folder of info, google and flickr",
            True,
            needs=WEBVISION_NEEDS,
        ),
        **{
            name: Reader(
                functools.partial(read_glue, name=name),
                "the folder of train and dev, TSV or Parquet",
                needs=needs_of(name),
            )
            for name in TASKS
        },
        "mnist": Reader(read_mnist, "the folder of the idx files", needs=NEEDS),
        "fashion-mnist": Reader(read_fashion_mnist, "the folder of the idx files", needs=NEEDS),
        "digits": Reader(read_digits, "none: they come with Accord", needs_path=False),
        "image-folder": Reader(read_image_folder, "a folder of class folders", True),
        "npz": Reader(read_npz, "an .npz file"),
        "csv": Reader(
            functools.partial(read_table, ending=".csv"), "a file, or train.csv and test.csv"
        ),
        "tsv": Reader(
            functools.partial(read_table, ending=".tsv"), "a file, or train.tsv and test.tsv"
        ),
        "parquet": Reader(
            functools.partial(read_table, ending=".parquet"),
            "a file, or train.parquet and test.parquet",
        ),
    }
)
