"""Readers of WebVision, Clothing1M and ANIMAL-10N."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from accord.data._dataset import Dataset, Split
from accord.data._image_files import ImageFiles
from accord.data.readers._find_files import check_counts, find, in_any, names_of, read_lines
from accord.data.readers.image_folder import image_split, list_images
from accord.errors import ChoiceError, SourceError

_SOURCES: Final = ("google", "flickr")
_VAL: Final = ("val_images_256", "val_images", "val_images_resized")
WEBVISION_NEEDS: Final = (
    *((f"info/train_filelist_{source}.txt",) for source in _SOURCES),
    ("info/val_filelist.txt",),
    tuple(f"{folder}/" for folder in _VAL),
)


def read_webvision50(
    path: Path, *, sources: Sequence[str] = _SOURCES, classes: int = 50
) -> Dataset:
    """Read the first `classes` classes of the WebVision data set.

    The paper uses Google and Flickr, about 100,000 images; "mini-WebVision" elsewhere is
    Google alone, 65,944 images.

    Args:
        path: the folder of `info`, the sources and `val_images_256` (test images).
        sources: "google", "flickr", or both.
        classes: the number of classes to read, of 1,000.
    """
    info = find(path, ("info",), what="WebVision's file lists")
    train: list[tuple[str, int]] = []
    for source in sources:
        if source not in _SOURCES:
            raise ChoiceError(f"sources must be 'google' or 'flickr'; got {source!r}.")
        file = find(info, (f"train_filelist_{source}.txt",), what=f"images from {source}")
        train += _read_labels(file)
    folder = find(path, _VAL, what="test images").name
    test = _read_labels(find(info, ("val_filelist.txt",), what="the list of test images"))
    return Dataset(
        "webvision50",
        "image",
        _class_names(info, classes),
        train=image_split(path, [entry for entry in train if entry[1] < classes]),
        test=image_split(
            path, [(f"{folder}/{name}", label) for name, label in test if label < classes]
        ),
    )


def _read_labels(file: Path) -> list[tuple[str, int]]:
    entries = []
    for line in read_lines(file):
        name, _, label = line.rpartition(" ")
        if not label.isdecimal():
            raise SourceError(f"{file}: each line must be 'path label'; got {line!r}.")
        entries.append((name, int(label)))
    return entries


def _class_names(info: Path, classes: int) -> tuple[str, ...]:
    file = info / "synsets.txt"  # one "wnid name" per line, in the order of the labels
    if not file.is_file():
        return tuple(str(number) for number in range(classes))
    pairs = [line.partition(" ")[::2] for line in read_lines(file)[:classes]]
    return names_of([wnid for wnid, _ in pairs], dict(pairs))


CLOTHING1M_CLASSES: Final = (
    *("T-Shirt", "Shirt", "Knitwear", "Chiffon", "Sweater", "Hoodie", "Windbreaker"),
    *("Jacket", "Downcoat", "Suit", "Shawl", "Dress", "Vest", "Underwear"),
)
_KEYS, _LABELS, _CLEAN = "noisy_train_key_list.txt", "noisy_label_kv.txt", "clean_label_kv.txt"
CLOTHING1M_NEEDS: Final = in_any(
    ("", "annotations/"), (_KEYS, _LABELS, "clean_test_key_list.txt", _CLEAN)
)
_TESTS: Final = {"clean_test": 10_526, "clean_val": 14_313}


def read_clothing1m(path: Path, *, test: str = "clean_test", complete: bool = True) -> Dataset:
    """Read the Clothing1M data set.

    Args:
        path: the folder of the key lists (noisy for training, clean for testing), or of
            `annotations` with them.
        test: "clean_test" or "clean_val".
        complete: require the published numbers of images.
    """
    if test not in _TESTS:
        raise ChoiceError(f"test must be 'clean_test' or 'clean_val'; got {test!r}.")
    lists = find(path, CLOTHING1M_NEEDS[0], what="Clothing1M's key lists").parent
    train_split = _read_clothing1m_split(path, lists, _KEYS, _LABELS)
    test_split = _read_clothing1m_split(path, lists, f"{test}_key_list.txt", _CLEAN)
    if complete:
        check_counts(path, (len(train_split), len(test_split)), (1_000_000, _TESTS[test]))
    return Dataset("clothing1m", "image", CLOTHING1M_CLASSES, train=train_split, test=test_split)


def _read_clothing1m_split(root: Path, lists: Path, keys_name: str, labels_name: str) -> Split:
    keys_file = find(lists, (keys_name,), what="a list of images")
    labels_file = find(lists, (labels_name,), what="a list of labels")
    keys = read_lines(keys_file)
    labels = dict(_read_labels(labels_file))
    if absent := [key for key in keys if key not in labels]:
        raise SourceError(
            f"{labels_file}: has no label for {len(absent):,} of the images in {keys_name}: "
            f"{', '.join(absent[:3])}."
        )
    files = ImageFiles(root, tuple(_below(root, keys)))
    return Split(files, np.array([labels[key] for key in keys], np.int64), ids=np.array(keys))


def _below(root: Path, keys: list[str]) -> list[str]:
    # The keys start with images/, but the archives unpack to 0, 1, …: both are in use.
    if not keys or (root / keys[0]).exists():
        return keys
    bare = [key.removeprefix("images/") for key in keys]
    if (root / bare[0]).exists():
        return bare
    raise SourceError(
        f"{root}: the first image is missing. Looked for {keys[0]} and {bare[0]}. "
        "Are the image archives unpacked?"
    )


ANIMAL10N_CLASSES: Final = (
    *("cat", "lynx", "wolf", "coyote", "cheetah"),
    *("jaguar", "chimpanzee", "orangutan", "hamster", "guinea pig"),
)
ANIMAL10N_NEEDS: Final = (("training/",), ("testing/",))


def read_animal10n(path: Path, *, complete: bool = True) -> Dataset:
    """Read the ANIMAL-10N data set.

    The label of a file is the first character of its name; files are in sorted order.

    Args:
        path: the folder of `training` (noisy labels) and `testing` (clean labels).
        complete: require all 50,000 training and 5,000 test images.
    """
    folders = [find(path, names, what="ANIMAL-10N") for names in ANIMAL10N_NEEDS]
    train, test = (_read_animal10n_split(path, folder) for folder in folders)
    if complete:
        check_counts(path, (len(train), len(test)), (50_000, 5_000))
    return Dataset("animal10n", "image", ANIMAL10N_CLASSES, train=train, test=test)


def _read_animal10n_split(root: Path, folder: Path) -> Split:
    found = list_images(folder)
    if wrong := [name for name in found if not Path(name).name[0].isdecimal()]:
        raise SourceError(f"{folder / wrong[0]}: the name must start with the label, 0 to 9.")
    entries = ((f"{folder.name}/{name}", int(Path(name).name[0])) for name in found)
    return image_split(root, entries, size=64, resize=64)
