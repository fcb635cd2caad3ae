"""Reader of images in one folder per class."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np

from accord.data._dataset import Dataset, Split, hold_out
from accord.data._image_files import ImageFiles
from accord.data.readers._find_files import need_folder
from accord.errors import ChoiceError, SourceError, counted

ENDINGS: Final = frozenset(
    {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
)
TRAIN: Final = ("train", "training")
TEST: Final = ("test", "testing", "val", "valid", "validation")


def read_image_folder(path: Path, *, held_out: float | None = None, seed: int = 0) -> Dataset:
    """Read images from one folder per class.

    Classes are numbered by the sorted names of their folders. Images may lie in subfolders.

    Args:
        path: a folder with `train` and `test` (or `val`), each with one folder per class; or
            with the class folders, where `held_out` makes the test split.
        held_out: the share of each class to test on, between 0 and 1.
        seed: selects the images that are held out.
    """
    need_folder(path, what="one folder of images per class")
    parts = [first_of(path, names) for names in (TRAIN, TEST)]
    if parts[0] and parts[1] and held_out is None:
        names = _class_folders(parts[0])
        train, test = (_read_split(path, part, names) for part in parts if part)
    else:
        if held_out is None:
            raise ChoiceError(
                f"{path}: there is no test set. Looked for {', '.join(TRAIN)} and "
                f"{', '.join(TEST)}. To hold out a share of the images: held_out=0.2"
            )
        if parts[1] is not None:
            raise ChoiceError(f"{parts[1]}: is the test set; leave out held_out.")
        names = _class_folders(parts[0] or path)
        train, test = hold_out(_read_split(path, parts[0] or path, names), held_out, seed)
    notes = _notes(path)
    return Dataset(path.name, "image", tuple(names), train=train, test=test, notes=notes)


def list_images(folder: Path) -> list[str]:
    """List the relative paths of all images below a folder."""
    return sorted(
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.suffix.lower() in ENDINGS and not _is_hidden(file, folder)
    )


def image_split(
    root: Path, entries: Iterable[tuple[str, int]], *, size: int = 224, resize: int = 256
) -> Split:
    """Build a split from image files and their labels."""
    listed = list(entries)
    names = tuple(name for name, _ in listed)
    labels = np.array([label for _, label in listed], np.int64)
    return Split(ImageFiles(root, names, size=size, resize=resize), labels, ids=np.array(names))


def _is_hidden(file: Path, folder: Path) -> bool:
    # Also inside a hidden folder, such as .thumbnails.
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def first_of(path: Path, names: tuple[str, ...]) -> Path | None:
    """Find the first existing folder below a path."""
    return next((path / name for name in names if (path / name).is_dir()), None)


def _class_folders(folder: Path) -> list[str]:
    names = sorted(
        child.name
        for child in folder.iterdir()
        if child.is_dir() and not child.name.startswith(".")
    )
    if len(names) < 2:
        raise SourceError(
            f"{folder}: expected a folder of images for each of two or more classes; "
            f"it has {', '.join(names) or 'none'}."
        )
    return names


def _read_split(root: Path, folder: Path, classes: list[str]) -> Split:
    if unknown := sorted(set(_class_folders(folder)) - set(classes)):
        raise SourceError(
            f"{folder}: classes {', '.join(unknown)} are not among the training classes."
        )
    below = "" if folder == root else f"{folder.name}/"
    return image_split(
        root,
        (
            (f"{below}{name}/{image}", label)
            for label, name in enumerate(classes)
            if (folder / name).is_dir()
            for image in list_images(folder / name)
        ),
    )


def _notes(path: Path) -> tuple[str, ...]:
    others = [
        file.relative_to(path).as_posix()
        for file in path.rglob("*")
        if file.is_file() and file.suffix.lower() not in ENDINGS and not _is_hidden(file, path)
    ]
    if not others:
        return ()
    shown = ", ".join(sorted(others)[:3]) + (", …" if len(others) > 3 else "")
    return (f"left out {counted(len(others), 'file')} without an image's ending: {shown}",)
