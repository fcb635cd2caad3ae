"""Where a layout's files are, and what to say when they are not."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from accord.errors import ChoiceError, SourceError


def names_of(wnids: Sequence[str], words: Mapping[str, str]) -> tuple[str, ...]:
    """Return a name for each wnid, all different: the wnid itself where there is none.

    >>> names_of(["n1", "n2", "n3"], {"n1": "crane", "n2": "crane"})
    ('crane (n1)', 'crane (n2)', 'n3')
    """
    names = [words.get(wnid) or wnid for wnid in wnids]
    often = Counter(names)
    return tuple(
        f"{name} ({wnid})" if often[name] > 1 else name
        for wnid, name in zip(wnids, names, strict=True)
    )


def check_counts(
    where: Path, found: tuple[int, int], published: tuple[int | None, int | None]
) -> None:
    """Refuse other numbers of training and test samples than the published ones."""
    for part, count, wanted in zip(("training", "test"), found, published, strict=True):
        if wanted is not None and count != wanted:
            raise SourceError(
                f"{where}: holds {count:,} {part} samples; the published data have {wanted:,}. "
                "Is the download complete? To read a part of the data: complete=False"
            )


def check_checksums(files: Iterable[Path], published: Mapping[str, str]) -> None:
    """Refuse files that differ from the published ones, by MD5 or SHA-1."""
    for file in files:
        if file.name not in published:
            raise ChoiceError(
                f"{file}: no checksum was published for this file; there are some for "
                f"{', '.join(published)}. To read it unverified: verify=False"
            )
        wanted = published[file.name]
        found = _checksum(file, "md5" if len(wanted) == 32 else "sha1")
        if found != wanted:
            raise SourceError(
                f"{file}: its checksum is {found}; the published file has {wanted}. "
                "It is damaged, changed or compressed anew."
            )


def _checksum(file: Path, algorithm: str) -> str:
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, lambda: hashlib.new(algorithm, usedforsecurity=False))
    return digest.hexdigest()


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
