"""TinyImageNet, as it unpacks."""

from pathlib import Path
from typing import Final

import numpy as np

from accord.data.dataset import Dataset, Split
from accord.data.image_files import ImageFiles
from accord.data.readers.locate import find, in_any, read_lines
from accord.data.readers.published import check_counts
from accord.data.readers.wnids import names_of
from accord.errors import SourceError

_SIZE = 64
_WNIDS, _WORDS, _VAL = "wnids.txt", "words.txt", "val/val_annotations.txt"
NEEDS: Final = in_any(("", "tiny-imagenet-200/"), (_WNIDS, _WORDS, "train/", _VAL, "val/images/"))


def read_tiny_imagenet(path: Path, *, complete: bool = True) -> Dataset:
    """Read TinyImageNet from `tiny-imagenet-200` or the folder above; `val` is the test split.

    Classes are numbered in the order of their sorted wnids.

    Args:
        path: the folder.
        complete: refuse other than 200 classes, 100,000 training and 10,000 test images.
    """
    wnids_file = find(path, NEEDS[0], what="TinyImageNet")
    folder = wnids_file.parent
    wnids = sorted(read_lines(wnids_file))
    numbers = {wnid: number for number, wnid in enumerate(wnids)}
    train = _read_train(folder, numbers)
    test = _read_val(folder, numbers)
    if complete:
        check_counts(folder, (len(train), len(test)), (100_000, 10_000))
    words = dict(_words(line) for line in read_lines(folder / _WORDS))
    return Dataset("tinyimagenet", "image", names_of(wnids, words), train, test)


def _read_train(folder: Path, numbers: dict[str, int]) -> Split:
    names, labels = [], []
    for wnid, number in numbers.items():
        images = find(folder, (f"train/{wnid}/images",), what=f"images of class {wnid}")
        found = sorted(f"train/{wnid}/images/{file.name}" for file in images.glob("*.JPEG"))
        names += found
        labels += [number] * len(found)
    return _as_split(folder, names, labels)


def _read_val(folder: Path, numbers: dict[str, int]) -> Split:
    file = find(folder, (_VAL,), what="the labels of val")
    names, labels = [], []
    for line in read_lines(file):
        name, _, rest = line.partition("\t")
        wnid = rest.partition("\t")[0]
        if wnid not in numbers:
            raise SourceError(f"{file}: {name} is of class {wnid!r}, which {_WNIDS} does not list.")
        names.append(f"val/images/{name}")
        labels.append(numbers[wnid])
    return _as_split(folder, names, labels)


def _as_split(folder: Path, names: list[str], labels: list[int]) -> Split:
    files = ImageFiles(folder, tuple(names), size=_SIZE, resize=_SIZE)
    return Split(files, np.array(labels, np.int64), ids=np.array(names))


def _words(line: str) -> tuple[str, str]:
    wnid, _, words = line.partition("\t")
    return wnid, words
