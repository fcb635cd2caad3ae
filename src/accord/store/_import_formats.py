"""Readers of folders that other programs have written."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord._files import load_npy
from accord.errors import SourceError
from accord.store._import_arrays import Files, find_files, sample_files
from accord.store._import_rows import Source, by_network
from accord.store._validation import ids_to_numpy

# File names of the code of the max agreement paper: step1/resnet40/test_resnet_40_0.npy
_NPY_NAME = (
    r"(?P<kind>[A-Za-z][A-Za-z-]*)(?P<network>\d+)/{}(?P=kind)_(?P=network)_(?P<epoch>\d+)\.npy"
)


def has_npy_files(folder: Path, *, test: bool) -> bool:
    """Check whether a folder contains npy files of predictions."""
    return any(_find(step, test=test) for step in _steps(folder))


def read_npy_files(folder: Path, *, test: bool) -> Source:
    """Read predictions and labels from a folder of npy files."""
    files = _find(_one_step(folder, test=test), test=test)
    _check_complete(folder, files)
    networks = {
        network: [(str(file), load_npy(file)) for _, file in sorted(found.items())]
        for network, found in files.items()
    }
    split = "test" if test else "train"
    return by_network(networks, sample_info=sample_files(folder), split=split)


def _steps(folder: Path) -> list[Path]:
    """List a folder and its `step<k>` subfolders."""
    return [folder, *sorted(step for step in folder.glob("step*") if step.is_dir())]


def _one_step(folder: Path, *, test: bool) -> Path:
    steps = [step for step in _steps(folder) if _find(step, test=test)]
    if not steps:
        example = "test_resnet_0_0.npy" if test else "resnet_0_0.npy"
        raise SourceError(f"{folder}: has no files such as resnet0/{example}")
    if len(steps) > 1:
        names = ", ".join(step.name for step in steps)
        raise SourceError(f"{folder}: has several steps, {names}; import one of them: {steps[-1]}")
    return steps[0]


def _find(folder: Path, *, test: bool) -> Files:
    return find_files(folder, re.compile(_NPY_NAME.format("test_" if test else "")), "*/*.npy")


def _check_complete(folder: Path, files: Files) -> None:
    """Check that all networks have the same consecutive epochs."""
    every = set().union(*files.values())
    start, stop = int(min(every)), int(max(every))
    if start > 1:
        raise SourceError(f"{folder}: the first epoch is {start}; epochs must start at 0 or 1")
    for number, epochs in files.items():
        missing = sorted(set(range(start, stop + 1)) - epochs.keys())
        if missing:
            example = next(iter(epochs.values()))
            lacking = re.sub(r"\d+\.npy$", f"{missing[0]}.npy", str(example))
            more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise SourceError(
                f"{folder}: network {number} lacks epoch {missing[0]} ({lacking}{more}) of "
                f"{start}..{stop}. Was the run interrupted?"
            )


FOLDER = "training_dynamics"
_CARTOGRAPHY_NAME = re.compile(r"dynamics_epoch_(?P<epoch>\d+)\.jsonl")
Lines = dict[Any, tuple[list[float], int]]  # guid -> logits and gold


def has_dynamics(folder: Path) -> bool:
    """Check whether a folder contains training dynamics."""
    return bool(_folders(folder))


def read_dynamics(folder: Path) -> Source:
    """Read training dynamics in the format of Dataset Cartography.

    The folder is a `training_dynamics`, contains one, or contains one subfolder per network,
    sorted by name, that does. Samples keep the order of the first epoch's lines.
    """
    folders = _folders(folder)
    if not folders:
        raise SourceError(f"{folder}: has no files such as {FOLDER}/dynamics_epoch_0.jsonl")
    files = {one: _files(one) for one in folders}
    _check_epochs(files)
    networks, first = [], None
    for one in folders:
        epochs = []
        for epoch, file in files[one].items():
            lines = _read_file(file, epoch)
            first = first or (file, lines)
            epochs.append((str(file), _in_order(file, lines, *first)))
        networks.append(epochs)
    assert first is not None
    guids = list(first[1])
    whole = all(isinstance(guid, int) for guid in guids)
    sample_info = {
        "ids": ids_to_numpy(guids) if whole else np.array([str(guid) for guid in guids]),
        "given": np.array([gold for _, gold in first[1].values()]),
    }
    return Source(networks, sample_info=sample_info, kind="logits", split="train")


def _folders(folder: Path) -> list[Path]:
    for candidates in ([folder], [folder / FOLDER], sorted(folder.glob(f"*/{FOLDER}"))):
        found = [one for one in candidates if any(_named(one))]
        if found:
            return found
    return []


def _named(folder: Path) -> Iterator[tuple[int, Path]]:
    for file in sorted(folder.glob("dynamics_epoch_*.jsonl")):
        if found := _CARTOGRAPHY_NAME.fullmatch(file.name):
            yield int(found["epoch"]), file


def _files(folder: Path) -> dict[int, Path]:
    """Map each epoch to its file in a folder."""
    files: dict[int, Path] = {}
    for epoch, file in _named(folder):
        other = files.setdefault(epoch, file)
        if other != file:
            raise SourceError(f"{file}: has the same epoch {epoch} as {other.name}; remove one")
    for epoch in range(1, max(files, default=0) + 1):
        if epoch not in files:
            raise SourceError(
                f"{folder}: dynamics_epoch_{epoch}.jsonl is missing; epochs must start at 0 or 1"
            )
    return dict(sorted(files.items()))


def _check_epochs(files: dict[Path, dict[int, Path]]) -> None:
    every = set().union(*files.values())
    for folder, epochs in files.items():
        missing = sorted(every - epochs.keys())
        if missing:
            raise SourceError(
                f"{folder}: dynamics_epoch_{missing[0]}.jsonl is missing, but another network has "
                "it. Was the run interrupted, or do some networks count from 0, others from 1?"
            )


def _read_file(file: Path, epoch: int) -> Lines:
    lines: Lines = {}
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{file}: cannot be read: {error}") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            guid, logits, gold = _read_line(f"{file}, line {number}", line, epoch)
            if guid in lines:
                raise SourceError(f"{file}, line {number}: guid {guid!r} occurs twice")
            lines[guid] = logits, gold
    if not lines:
        raise SourceError(f"{file}: is empty")
    return lines


def _read_line(where: str, line: str, epoch: int) -> tuple[Any, list[float], int]:
    key = f"logits_epoch_{epoch}"
    try:
        entry = json.loads(line)
        guid, logits, gold = entry["guid"], entry[key], entry["gold"]
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(
            f'{where}: expected {{"guid": …, "{key}": […], "gold": …}}; '
            f"{type(error).__name__}: {error}. Was the file truncated?"
        ) from error
    if not isinstance(guid, str | int | float) or isinstance(guid, bool):
        raise SourceError(f"{where}: guid must be text or a number; got {guid!r:.60}")
    is_row = isinstance(logits, list) and bool(logits) and all(map(_is_logit, logits))
    if not is_row or isinstance(gold, bool) or not isinstance(gold, int):
        raise SourceError(
            f"{where}: {key} must be a list of numbers, one per class and none too large for a "
            f"float, and gold a class, a whole number; got {logits!r:.60} and {gold!r:.60}"
        )
    return guid, logits, gold


def _is_logit(value: object) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, float)


def _in_order(file: Path, lines: Lines, first_file: Path, first: Lines) -> NDArray[np.float64]:
    """Sort the logits of an epoch by the guids of the first epoch."""
    unknown = [guid for guid in lines if guid not in first]
    missing = [guid for guid in first if guid not in lines]
    if unknown or missing:
        guid, where, other = (
            (unknown[0], file, first_file) if unknown else (missing[0], first_file, file)
        )
        raise SourceError(
            f"{file}: guid {guid!r} is in {where.name} but not in {other.name}; every epoch "
            f"must have the same samples ({len(unknown)} unknown, {len(missing)} missing)"
        )
    changed = [guid for guid, (_, gold) in lines.items() if first[guid][1] != gold]
    if changed:
        raise SourceError(f"{file}: the gold of guid {changed[0]!r} differs from {first_file}'s")
    rows = [lines[guid][0] for guid in first]
    if len({len(row) for row in rows}) > 1:
        raise SourceError(f"{file}: samples have different numbers of logits")
    return np.array(rows, np.float64)
