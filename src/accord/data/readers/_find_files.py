"""Utilities to find and verify published files."""

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from accord.errors import ChoiceError, SourceError, listed

Spellings: TypeAlias = tuple[str, ...]  # paths that one file may have; folders end in /


def names_of(wnids: Sequence[str], words: Mapping[str, str]) -> tuple[str, ...]:
    """Build unique class names from wnids.

    >>> names_of(["n1", "n2", "n3"], {"n1": "crane", "n2": "crane"})
    ('crane (n1)', 'crane (n2)', 'n3')
    """
    names = [words.get(wnid) or wnid for wnid in wnids]
    counts = Counter(names)
    return tuple(
        f"{name} ({wnid})" if counts[name] > 1 else name
        for wnid, name in zip(wnids, names, strict=True)
    )


def check_counts(
    where: Path, found: tuple[int, int], published: tuple[int | None, int | None]
) -> None:
    for part, count, wanted in zip(("training", "test"), found, published, strict=True):
        if wanted is not None and count != wanted:
            raise SourceError(
                f"{where}: holds {count:,} {part} samples; the published data have {wanted:,}. "
                "Is the download complete? To read a part of the data: complete=False"
            )


def check_checksums(files: Iterable[Path], published: Mapping[str, str]) -> None:
    for file in files:
        if file.name not in published:
            raise ChoiceError(
                f"{file}: no checksum was published for this file, only for "
                f"{', '.join(published)}. To read it without verification: verify=False"
            )
        wanted = published[file.name]
        digest = functools.partial(
            hashlib.new, "md5" if len(wanted) == 32 else "sha1", usedforsecurity=False
        )
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, digest).hexdigest()
        if found != wanted:
            raise SourceError(
                f"{file}: its checksum is {found}; the published file has {wanted}. "
                "It is damaged, modified or was compressed again."
            )


def in_any(folders: Sequence[str], names: Iterable[str]) -> tuple[Spellings, ...]:
    """List the possible paths of each file."""
    return tuple(tuple(f"{folder}{name}" for folder in folders) for name in names)


def need_folder(path: Path, *, what: str) -> Path:
    if not path.exists():
        raise SourceError(f"{path}: no such folder. Expected a folder with {what}.")
    if not path.is_dir():
        raise SourceError(f"{path}: is a file, not a folder. Name the folder that holds {what}.")
    return path


def find(path: Path, names: Sequence[str], *, what: str) -> Path:
    need_folder(path, what=what)
    for name in names:
        if (path / name).exists():
            return path / name
    raise missing(path, names, what=what)


def missing(path: Path, names: Iterable[str], *, what: str, all_of: bool = False) -> SourceError:
    found = sorted(child.name for child in path.iterdir())
    return SourceError(
        f"{path}: {what} not found. "
        f"{'Missing' if all_of else 'Looked for'}: {', '.join(names)}. "
        f"The folder holds {listed(found, most=8) or 'nothing'}."
    )


def read_lines(path: Path) -> list[str]:
    return [line.strip() for line in read_text(path).split("\n") if line.strip()]


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read as text: {error}") from error
