"""Readers of published and custom data sets.

A module of this package reads one family of layouts and is named after it. A reader is a
function `(path, *, options) -> Dataset`; its keyword arguments are the options of a spec's
`[data]` table, checked here once. Readers share `_find_files`, which finds files and compares
them with what was published.
"""

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from accord._options import check_options, option_names
from accord.data._dataset import Dataset
from accord.data._image_cache import IMAGE_OPTIONS, prepare_images
from accord.data.readers import cifar, glue, imagenet, mnist, web_images
from accord.data.readers._find_files import Spellings
from accord.data.readers.digits import read_digits
from accord.data.readers.image_folder import read_image_folder
from accord.data.readers.npz import read_npz
from accord.data.readers.tables import read_table
from accord.errors import ChoiceError, suggest

__all__ = ["READERS", "Reader", "find_reader", "read_dataset"]

_NOT_OPTIONS: Final = ("path", "dataset")


@dataclass(frozen=True)
class Reader:
    """Registry entry for a reader of data sets.

    >>> READERS["cifar10"].options
    ('complete', 'verify')
    """

    read: Callable[..., Dataset]
    layout: str  # short description of the expected path
    needs: tuple[Spellings, ...] = ()  # required files, each by every name it may have
    image_files: bool = False  # images stay on disk and are decoded when read
    needs_path: bool = True
    clean_test: bool = False  # published with a test set whose labels are taken to be right

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that this reader accepts."""
        return tuple(option_names(*self._functions, given=_NOT_OPTIONS))

    def check_options(self, kind: str, options: Mapping[str, Any]) -> None:
        """Validate the options of a reader."""
        check_options(kind, options, *self._functions, given=_NOT_OPTIONS)

    @property
    def _functions(self) -> tuple[Callable[..., Dataset], ...]:
        return (self.read, prepare_images) if self.image_files else (self.read,)


def read_dataset(
    kind: str, path: str | os.PathLike[str] | None = None, *, verified: bool = False, **options: Any
) -> Dataset:
    """Read a data set from disk.

    The test split has `truth` if its labels are known to be right: of data sets that are published
    with a clean test set, by a column or array of true labels, or because they are `verified`.

    Args:
        kind: the name of the layout, a key of `READERS`.
        path: the local file or folder, as `READERS[kind].layout` describes it.
        verified: whether the labels of the test split have been verified.
        options: those in `READERS[kind].options`; for image files also size, resize, cache
            and skip_unreadable, as for `accord.data.prepare_images`.

    Raises:
        ChoiceError: the layout or an option is unknown, or an option has a wrong value.
        SourceError: files are missing, damaged, or differ from the published ones.
        ExtraMissing: pillow or pyarrow is required and not installed.

    >>> dataset = read_dataset("digits", train_share=0.5)
    >>> dataset.kind, dataset.classes, len(dataset.train)
    ('image', 10, 898)
    """
    reader = find_reader(kind)
    reader.check_options(kind, options)
    if path is None and reader.needs_path:
        raise ChoiceError(f"{kind} needs a path: {reader.layout}.")
    for_images = {}
    if reader.image_files:
        for_images = {name: options.pop(name) for name in IMAGE_OPTIONS if name in options}
    dataset = reader.read(*(() if path is None else (Path(path).expanduser(),)), **options)
    published = reader.clean_test and options.get("held_out") is None  # from the training samples
    if (verified or published) and dataset.test.truth is None:
        dataset = replace(dataset, test=replace(dataset.test, truth=dataset.test.labels))
    return prepare_images(dataset, **for_images) if for_images else dataset


def find_reader(kind: str) -> Reader:
    """Look up a reader by name.

    >>> find_reader("cifar-10")
    Traceback (most recent call last):
    accord.errors.ChoiceError: no data set is called 'cifar-10'. Did you mean 'cifar10'?
    """
    if kind in READERS:
        return READERS[kind]
    raise ChoiceError(f"no data set is called {kind!r}. {suggest(kind, READERS)}")


_published = functools.partial(Reader, clean_test=True)
_published_files = functools.partial(_published, image_files=True)
READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "cifar10": _published(
            cifar.read_cifar10, "the folder cifar-10-batches-bin or -py", cifar.CIFAR10_NEEDS
        ),
        "cifar100": _published(
            cifar.read_cifar100, "the folder cifar-100-binary or -python", cifar.CIFAR100_NEEDS
        ),
        "cifar10n": _published(
            cifar.read_cifar10n, "CIFAR-10's folder, with CIFAR-10_human.pt", cifar.CIFAR10N_NEEDS
        ),
        "cifar100n": _published(
            cifar.read_cifar100n,
            "CIFAR-100's folder, with CIFAR-100_human.pt",
            cifar.CIFAR100N_NEEDS,
        ),
        "tinyimagenet": _published_files(
            imagenet.read_tiny_imagenet,
            "the folder tiny-imagenet-200",
            imagenet.TINY_IMAGENET_NEEDS,
        ),
        "imagenet": _published_files(
            imagenet.read_imagenet,
            "the folder of train/<wnid> and val/<wnid>",
            imagenet.IMAGENET_NEEDS,
        ),
        "clothing1m": _published_files(
            web_images.read_clothing1m,
            "the folder of the key lists and images",
            web_images.CLOTHING1M_NEEDS,
        ),
        "animal10n": _published_files(
            web_images.read_animal10n,
            "the folder of training and testing",
            web_images.ANIMAL10N_NEEDS,
        ),
        "webvision50": _published_files(
            web_images.read_webvision50,
            "the folder of info, google and flickr",
            web_images.WEBVISION_NEEDS,
        ),
        **{
            name: _published(
                functools.partial(glue.read_glue, name=name),
                "the folder of train and dev, TSV or Parquet",
                glue.needs_of(name),
            )
            for name in glue.TASKS
        },
        "mnist": _published(mnist.read_mnist, "the folder of the idx files", mnist.NEEDS),
        "fashion-mnist": _published(
            mnist.read_fashion_mnist, "the folder of the idx files", mnist.NEEDS
        ),
        "digits": _published(read_digits, "none: they come with Accord", needs_path=False),
        "image-folder": Reader(read_image_folder, "a folder of class folders", image_files=True),
        "npz": Reader(read_npz, "an .npz file"),
        **{
            kind: Reader(
                functools.partial(read_table, ending=f".{kind}"),
                f"a file, or train.{kind} and test.{kind}",
            )
            for kind in ("csv", "tsv", "parquet")
        },
    }
)
