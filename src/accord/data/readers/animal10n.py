"""ANIMAL-10N, as it is published."""

from pathlib import Path
from typing import Final

import numpy as np

from accord.data.dataset import Dataset, Split
from accord.data.image_files import ImageFiles
from accord.data.readers.image_folder import list_images
from accord.data.readers.locate import find
from accord.data.readers.published import check_counts
from accord.errors import SourceError

NAMES: Final = (
    *("cat", "lynx", "wolf", "coyote", "cheetah"),
    *("jaguar", "chimpanzee", "orangutan", "hamster", "guinea pig"),
)
_SIZE = 64
NEEDS: Final = (("training/",), ("testing/",))


def read_animal10n(path: Path, *, complete: bool = True) -> Dataset:
    """Read `training` (labels by people, some wrong) and `testing` (clean).

    A file's label is the first character of its name; files come in sorted order.

    Args:
        path: the folder that holds `training` and `testing`.
        complete: refuse other than 50,000 training and 5,000 test images.
    """
    folders = [find(path, names, what="ANIMAL-10N") for names in NEEDS]
    train, test = (_read_split(path, folder) for folder in folders)
    if complete:
        check_counts(path, (len(train), len(test)), (50_000, 5_000))
    return Dataset("animal10n", "image", NAMES, train=train, test=test)


def _read_split(root: Path, folder: Path) -> Split:
    found = list_images(folder)
    labels = [Path(name).name[0] for name in found]
    wrong = [name for name, label in zip(found, labels, strict=True) if not label.isdecimal()]
    if wrong:
        raise SourceError(
            f"{folder / wrong[0]}: a file's label is the first character of its name, 0 to 9."
        )
    names = tuple(f"{folder.name}/{name}" for name in found)
    files = ImageFiles(root, names, size=_SIZE, resize=_SIZE)
    return Split(files, np.array([int(label) for label in labels], np.int64), ids=np.array(names))
