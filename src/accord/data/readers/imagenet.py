"""ImageNet, or some of its classes, in folders."""

from pathlib import Path
from typing import Final

import numpy as np

from accord.data.dataset import Dataset, Split
from accord.data.image_files import ImageFiles
from accord.data.readers.image_folder import list_images
from accord.data.readers.locate import find, missing, read_lines
from accord.data.readers.published import check_counts
from accord.data.readers.wnids import names_of
from accord.errors import SourceError, counted

NEEDS: Final = (("train/",), ("val/",))
_VAL_PER_CLASS = 50


def read_imagenet(path: Path, *, class_list: str | None = None, complete: bool = True) -> Dataset:
    """Read `train/<wnid>` and `val/<wnid>`; `val` is the test split.

    Classes are numbered by their position in the sorted list of wnids.

    Args:
        path: the folder that holds `train` and `val`.
        class_list: a file with one `wnid name` per line, such as SCAN's lists for
            ImageNet-50 and ImageNet-100; by default every folder of `train`.
        complete: refuse other than 50 test images for each class.
    """
    train_folder = find(path, NEEDS[0], what="training images")
    val_folder = find(path, NEEDS[1], what="test images")
    words = _read_list(path, class_list) if class_list else _wnids_in(train_folder)
    wnids = sorted(words)
    train, test = (_read_split(path, folder, wnids) for folder in (train_folder, val_folder))
    if complete:
        check_counts(path, (len(train), len(test)), (None, _VAL_PER_CLASS * len(wnids)))
    return Dataset("imagenet", "image", names_of(wnids, words), train=train, test=test)


def _read_list(path: Path, class_list: str) -> dict[str, str]:
    file = Path(class_list).expanduser()
    if not file.is_file() and (path / class_list).is_file():
        file = path / class_list
    words = dict(_wnid_and_name(line) for line in read_lines(file))
    if len(words) < 2:
        raise SourceError(
            f"{file}: lists {counted(len(words), 'class')}; there must be at least two."
        )
    return words


def _wnid_and_name(line: str) -> tuple[str, str]:
    wnid, *name = line.split(maxsplit=1)
    return wnid, "".join(name)


def _wnids_in(folder: Path) -> dict[str, str]:
    return {child.name: "" for child in folder.iterdir() if child.is_dir()}


def _read_split(root: Path, folder: Path, wnids: list[str]) -> Split:
    absent = [wnid for wnid in wnids if not (folder / wnid).is_dir()]
    if absent:
        what = f"{len(absent)} of {len(wnids)} class folders"
        raise missing(folder, [*absent[:8], *(["…"] if absent[8:] else [])], what=what, all_of=True)
    names, labels = [], []
    for number, wnid in enumerate(wnids):
        found = list_images(folder / wnid)
        if not found:
            raise SourceError(f"{folder / wnid}: holds no images.")
        names += [f"{folder.name}/{wnid}/{name}" for name in found]
        labels += [number] * len(found)
    return Split(ImageFiles(root, tuple(names)), np.array(labels, np.int64), ids=np.array(names))
