"""Read predictions from folders with one file for each network, or each of its epochs."""

import glob
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import load_npy, load_npz
from accord.errors import SourceError
from accord.store._import_arrays import ImportOptions, arrange, compile_pattern, epochs_of, find_key
from accord.store._import_rows import Named, Source, by_network, progress_of
from accord.store._record_format import AXES, SAMPLE_ARRAYS
from accord.store._validation import ids_to_numpy

Files = Mapping[str, Mapping[float, Path]]  # network -> epoch -> file
Lines = dict[Any, tuple[list[float], int]]  # guid -> logits and gold

# File names of the code of the max agreement paper: step1/resnet40/test_resnet_40_0.npy
NPY_NAME: Final = (
    r"(?P<kind>[A-Za-z][A-Za-z-]*)(?P<network>\d+)/{}(?P=kind)_(?P=network)_(?P<epoch>\d+)\.npy"
)
DYNAMICS: Final = "training_dynamics"
DYNAMICS_NAME: Final = re.compile(
    rf"(?:(?:(?P<network>[^/]+)/)?{DYNAMICS}/)?dynamics_epoch_(?P<epoch>\d+)\.jsonl"
)


def read_files(folder: Path, options: ImportOptions) -> Source:
    """Read predictions from npy and npz files whose names match a pattern."""
    if not folder.is_dir():
        raise SourceError(f"{folder}: --pattern names files in a folder; this is a file")
    given = (options.pattern or "").removeprefix("./")
    pattern = compile_pattern(given, "network", "epoch")
    paths = glob.escape(re.sub(r"\{\w*\}|\*", "*", given)).replace("[*]", "*")
    files = _find_files(folder, pattern, re.sub(r"\*+", "*", paths))
    if not files:
        some = [file.relative_to(folder).as_posix() for file in sorted(folder.rglob("*.np[yz]"))]
        have = f"{', '.join(some[:2])}{', …' * (len(some) > 2)}" if some else "no .npy or .npz file"
        raise SourceError(f"{folder}: no file is named {given!r}; it has {have}")
    epochs = sorted(set().union(*files.values()))
    by_epoch = "epoch" in pattern.groupindex

    def read(file: Path, _: float) -> list[Named]:
        arrays = load_npz(file) if file.suffix == ".npz" else {"": load_npy(file)}
        try:
            values = arrays[find_key(arrays, options.key if file.suffix == ".npz" else None)]
        except SourceError as error:
            raise SourceError(f"{file}: {error}") from error
        if by_epoch:
            return [(str(file), arrange(str(file), values, options.axes, AXES[2:3]))]
        return epochs_of(str(file), values, options.axes)

    source = _read_all(folder, files, epochs, read)
    return replace(source, progress=progress_of(epochs) if by_epoch else None)


def find_npy_files(folder: Path, *, test: bool) -> Files:
    """Find the npy files of predictions in a folder, or in its only step with some."""
    pattern = re.compile(NPY_NAME.format("test_" if test else ""))
    steps = [folder, *sorted(folder.glob("step*"))]
    found = {step: files for step in steps if (files := _find_files(step, pattern, "*/*.npy"))}
    if len(found) > 1:
        names = ", ".join(step.name for step in found)
        raise SourceError(f"{folder}: has several steps, {names}; import one of them: {steps[-1]}")
    return next(iter(found.values()), {})


def read_npy_files(folder: Path, _: ImportOptions, *, test: bool) -> Source:
    files = find_npy_files(folder, test=test)
    epochs = _consecutive(folder, files, f"resnet0/{'test_' if test else ''}resnet_0_0.npy")
    source = _read_all(folder, files, epochs, lambda file, _: [(str(file), load_npy(file))])
    return replace(source, split="test" if test else "train")


def find_dynamics(folder: Path) -> Files:
    """Find the training dynamics in a folder, a folder in it, or one for each network."""
    for parent in ("", f"{DYNAMICS}/", f"*/{DYNAMICS}/"):
        if files := _find_files(folder, DYNAMICS_NAME, f"{parent}dynamics_epoch_*.jsonl"):
            return files
    return {}


def read_dynamics(folder: Path, _: ImportOptions) -> Source:
    """Read training dynamics in the format of Dataset Cartography.

    Samples keep the order of the lines of the first epoch.
    """
    files = find_dynamics(folder)
    epochs = _consecutive(folder, files, f"{DYNAMICS}/dynamics_epoch_0.jsonl")
    epoch, file = min(next(iter(files.values())).items())
    first = _read_lines(file, epoch)

    def read(other: Path, epoch: float) -> list[Named]:
        return [(str(other), _in_order(other, _read_lines(other, epoch), file, first))]

    whole = all(isinstance(guid, int) for guid in first)
    sample_info = {
        "ids": ids_to_numpy(list(first)) if whole else np.array(list(map(str, first))),
        "given": np.array([gold for _, gold in first.values()]),
    }
    source = _read_all(folder, files, epochs, read)
    return replace(source, sample_info=sample_info, kind="logits", split="train")


def _find_files(folder: Path, pattern: re.Pattern[str], paths: str) -> Files:
    """Find the files of each network and epoch; one that is not named is 0."""
    files: dict[str, dict[float, Path]] = {}
    for file in sorted(folder.glob(paths)):
        name = file.relative_to(folder).as_posix()
        found = pattern.fullmatch(name)
        of_samples = name in [f"{array}.npy" for array in SAMPLE_ARRAYS]
        if found is None or not file.is_file() or of_samples:
            continue
        names = found.groupdict()
        number, epoch = names.get("network") or "0", float(names.get("epoch") or 0)
        network = str(int(number)) if number.isdecimal() else number
        other = files.setdefault(network, {}).setdefault(epoch, file)
        if other != file:
            raise SourceError(
                f"{file}: has the same network {network} and epoch {epoch:g} as {other}. "
                "Rename or remove one; import networks of several kinds one kind at a time."
            )
    return files


def _consecutive(folder: Path, files: Files, example: str) -> Sequence[int]:
    """Return all epochs up to the last, of which the first is 0 or 1."""
    if not files:
        raise SourceError(f"{folder}: has no files such as {example}")
    every = set().union(*files.values())
    start, stop = int(min(every)), int(max(every))
    if start > 1:
        raise SourceError(f"{folder}: the first epoch is {start}; epochs must start at 0 or 1")
    return range(start, stop + 1)


def _read_all(
    folder: Path, files: Files, epochs: Sequence[float], read: Callable[[Path, float], list[Named]]
) -> Source:
    for network, found in files.items():
        missing = [epoch for epoch in epochs if epoch not in found]
        if missing:
            more = f", and {len(missing) - 1} more," if len(missing) > 1 else ""
            hint = "Do some networks count from 1?" if 0 in missing else "Was the run interrupted?"
            raise SourceError(
                f"{folder}: network {network} lacks epoch {missing[0]:g}{more} of "
                f"{epochs[0]:g}..{epochs[-1]:g} ({next(iter(found.values()))} is there). {hint}"
            )
    known = {name: folder / f"{name}.npy" for name in SAMPLE_ARRAYS}
    return by_network(
        {
            network: [row for epoch in epochs for row in read(found[epoch], epoch)]
            for network, found in files.items()
        },
        sample_info={name: load_npy(file) for name, file in known.items() if file.exists()},
    )


def _read_lines(file: Path, epoch: float) -> Lines:
    lines: Lines = {}
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{file}: cannot be read: {error}") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{file}, line {number}"
            guid, logits, gold = _read_line(where, line, f"logits_epoch_{int(epoch)}")
            if guid in lines:
                raise SourceError(f"{where}: guid {guid!r} occurs twice")
            lines[guid] = logits, gold
    if not lines:
        raise SourceError(f"{file}: is empty")
    return lines


def _read_line(where: str, line: str, key: str) -> tuple[Any, list[float], int]:
    try:
        entry = json.loads(line)
        guid, logits, gold = entry["guid"], entry[key], entry["gold"]
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(
            f'{where}: expected {{"guid": …, "{key}": […], "gold": …}}; '
            f"{type(error).__name__}: {error}. Was the file truncated?"
        ) from error
    if type(guid) not in (str, int, float):
        raise SourceError(f"{where}: guid must be text or a number; got {guid!r:.60}")
    is_row = isinstance(logits, list) and bool(logits) and all(map(_is_logit, logits))
    if not is_row or type(gold) is not int:
        raise SourceError(
            f"{where}: {key} must be a list of numbers, one per class and none too large for a "
            f"float, and gold a class, a whole number; got {logits!r:.60} and {gold!r:.60}"
        )
    return guid, logits, gold


def _is_logit(value: object) -> bool:
    if type(value) is int:
        return abs(value) <= sys.float_info.max
    return isinstance(value, float)


def _in_order(file: Path, lines: Lines, first_file: Path, first: Lines) -> NDArray[np.float64]:
    """Sort the logits of an epoch by the guids of the first epoch."""
    unknown, missing = lines.keys() - first.keys(), first.keys() - lines.keys()
    for guids, where, other in ((unknown, file, first_file), (missing, first_file, file)):
        if guids:
            raise SourceError(
                f"{file}: guid {min(guids, key=str)!r} is in {where.name} but not in {other.name}; "
                "every epoch must have the same samples "
                f"({len(unknown)} unknown, {len(missing)} missing)"
            )
    for guid, (_, gold) in lines.items():
        if first[guid][1] != gold:
            raise SourceError(f"{file}: the gold of guid {guid!r} differs from {first_file}'s")
    rows = [lines[guid][0] for guid in first]
    if len({len(row) for row in rows}) > 1:
        raise SourceError(f"{file}: samples have different numbers of logits")
    return np.array(rows, np.float64)
