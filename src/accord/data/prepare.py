"""What a user may ask of a data set's image files: another size, a cache, to skip the damaged."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from accord.data.dataset import Dataset, Split
from accord.data.image_cache import cache_images
from accord.data.image_files import ImageFiles
from accord.errors import ChoiceError, counted

if TYPE_CHECKING:
    from accord.store.progress import CountProgress

IMAGE_OPTIONS: Final[Mapping[str, Any]] = {  # and their types
    "size": int | None,
    "resize": int | None,
    "cache": str | os.PathLike[str] | None,
    "skip_unreadable": bool,
}


def prepare_images(
    dataset: Dataset,
    *,
    size: int | None = None,
    resize: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    skip_unreadable: bool = False,
    progress: "CountProgress | None" = None,
) -> Dataset:
    """Set the size of a data set's images, cache them, leave out those that cannot be read.

    Args:
        dataset: its inputs are `ImageFiles`.
        size: rows and columns of the middle part that is kept.
        resize: pixels of the shorter side before that. A new `size` alone keeps the
            ratio of the two.
        cache: folder to keep decoded images in; see `accord.data.image_cache`.
        skip_unreadable: leave out files that are no images and say so in `notes`.
            Every file is decoded once to know, or once ever with `cache`.
        progress: called with images done and images in all, for each split.

    Raises:
        SourceError: without `skip_unreadable`, a file that is no image, if `cache` finds one.

    """
    notes = list(dataset.notes)
    splits = {}
    for part in ("train", "test"):
        split: Split = getattr(dataset, part)
        files = _resized(_files_of(dataset.name, split), size, resize)
        if cache is not None:
            files = cache_images(files, cache, skip_unreadable=skip_unreadable, progress=progress)
        split = replace(split, inputs=files)
        splits[part] = _skip(split, files, part, notes) if skip_unreadable else split
    return replace(dataset, **splits, notes=tuple(notes))  # type: ignore[arg-type]


def _files_of(name: str, split: Split) -> ImageFiles:
    if not isinstance(split.inputs, ImageFiles):
        raise ChoiceError(
            f"{name} is not read from image files; {', '.join(IMAGE_OPTIONS)} do not apply."
        )
    return split.inputs


def _resized(files: ImageFiles, size: int | None, resize: int | None) -> ImageFiles:
    size = files.size if size is None else size
    if resize is None:
        resize = max(size, round(files.resize * size / files.size))
    return replace(files, size=size, resize=resize)


def _skip(split: Split, files: ImageFiles, part: str, notes: list[str]) -> Split:
    unreadable = files.find_unreadable()
    if not len(unreadable):
        return split
    names = [files.names[sample] for sample in unreadable[:3].tolist()]
    more = ", …" if len(unreadable) > 3 else ""
    images = counted(len(unreadable), "image")
    notes.append(f"{part}: left out {images} that cannot be read: {', '.join(names)}{more}")
    return split.choose(np.delete(np.arange(len(split)), unreadable))
