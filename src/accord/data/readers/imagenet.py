"""Readers of ImageNet and TinyImageNet."""

from pathlib import Path
from typing import Final

from accord.data._dataset import Dataset, Split
from accord.data.readers._find_files import (
    check_counts,
    find,
    in_any,
    missing,
    names_of,
    read_lines,
)
from accord.data.readers.image_folder import image_split, list_images
from accord.errors import SourceError, counted

IMAGENET_NEEDS: Final = (("train/",), ("val/",))


def read_imagenet(path: Path, *, class_list: str | None = None, complete: bool = True) -> Dataset:
    """Read the ImageNet data set, with `val` as the test split.

    Classes are numbered by their wnids in sorted order.

    Args:
        path: the folder of `train` and `val`.
        class_list: a file with one `wnid name` per line, such as SCAN's lists for
            ImageNet-50 and ImageNet-100, by default every folder of `train`.
        complete: require 50 test images for each class.
    """
    train_folder = find(path, IMAGENET_NEEDS[0], what="training images")
    val_folder = find(path, IMAGENET_NEEDS[1], what="test images")
    if class_list:
        words = _read_list(path, class_list)
    else:
        words = {child.name: "" for child in train_folder.iterdir() if child.is_dir()}
    wnids = sorted(words)
    train, test = (_read_split(path, folder, wnids) for folder in (train_folder, val_folder))
    if complete:
        check_counts(path, (len(train), len(test)), (None, 50 * len(wnids)))
    return Dataset("imagenet", "image", names_of(wnids, words), train=train, test=test)


def _read_list(path: Path, class_list: str) -> dict[str, str]:
    file = Path(class_list).expanduser()
    if not file.is_file() and (path / class_list).is_file():
        file = path / class_list
    pairs = [line.split(maxsplit=1) for line in read_lines(file)]
    words = {wnid: "".join(name) for wnid, *name in pairs}
    if len(words) < 2:
        raise SourceError(
            f"{file}: lists {counted(len(words), 'class')}; at least two are required."
        )
    return words


def _read_split(root: Path, folder: Path, wnids: list[str]) -> Split:
    if absent := [wnid for wnid in wnids if not (folder / wnid).is_dir()]:
        what = f"{len(absent)} of {len(wnids)} class folders"
        raise missing(folder, [*absent[:8], *(["…"] if absent[8:] else [])], what=what, all_of=True)
    entries = []
    for label, wnid in enumerate(wnids):
        found = list_images(folder / wnid)
        if not found:
            raise SourceError(f"{folder / wnid}: holds no images.")
        entries += [(f"{folder.name}/{wnid}/{name}", label) for name in found]
    return image_split(root, entries)


_SIZE = 64
_WNIDS, _WORDS, _VAL = "wnids.txt", "words.txt", "val/val_annotations.txt"
TINY_IMAGENET_NEEDS: Final = in_any(
    ("", "tiny-imagenet-200/"), (_WNIDS, _WORDS, "train/", _VAL, "val/images/")
)


def read_tiny_imagenet(path: Path, *, complete: bool = True) -> Dataset:
    """Read the TinyImageNet data set, with `val` as the test split.

    Classes are numbered by their wnids in sorted order.

    Args:
        path: `tiny-imagenet-200` or the folder above.
        complete: require 200 classes, 100,000 training and 10,000 test images.
    """
    wnids_file = find(path, TINY_IMAGENET_NEEDS[0], what="TinyImageNet")
    folder = wnids_file.parent
    wnids = sorted(read_lines(wnids_file))
    train, test = _read_train(folder, wnids), _read_val(folder, wnids)
    if complete:
        check_counts(folder, (len(train), len(test)), (100_000, 10_000))
    words = dict(line.partition("\t")[::2] for line in read_lines(folder / _WORDS))
    return Dataset("tinyimagenet", "image", names_of(wnids, words), train, test)


def _read_train(folder: Path, wnids: list[str]) -> Split:
    entries = []
    for label, wnid in enumerate(wnids):
        images = find(folder, (f"train/{wnid}/images",), what=f"images of class {wnid}")
        names = sorted(file.name for file in images.glob("*.JPEG"))
        entries += [(f"train/{wnid}/images/{name}", label) for name in names]
    return image_split(folder, entries, size=_SIZE, resize=_SIZE)


def _read_val(folder: Path, wnids: list[str]) -> Split:
    file = find(folder, (_VAL,), what="the labels of val")
    labels = {wnid: label for label, wnid in enumerate(wnids)}
    entries = []
    for line in read_lines(file):
        name, _, rest = line.partition("\t")
        wnid = rest.partition("\t")[0]
        if wnid not in labels:
            raise SourceError(f"{file}: {name} is of class {wnid!r}, which is not in {_WNIDS}.")
        entries.append((f"val/images/{name}", labels[wnid]))
    return image_split(folder, entries, size=_SIZE, resize=_SIZE)
