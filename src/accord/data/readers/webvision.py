"""WebVision's first fifty classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from accord.data.dataset import Dataset, Split
from accord.data.image_files import ImageFiles
from accord.data.readers.locate import find, read_lines
from accord.data.readers.wnids import names_of
from accord.errors import ChoiceError, SourceError

_SOURCES: Final = ("google", "flickr")
_VAL: Final = ("val_images_256", "val_images", "val_images_resized")
_VAL_LIST: Final = "val_filelist.txt"


def _train_list(source: str) -> str:
    return f"train_filelist_{source}.txt"


NEEDS: Final = (
    *((f"info/{_train_list(source)}",) for source in _SOURCES),
    (f"info/{_VAL_LIST}",),
    tuple(f"{folder}/" for folder in _VAL),
)


def read_webvision50(
    path: Path, *, sources: Sequence[str] = _SOURCES, classes: int = 50
) -> Dataset:
    """Read the classes below `classes` from the file lists; `val` is the test split.

    The paper takes Google and Flickr, about 100,000 images; "mini-WebVision" elsewhere
    is Google alone, 65,944 images.

    Args:
        path: the folder that holds `info`, the sources and `val_images_256`.
        sources: "google", "flickr", or both.
        classes: how many of the 1,000 classes to read.
    """
    info = find(path, ("info",), what="WebVision's file lists")
    train = [line for source in sources for line in _read_list(info, source, classes)]
    val_folder = find(path, _VAL, what="test images").name
    test = [
        (f"{val_folder}/{name}", label)
        for name, label in _read_entries(find(info, (_VAL_LIST,), what="a list"), classes)
    ]
    splits = [_as_split(path, entries) for entries in (train, test)]
    return Dataset(
        "webvision50", "image", _class_names(info, classes), train=splits[0], test=splits[1]
    )


def _read_list(info: Path, source: str, classes: int) -> list[tuple[str, int]]:
    if source not in _SOURCES:
        raise ChoiceError(f"the sources are 'google' and 'flickr'; got {source!r}.")
    file = find(info, (_train_list(source),), what=f"the list of images from {source}")
    return _read_entries(file, classes)


def _read_entries(file: Path, classes: int) -> list[tuple[str, int]]:
    entries = []
    for line in read_lines(file):
        name, _, label = line.rpartition(" ")
        if not label.isdecimal():
            raise SourceError(f"{file}: each line must be 'path label'; got {line!r}.")
        if int(label) < classes:
            entries.append((name, int(label)))
    return entries


def _as_split(root: Path, entries: list[tuple[str, int]]) -> Split:
    names = [name for name, _ in entries]
    labels = np.array([label for _, label in entries], np.int64)
    return Split(ImageFiles(root, tuple(names)), labels, ids=np.array(names))


def _class_names(info: Path, classes: int) -> tuple[str, ...]:
    file = info / "synsets.txt"  # one "wnid name" per line, in the order of the labels
    if not file.is_file():
        return tuple(str(number) for number in range(classes))
    pairs = [line.partition(" ")[::2] for line in read_lines(file)[:classes]]
    return names_of([wnid for wnid, _ in pairs], dict(pairs))
