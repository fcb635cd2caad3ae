"""One file per layout; each reads what is published, as it is published."""

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_type_hints

from accord.data.dataset import Dataset
from accord.data.prepare import IMAGE_OPTIONS, prepare_images
from accord.data.readers import (
    animal10n,
    cifar,
    cifar_n,
    clothing1m,
    idx,
    imagenet,
    tiny_imagenet,
    webvision,
)
from accord.data.readers.digits import read_digits
from accord.data.readers.glue import TASKS, needs_of, read_glue
from accord.data.readers.image_folder import read_image_folder
from accord.data.readers.locate import Spellings
from accord.data.readers.npz import read_npz
from accord.data.readers.options import check_types
from accord.data.readers.tables import read_table
from accord.errors import ChoiceError, suggest

__all__ = ["READERS", "Reader", "find_reader", "read_dataset"]


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
            `accord.data.prepare.prepare_images` explains.

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
            cifar.read_cifar10, "the folder cifar-10-batches-bin or -py", needs=cifar.CIFAR10_NEEDS
        ),
        "cifar100": Reader(
            cifar.read_cifar100,
            "the folder cifar-100-binary or -python",
            needs=cifar.CIFAR100_NEEDS,
        ),
        "cifar10n": Reader(
            cifar_n.read_cifar10n,
            "CIFAR-10's folder, with CIFAR-10_human.pt",
            needs=cifar_n.CIFAR10N_NEEDS,
        ),
        "cifar100n": Reader(
            cifar_n.read_cifar100n,
            "CIFAR-100's folder, with CIFAR-100_human.pt",
            needs=cifar_n.CIFAR100N_NEEDS,
        ),
        "tinyimagenet": Reader(
            tiny_imagenet.read_tiny_imagenet,
            "the folder tiny-imagenet-200",
            True,
            needs=tiny_imagenet.NEEDS,
        ),
        "imagenet": Reader(
            imagenet.read_imagenet,
            "the folder of train/<wnid> and val/<wnid>",
            True,
            needs=imagenet.NEEDS,
        ),
        "clothing1m": Reader(
            clothing1m.read_clothing1m,
            "the folder of the key lists and images",
            True,
            needs=clothing1m.NEEDS,
        ),
        "animal10n": Reader(
            animal10n.read_animal10n,
            "the folder of training and testing",
            True,
            needs=animal10n.NEEDS,
        ),
        "webvision50": Reader(
            webvision.read_webvision50,
            "the folder of info, google and flickr",
            True,
            needs=webvision.NEEDS,
        ),
        **{
            name: Reader(
                functools.partial(read_glue, name=name),
                "the folder of train and dev, TSV or Parquet",
                needs=needs_of(name),
            )
            for name in TASKS
        },
        "mnist": Reader(idx.read_mnist, "the folder of the idx files", needs=idx.NEEDS),
        "fashion-mnist": Reader(
            idx.read_fashion_mnist, "the folder of the idx files", needs=idx.NEEDS
        ),
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
