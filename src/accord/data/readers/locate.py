"""Where a layout's files are, and what to say when they are not."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from accord.errors import SourceError

Spellings: TypeAlias = tuple[str, ...]  # where one file may be; a name that ends in / is a folder


def in_any(folders: Iterable[str], names: Iterable[str]) -> tuple[Spellings, ...]:
    """Return where each of some files may be, the first folder first.

    >>> in_any(("", "annotations/"), ("train.txt", "test.txt"))
    (('train.txt', 'annotations/train.txt'), ('test.txt', 'annotations/test.txt'))
    """
    places = tuple(folders)
    return tuple(tuple(f"{place}{name}" for place in places) for name in names)


def need_folder(path: Path, *, what: str) -> Path:
    """Return the path if it is a folder; else an error says what should be there."""
    if not path.exists():
        raise SourceError(f"{path}: no such folder. It should hold {what}.")
    if not path.is_dir():
        raise SourceError(f"{path}: a file, not a folder. Name the folder that holds {what}.")
    return path


def find(path: Path, names: Sequence[str], *, what: str) -> Path:
    """Return the first of these names that is there below `path`, file or folder."""
    need_folder(path, what=what)
    for name in names:
        if (path / name).exists():
            return path / name
    raise missing(path, names, what=what)


def find_all(path: Path, names: Sequence[str], *, what: str) -> list[Path]:
    """Return all of these names below `path`; an error lists those that are not there."""
    need_folder(path, what=what)
    absent = [name for name in names if not (path / name).exists()]
    if absent:
        raise missing(path, absent, what=what, all_of=True)
    return [path / name for name in names]


def missing(path: Path, names: Iterable[str], *, what: str, all_of: bool = False) -> SourceError:
    """Say what was looked for in a folder, in vain, and what is there instead."""
    there = sorted(child.name for child in path.iterdir())
    more = f" and {len(there) - 8} more" if len(there) > 8 else ""
    return SourceError(
        f"{path}: {what} not found. "
        f"{'Missing' if all_of else 'Looked for'}: {', '.join(names)}. "
        f"The folder holds {', '.join(there[:8]) or 'nothing'}{more}."
    )


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file that are not empty, stripped."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read as text: {error}") from error
    return [line.strip() for line in text.split("\n") if line.strip()]
