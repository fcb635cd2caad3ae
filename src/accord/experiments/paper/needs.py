"""Which files each kind of data needs: what is missing is known before anything is read."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accord.data.readers import find_reader
from accord.data.readers.locate import Spellings


def missing_file(kind: str, folder: Path, options: Mapping[str, Any]) -> str | None:
    """Return the first file that a reader would look for in vain, by its published name, or None.

    Looks at names alone; whether the files are whole, their reader tells.

    Args:
        kind: a key of `accord.data.readers.READERS`.
        folder: where the data should be.
        options: those of the reader.
    """
    for spellings in _needs_of(kind, options):
        if not any(_is_there(folder, spelling) for spelling in spellings):
            return spellings[0].rstrip("/")
    return None


def _is_there(folder: Path, spelling: str) -> bool:
    # The folder may be a link: what lies beside it is beside the link, not beside its end.
    beside = spelling.startswith("../")
    path = folder.parent / spelling.removeprefix("../") if beside else folder / spelling
    if "*" in spelling:
        return any(path.parent.glob(path.name))
    if not spelling.endswith("/"):
        return path.exists()
    if not path.is_dir():
        return False
    with os.scandir(path) as entries:  # one is enough, of a million
        return next(entries, None) is not None


def _needs_of(kind: str, options: Mapping[str, Any]) -> tuple[Spellings, ...]:
    needs = find_reader(kind).needs
    if kind == "imagenet" and options.get("class_list"):
        listed = Path(options["class_list"])  # in the folder, or from where the command runs
        return (*needs, (str(listed), str(listed.absolute())))
    return needs
