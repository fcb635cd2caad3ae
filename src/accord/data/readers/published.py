"""What the publishers say of their data: how much there is, and its checksums."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from accord.errors import ChoiceError, SourceError


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
