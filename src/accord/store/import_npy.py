"""Read folders of npy files, one for each epoch of each network."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import SourceError
from accord.store.gathering import Source

# As the code of the max agreement paper writes them: step1/resnet40/test_resnet_40_0.npy
NAME = re.compile(
    r"(?P<kind>[A-Za-z][A-Za-z-]*)(?P<number>\d+)/"
    r"(?P<test>test_)?(?P=kind)_(?P=number)_(?P<epoch>\d+)\.npy"
)
Files = dict[int, dict[int, Path]]  # network -> epoch -> file


def has_npy_files(folder: Path, *, test: bool) -> bool:
    """Tell whether a folder holds predictions of the test samples, or of the training ones."""
    return any(_find(step, test=test) for step in _steps(folder))


def read_npy_files(folder: Path, *, test: bool) -> Source:
    """Read the files of all networks; `truth.npy` and `given.npy` beside them if there."""
    files = _find(_one_step(folder, test=test), test=test)
    _check_complete(folder, files)
    numbers = sorted(files)
    networks = [
        [(str(file), load_npy(file)) for _, file in sorted(files[number].items())]
        for number in numbers
    ]
    facts = {
        name: load_npy(folder / f"{name}.npy")
        for name in ("truth", "given")
        if (folder / f"{name}.npy").exists()
    }
    return Source(networks, tuple(numbers), facts)


def load_npy(file: Path) -> NDArray[Any]:
    """Read one npy file. Pickled objects are refused, and a damaged file is named."""
    try:
        with file.open("rb") as opened:
            return np.lib.format.read_array(opened, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        pickled = "allow_pickle" in str(error)
        cause = "it holds pickled objects, which are never loaded" if pickled else str(error)
        raise SourceError(f"{file}: cannot be read as npy: {cause}") from error


def _steps(folder: Path) -> list[Path]:
    """Return the folder itself and the `step<k>` folders in it."""
    return [folder, *sorted(step for step in folder.glob("step*") if step.is_dir())]


def _one_step(folder: Path, *, test: bool) -> Path:
    steps = [step for step in _steps(folder) if _find(step, test=test)]
    if not steps:
        example = "test_resnet_0_0.npy" if test else "resnet_0_0.npy"
        raise SourceError(f"{folder}: no files such as resnet0/{example} in it")
    if len(steps) > 1:
        names = ", ".join(step.name for step in steps)
        raise SourceError(f"{folder}: holds several steps, {names}; import one: {steps[-1]}")
    return steps[0]


def _find(folder: Path, *, test: bool) -> Files:
    files: Files = defaultdict(dict)
    for file in sorted(folder.glob("*/*.npy")):
        found = NAME.fullmatch(file.relative_to(folder).as_posix())
        if found and bool(found["test"]) == test:
            number, epoch = int(found["number"]), int(found["epoch"])
            other = files[number].setdefault(epoch, file)
            if other != file:
                raise SourceError(
                    f"{file}: holds network {number}, epoch {epoch}, as {other} does. Rename "
                    "or remove one; networks of several kinds are imported one kind at a time."
                )
    return files


def _check_complete(folder: Path, files: Files) -> None:
    """Refuse missing epochs: counted from 0 or 1, all there, for all networks alike."""
    every = set().union(*files.values())
    start = min(every)
    if start > 1:
        raise SourceError(f"{folder}: the first epoch there is {start}; epochs count from 0 or 1")
    for number, epochs in sorted(files.items()):
        missing = sorted(set(range(start, max(every) + 1)) - epochs.keys())
        if missing:
            example = next(iter(epochs.values()))
            lacking = re.sub(r"\d+\.npy$", f"{missing[0]}.npy", str(example))
            more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise SourceError(
                f"{folder}: network {number} lacks epoch {missing[0]} ({lacking}{more}), which "
                f"lies within {start}..{max(every)}. Was the run cut off?"
            )
