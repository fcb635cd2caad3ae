"""Look at every row of a record and say what is wrong with it."""

import itertools
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord._files import storage_error
from accord.errors import RowDamaged
from accord.store import _layout as layout
from accord.store._layout import committed_epochs, read_commit
from accord.store._metadata import read_fact, read_root, read_sample_info
from accord.store._record_reader import SampleInfo
from accord.store._recorded import (
    PackedReader,
    network_facts,
    network_lengths,
    network_numbers,
    read_row,
)
from accord.store._storage import Storage, open_storage


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
    metadata: dict[int, dict[str, Any]]  # network number -> what its recorder was told
    size: int | None  # bytes on a local disk


def describe(location: str | os.PathLike[str]) -> Description:
    """Describe a record; networks may be of unequal length, or hold nothing yet."""
    place = open_storage(location)
    root = read_root(place)
    packed = root["layout"] == layout.PACKED
    if packed:
        rows = PackedReader(place)
        epochs = dict.fromkeys(rows.numbers, rows.epochs)
        about = {told.network: told.metadata for told in rows.networks_info()}
        versions = [told.made_with for told in rows.networks_info()]
        probabilities = rows.has_probabilities
    else:
        epochs = network_lengths(place)
        said = {number: network_facts(place, number) for number in epochs}
        about = {number: sample_info.get("about", {}) for number, sample_info in said.items()}
        versions = [sample_info.get("made_with", {}) for sample_info in said.values()]
        kept = [
            layout.PROBABILITIES in sample_info.get("arrays", ()) for sample_info in said.values()
        ]
        probabilities = bool(kept) and all(kept)
    sample_info = read_sample_info(place)
    has = [fact for fact in layout.FACTS if getattr(sample_info, fact) is not None]
    return Description(
        path=place.name,
        packed=packed,
        format=root["format"],
        epochs=epochs,
        samples=sample_info.samples,
        classes=sample_info.classes,
        split=sample_info.split,
        has=(*has, *([layout.PROBABILITIES] if probabilities else ())),
        class_names=sample_info.class_names,
        created=root.get("created"),
        made_with=next(filter(None, versions), root.get("made_with", {})),
        metadata=about,
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


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing about a record; `damage` means that something is lost."""

    text: str
    damage: bool = False


@dataclass(frozen=True)
class CheckReport:
    """What a check looked at and what it found."""

    rows: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether every committed row can be read back."""
        return not any(finding.damage for finding in self.findings)


def check_record(location: str | os.PathLike[str]) -> CheckReport:
    """Read every row and compare it with its checksum.

    Leftovers of interrupted writers and networks of unequal length are told, not held
    against the record: only damaged rows make it unsound.
    """
    place = open_storage(location)
    root = read_root(place)
    if root["layout"] == layout.PACKED:
        return _check_packed(place)
    sample_info = SampleInfo(root["samples"], root["classes"])
    lengths: dict[int, int] = {}
    findings = [*_check_facts(place)]
    for number in network_numbers(place):
        findings += _check_network(place, number, sample_info, lengths)
    findings += _check_lengths(lengths)
    findings += _check_parts(place)
    return CheckReport(sum(lengths.values()), tuple(findings))


def _check_facts(place: Storage) -> Iterator[Finding]:
    for fact in layout.FACTS:
        try:
            read_fact(place, fact)
        except RowDamaged as error:
            yield Finding(str(error), damage=True)


def _check_network(
    place: Storage, number: int, sample_info: SampleInfo, lengths: dict[int, int]
) -> Iterator[Finding]:
    try:
        epochs = lengths[number] = committed_epochs(place, number)
        network_facts(place, number)
    except RowDamaged as error:
        yield Finding(str(error), damage=True)
        return
    for epoch in range(epochs):
        yield from _check_row(place, number, epoch, sample_info)
    for array in (layout.LABELS, layout.PROBABILITIES):
        yield from _check_leftovers(place, number, array, epochs)


def _check_row(
    place: Storage, number: int, epoch: int, sample_info: SampleInfo
) -> Iterator[Finding]:
    where = f"network {number}, epoch {epoch}"
    try:
        commit = read_commit(place, number, epoch)
        for array in commit["objects"]:
            values = read_row(place, number, epoch, commit, array=array, sample_info=sample_info)
            if array == layout.LABELS and _strays(values, sample_info.classes):
                yield Finding(f"{where}: a label is outside the classes", damage=True)
    except RowDamaged as error:
        yield Finding(str(error).partition(". To see")[0], damage=True)


def _check_leftovers(place: Storage, number: int, array: str, epochs: int) -> Iterator[Finding]:
    for name in place.children(f"{layout.network_folder(number)}/{array}"):
        epoch = name.split(".")[1] if name.startswith("c.") else ""
        if epoch.isdecimal() and int(epoch) >= epochs:
            yield Finding(
                f"network {number}, epoch {epoch}: {array} without a commit, left by a writer "
                "that was stopped or is writing now; the next recorder overwrites it"
            )


def _check_lengths(lengths: dict[int, int]) -> Iterator[Finding]:
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"network {number}: {epochs}" for number, epochs in lengths.items())
        yield Finding(f"the networks hold different numbers of epochs ({told})")
    if not any(lengths.values()):
        yield Finding("the record holds no epochs yet")


def _check_parts(place: Storage) -> Iterator[Finding]:
    for name in place.unfinished():
        yield Finding(
            f"{name}: half-written, left by a writer that was stopped or is writing now; "
            "it does no harm"
        )


def _check_packed(place: Storage) -> CheckReport:
    rows = PackedReader(place, damaged=True)
    findings = [*_check_facts(place)]
    for name in (layout.LABELS, layout.PROBABILITIES)[: 1 + rows.has_probabilities]:
        findings += [*_check_form(rows, name), *_check_chunks(rows, name)]
    return CheckReport(rows.networks * rows.epochs, tuple(findings))


def _check_form(rows: PackedReader, name: str) -> Iterator[Finding]:
    try:
        rows.check_form(name)
    except RowDamaged as error:
        yield Finding(str(error), damage=True)


def _check_chunks(rows: PackedReader, name: str) -> Iterator[Finding]:
    read = rows.read_labels if name == layout.LABELS else rows.read_probabilities
    _, epoch_step, sample_step, *class_step = rows.chunks(name)
    there = set(rows.place.children(name))
    corners = itertools.product(
        range(rows.networks),
        range(0, rows.epochs, epoch_step),
        range(0, rows.samples, sample_step),
    )
    for network, epoch, sample in corners:
        epochs = range(epoch, min(epoch + epoch_step, rows.epochs))
        samples = slice(sample, min(sample + sample_step, rows.samples))
        where = (
            f"network {rows.numbers[network]}, epochs {epochs.start}..{epochs.stop - 1}, "
            f"samples {samples.start}..{samples.stop - 1}"
        )
        numbers = network, epoch // epoch_step, sample // sample_step, *(0 for _ in class_step)
        if rows.chunk_name(name, numbers) not in there:
            yield Finding(f"{where}: the {name} are missing", damage=True)
            continue
        try:
            values = read([network], epochs, samples)
        except RowDamaged:
            yield Finding(f"{where}: the {name} cannot be read back", damage=True)
            continue
        if name == layout.LABELS and _strays(values, rows.classes):
            yield Finding(f"{where}: a label is outside the classes", damage=True)


def _strays(labels: NDArray[Any], classes: int) -> bool:
    return bool(np.any(labels >= classes))
