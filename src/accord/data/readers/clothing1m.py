"""Clothing1M, as it is published."""

from pathlib import Path
from typing import Final

import numpy as np

from accord.data.dataset import Dataset, Split
from accord.data.image_files import ImageFiles
from accord.data.readers.locate import find, in_any, read_lines
from accord.data.readers.published import check_counts
from accord.errors import ChoiceError, SourceError

NAMES: Final = (
    *("T-Shirt", "Shirt", "Knitwear", "Chiffon", "Sweater", "Hoodie", "Windbreaker"),
    *("Jacket", "Downcoat", "Suit", "Shawl", "Dress", "Vest", "Underwear"),
)
_KEYS, _LABELS, _CLEAN = "noisy_train_key_list.txt", "noisy_label_kv.txt", "clean_label_kv.txt"
NEEDS: Final = in_any(("", "annotations/"), (_KEYS, _LABELS, "clean_test_key_list.txt", _CLEAN))
_TESTS: Final = {"clean_test": 10_526, "clean_val": 14_313}
_TRAIN = 1_000_000


def read_clothing1m(path: Path, *, test: str = "clean_test", complete: bool = True) -> Dataset:
    """Read a million images with noisy labels to train on, and clean ones to test on.

    Args:
        path: the folder that holds the key lists, or has them in `annotations`.
        test: "clean_test" or "clean_val".
        complete: refuse other than the published numbers of images.
    """
    if test not in _TESTS:
        raise ChoiceError(f"test on 'clean_test' or 'clean_val'; got {test!r}.")
    lists = find(path, NEEDS[0], what="Clothing1M's key lists").parent
    train_split = _read_split(path, lists, _KEYS, _LABELS)
    test_split = _read_split(path, lists, f"{test}_key_list.txt", _CLEAN)
    if complete:
        check_counts(path, (len(train_split), len(test_split)), (_TRAIN, _TESTS[test]))
    return Dataset("clothing1m", "image", NAMES, train=train_split, test=test_split)


def _read_split(root: Path, lists: Path, keys_name: str, labels_name: str) -> Split:
    keys_file = find(lists, (keys_name,), what="a list of images")
    labels_file = find(lists, (labels_name,), what="a list of labels")
    keys = read_lines(keys_file)
    labels = _read_labels(labels_file)
    absent = [key for key in keys if key not in labels]
    if absent:
        raise SourceError(
            f"{labels_file}: no label for {len(absent):,} of the images in {keys_name}: "
            f"{', '.join(absent[:3])}."
        )
    files = ImageFiles(root, tuple(_below(root, keys)))
    return Split(files, np.array([labels[key] for key in keys], np.int64), ids=np.array(keys))


def _read_labels(file: Path) -> dict[str, int]:
    labels = {}
    for line in read_lines(file):
        key, _, label = line.rpartition(" ")
        if not label.isdecimal():
            raise SourceError(f"{file}: each line must be 'path label'; got {line!r}.")
        labels[key] = int(label)
    return labels


def _below(root: Path, keys: list[str]) -> list[str]:
    # The keys begin with images/, but the archives unpack to 0, 1, …: both are in use.
    if not keys or (root / keys[0]).exists():
        return keys
    bare = [key.removeprefix("images/") for key in keys]
    if (root / bare[0]).exists():
        return bare
    raise SourceError(
        f"{root}: the first image is not there. Looked for {keys[0]} and {bare[0]}. "
        "Are the image archives unpacked?"
    )
