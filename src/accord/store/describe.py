"""Say what a record holds without reading its rows, even while it is incomplete."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accord.store import layout
from accord.store.facts import read_facts, read_root
from accord.store.places import open_place, storage_error
from accord.store.reader import PackedRows, network_facts, network_lengths


@dataclass(frozen=True)
class Description:
    """What a record holds."""

    path: str
    packed: bool
    format: int
    epochs: dict[int, int]  # network number -> epochs
    samples: int
    classes: int
    split: str
    has: tuple[str, ...]  # of truth, given, ids, class_names, probabilities
    class_names: tuple[str, ...] | None
    created: str | None
    made_with: dict[str, str]  # what the first network was recorded with
    about: dict[int, dict[str, Any]]  # network number -> what its recorder was told
    size: int | None  # bytes on a local disk


def describe(location: str | os.PathLike[str]) -> Description:
    """Describe a record; networks may be of unequal length, or hold nothing yet."""
    place = open_place(location)
    root = read_root(place)
    packed = root["layout"] == layout.PACKED
    if packed:
        rows = PackedRows(place)
        epochs = dict.fromkeys(rows.numbers, rows.epochs)
        about = {told.network: told.about for told in rows.told()}
        versions = [told.made_with for told in rows.told()]
        probabilities = rows.has_probabilities
    else:
        epochs = network_lengths(place)
        said = {number: network_facts(place, number) for number in epochs}
        about = {number: facts.get("about", {}) for number, facts in said.items()}
        versions = [facts.get("made_with", {}) for facts in said.values()]
        kept = [layout.PROBABILITIES in facts.get("arrays", ()) for facts in said.values()]
        probabilities = bool(kept) and all(kept)
    facts = read_facts(place)
    has = [fact for fact in layout.FACTS if getattr(facts, fact) is not None]
    return Description(
        path=place.name,
        packed=packed,
        format=root["format"],
        epochs=epochs,
        samples=facts.samples,
        classes=facts.classes,
        split=facts.split,
        has=(*has, *([layout.PROBABILITIES] if probabilities else ())),
        class_names=facts.class_names,
        created=root.get("created"),
        made_with=next(filter(None, versions), root.get("made_with", {})),
        about=about,
        size=_size(getattr(place, "path", None)),
    )


def _size(path: Path | None) -> int | None:
    if path is None:
        return None
    return _bytes_of(path) + sum(map(_bytes_of, path.rglob("*")))


def _bytes_of(path: Path) -> int:
    try:
        found = path.stat()
    except FileNotFoundError:  # a writer has renamed it since it was listed
        return 0
    except OSError as error:
        raise storage_error(path, error, "read") from error
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
