"""Describe records and verify their checksums."""

import itertools
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accord._files import storage_error
from accord.errors import RowDamaged
from accord.store import _record_format as layout
from accord.store._metadata import (
    open_record_storage,
    read_root,
    read_sample_array,
    read_sample_info,
)
from accord.store._packed_reader import PackedReader
from accord.store._record_format import committed_epochs, read_commit
from accord.store._record_reader import SampleInfo
from accord.store._storage import Storage, open_storage
from accord.store._unpacked_reader import network_lengths, network_numbers, read_network, read_row


@dataclass(frozen=True)
class Description:
    """Summary of the contents of a record."""

    path: str
    packed: bool
    format: int
    epochs: dict[int, int]  # network number -> epochs
    samples: int
    classes: int
    split: str
    has: tuple[str, ...]  # some of truth, given, ids, class_names, probabilities
    class_names: tuple[str, ...] | None
    created: str | None
    made_with: dict[str, str]  # versions of the packages that wrote the first network
    metadata: dict[int, dict[str, Any]]  # network number -> metadata
    missing: float  # the share of votes that are missing
    size: int | None  # bytes on a local disk


def describe(location: str | os.PathLike[str], *, split: str | None = None) -> Description:
    """Summarize the contents of a record, or of one record of a run folder."""
    storage = open_record_storage(location, split=split)
    root = read_root(storage)
    packed = root["layout"] == layout.PACKED
    if packed:
        reader = PackedReader(storage)
        epochs = dict.fromkeys(reader.numbers, reader.epochs)
        metadata = {info.network: info.metadata for info in reader.networks_info()}
        versions = [info.made_with for info in reader.networks_info()]
        probabilities = reader.has_probabilities
    else:
        epochs = network_lengths(storage)
        networks = {number: read_network(storage, number) for number in epochs}
        metadata = {number: one.get(layout.METADATA, {}) for number, one in networks.items()}
        versions = [one.get("made_with", {}) for one in networks.values()]
        arrays = [one.get("arrays", ()) for one in networks.values()]
        probabilities = bool(arrays) and all(layout.PROBABILITIES in one for one in arrays)
    sample_info = read_sample_info(storage)
    path: Path | None = getattr(storage, "path", None)
    size = None if path is None else _bytes_of(path) + sum(map(_bytes_of, path.rglob("*")))
    has = [name for name in layout.SAMPLE_ARRAYS if getattr(sample_info, name) is not None]
    return Description(
        path=storage.name,
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
        metadata=metadata,
        missing=root.get("missing_votes", 0) / max(1, sum(epochs.values()) * root["samples"]),
        size=size,
    )


def _bytes_of(path: Path) -> int:
    try:
        found = path.stat()
    except FileNotFoundError:  # renamed by a writer since it was listed
        return 0
    except OSError as error:
        raise storage_error(path, error, "read") from error
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


@dataclass(frozen=True)
class Finding:
    """Observation about a record, with `damage` set if data are lost."""

    text: str
    damage: bool = False


@dataclass(frozen=True)
class CheckReport:
    """Result of checking a record."""

    rows: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether every committed row can be read back."""
        return not any(finding.damage for finding in self.findings)


def check_record(location: str | os.PathLike[str]) -> CheckReport:
    """Verify the checksum of every row in a record.

    Leftovers of interrupted writers and networks of unequal length are reported, but only
    damaged rows make the record unsound.
    """
    storage = open_storage(location)
    root = read_root(storage)
    if root["layout"] == layout.PACKED:
        return _check_packed(storage)
    sample_info = SampleInfo(root["samples"], root["classes"])
    lengths: dict[int, int] = {}
    findings = [*_check_sample_arrays(storage)]
    for number in network_numbers(storage):
        findings += _check_network(storage, number, sample_info, lengths)
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"network {number}: {epochs}" for number, epochs in lengths.items())
        findings.append(Finding(f"the networks have different numbers of epochs ({listed})"))
    if not any(lengths.values()):
        findings.append(Finding("the record has no epochs yet"))
    findings += [
        Finding(
            f"{name}: partially written, by a writer that was stopped or is still writing; harmless"
        )
        for name in storage.unfinished()
    ]
    return CheckReport(sum(lengths.values()), tuple(findings))


def _check_sample_arrays(storage: Storage) -> Iterator[Finding]:
    for name in layout.SAMPLE_ARRAYS:
        try:
            read_sample_array(storage, name)
        except RowDamaged as error:
            yield Finding(str(error), damage=True)


def _check_network(
    storage: Storage, number: int, sample_info: SampleInfo, lengths: dict[int, int]
) -> Iterator[Finding]:
    try:
        epochs = lengths[number] = committed_epochs(storage, number)
        read_network(storage, number)
    except RowDamaged as error:
        yield Finding(str(error), damage=True)
        return
    for epoch in range(epochs):
        yield from _check_row(storage, number, epoch, sample_info)
    for array in (layout.LABELS, layout.PROBABILITIES):
        yield from _check_leftovers(storage, number, array, epochs)


def _check_row(
    storage: Storage, number: int, epoch: int, sample_info: SampleInfo
) -> Iterator[Finding]:
    where = f"network {number}, epoch {epoch}"
    try:
        commit = read_commit(storage, number, epoch)
        for array in commit["objects"]:
            values = read_row(storage, number, epoch, commit, array=array, sample_info=sample_info)
            if array == layout.LABELS and (values >= sample_info.classes).any():
                yield Finding(f"{where}: a label is not one of the classes", damage=True)
    except RowDamaged as error:
        yield Finding(str(error).partition(". To list")[0], damage=True)


def _check_leftovers(storage: Storage, number: int, array: str, epochs: int) -> Iterator[Finding]:
    for name in storage.children(f"{layout.network_folder(number)}/{array}"):
        epoch = name.split(".")[1] if name.startswith("c.") else ""
        if epoch.isdecimal() and int(epoch) >= epochs:
            yield Finding(
                f"network {number}, epoch {epoch}: {array} without a commit, from a writer that "
                "was stopped or is still writing; the next recorder overwrites them"
            )


def _check_packed(storage: Storage) -> CheckReport:
    reader = PackedReader(storage, damaged=True)
    findings = [*_check_sample_arrays(storage)]
    for name in reader.arrays:
        try:
            reader.check_encoding(name)
        except RowDamaged as error:
            findings.append(Finding(str(error), damage=True))
        findings += _check_chunks(reader, name)
    if reader.has_missing and not findings:
        found = sum(int((one.values == reader.classes).sum()) for one in reader.blocks(gaps=True))
        if found != (stated := read_root(storage).get("missing_votes")):
            text = f"{layout.ROOT} states {stated} missing votes; {layout.MISSING} has {found}"
            findings.append(Finding(text, damage=True))
    return CheckReport(reader.networks * reader.epochs, tuple(findings))


def _check_chunks(reader: PackedReader, name: str) -> Iterator[Finding]:
    what = "marks of missing votes" if name == layout.MISSING else name
    _, epoch_step, sample_step, *class_step = reader.chunks(name)
    there = set(reader.storage.children(name))
    corners = itertools.product(
        range(reader.networks),
        range(0, reader.epochs, epoch_step),
        range(0, reader.samples, sample_step),
    )
    for network, epoch, sample in corners:
        epochs = range(epoch, min(epoch + epoch_step, reader.epochs))
        samples = slice(sample, min(sample + sample_step, reader.samples))
        where = (
            f"network {reader.numbers[network]}, epochs {epochs.start}..{epochs.stop - 1}, "
            f"samples {samples.start}..{samples.stop - 1}"
        )
        numbers = network, epoch // epoch_step, sample // sample_step, *(0 for _ in class_step)
        if reader.chunk_name(name, numbers) not in there:
            yield Finding(f"{where}: the {what} are missing", damage=True)
            continue
        try:
            values = reader.read_array(name, [network], epochs, samples)
        except RowDamaged:
            yield Finding(f"{where}: the {what} cannot be read back", damage=True)
            continue
        if name == layout.LABELS and (values >= reader.classes).any():
            yield Finding(f"{where}: a label is not one of the classes", damage=True)
