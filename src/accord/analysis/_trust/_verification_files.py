"""Files of samples for people to verify: written, and read back once they have decided."""

import csv
import os
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import csv_text, write_file
from accord.analysis import Estimate, Sampling, verified_accuracy
from accord.analysis._audit._review_files import (
    DECIDED,
    Header,
    check_no_decisions,
    read_decisions,
    unreadable,
)
from accord.errors import ChoiceError, RecordMismatch, SourceError
from accord.rules import Prediction
from accord.store import SampleInfo

PathLike = str | os.PathLike[str]
STRATUM, SIZE = "stratum", "stratum_samples"
LEAST_VERIFIED: Final = 2  # verified samples in a stratum
DRAWN: Final = "drawn"  # how many of a stratum were chosen, so that none is lost unnoticed


@dataclass(frozen=True)
class Verified:
    """Samples that were drawn to be verified, and the class that people gave each."""

    sampling: Sampling
    labels: NDArray[np.intp]  # (verified,)

    def accuracy(self, prediction: Prediction, *, confidence: float = 0.95) -> Estimate:
        """Estimate how many of all labels are right, by any rule: the draw holds for all."""
        right = prediction.labels[self.sampling.samples] == self.labels
        return verified_accuracy(right, self.sampling, confidence=confidence)


def write_verification(sampling: Sampling, path: PathLike, *, sample_info: SampleInfo) -> None:
    """Write the samples to verify to a .csv file with an empty column `decided` for the class.

    What was predicted is left out, so that it sways nobody.

    Raises:
        ChoiceError: the file is no .csv.
        RecordExists: the file is there and somebody has decided in it, or it is no queue.
    """
    target = Path(path)
    if target.suffix != ".csv":
        raise ChoiceError(f"{target}: a queue is written as .csv; got {target.suffix!r}")
    check_rewritable(target, "queue")
    samples = sampling.samples
    columns: dict[str, list[Any]] = {"sample": samples.tolist()}
    if sample_info.ids is not None:
        columns["id"] = sample_info.ids[samples].tolist()
    columns[STRATUM] = sampling.strata.tolist()
    columns[SIZE] = sampling.sizes[sampling.strata].tolist()
    columns[DRAWN] = np.bincount(sampling.strata)[sampling.strata].tolist()
    columns[DECIDED] = [""] * len(samples)
    rows = zip(*columns.values(), strict=True)
    write_file(target, csv_text(columns, rows).encode())


def check_rewritable(path: Path, what: str, *, header: Header | None = None) -> None:
    """Refuse to write over a file in which somebody has decided, or that is none of ours.

    Raises:
        RecordExists: there are decisions in it, or something else than what is written.
    """
    use = f"accord trust RECORD --verified {shlex.quote(str(path))}"
    check_no_decisions(path, what, header=header, use=use)


def read_verification(path: PathLike, *, sample_info: SampleInfo) -> Verified:
    """Read what people decided on the samples that were to be verified.

    Raises:
        SourceError: the file is not readable, some sample is not decided, or a stratum is
            missing or does not fit.
        RecordMismatch: it is about other samples.
    """
    target = Path(path)
    if target.suffix != ".csv":
        raise ChoiceError(f"{target}: verified samples are read from .csv; got {target.suffix!r}")
    decided = read_decisions(target, sample_info=sample_info)
    rows = list(_read(target))
    _check_decided(target, rows)
    strata = _strata(target, rows)
    sizes = dict(strata.values())
    if sum(sizes.values()) != sample_info.samples:
        raise RecordMismatch(
            f"{target}: its strata have {sum(sizes.values())} samples; the record has "
            f"{sample_info.samples}. Is it about another record?"
        )
    sampling = Sampling(
        decided.samples,
        np.array([strata[sample][0] for sample in decided.samples.tolist()]),
        np.array([sizes[stratum] for stratum in sorted(sizes)]),
    )
    return Verified(sampling, decided.labels)


def _read(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            yield from (row for row in rows if _says_something(row))  # spreadsheets add others
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise unreadable(path, error) from error


def _says_something(row: dict[Any, Any]) -> bool:
    # A cell is text, None where the row ends early, or a list of those that no column is left for.
    return any("".join(cell or ()).strip() for cell in row.values())


def _check_decided(path: Path, rows: list[dict[str, Any]]) -> None:
    missing = [name for name in ("sample", STRATUM, SIZE, DRAWN) if name not in rows[0]]
    if missing:
        raise SourceError(
            f"{path}: it has no {', '.join(missing)}. Decide in the file that "
            "`accord trust RECORD --verify N --out FILE` wrote"
        )
    undecided = sum(not (row[DECIDED] or "").strip() for row in rows)
    if undecided:
        raise SourceError(
            f"{path}: {undecided} of {len(rows)} samples are not decided, and the rest alone "
            "would not be a fair draw. Decide them too"
        )


def _strata(path: Path, rows: list[dict[str, Any]]) -> dict[int, tuple[int, int]]:
    """Return the stratum of each sample, and how many samples that stratum has."""
    try:
        found = {int(row["sample"]): (int(row[STRATUM]), int(row[SIZE])) for row in rows}
        wanted = {int(row[STRATUM]): int(row[DRAWN]) for row in rows}
    except (TypeError, ValueError) as error:
        raise SourceError(f"{path}: samples and strata must be whole numbers: {error}") from error
    drawn = Counter(found.values())
    numbers = sorted(stratum for stratum, _ in drawn)
    if numbers != list(range(len(drawn))) or min(drawn.values()) < LEAST_VERIFIED:
        raise SourceError(
            f"{path}: strata must be 0, 1 … with one size each and "
            f"{LEAST_VERIFIED} samples or more. "
            "Were rows changed or removed?"
        )
    _check_drawn(path, {stratum: count for (stratum, _), count in drawn.items()}, wanted)
    return found


def _check_drawn(path: Path, found: dict[int, int], wanted: dict[int, int]) -> None:
    for stratum, count in sorted(found.items()):
        if count != wanted[stratum]:
            few = count < wanted[stratum]
            raise SourceError(
                f"{path}: {wanted[stratum]} samples of stratum {stratum} were drawn, and "
                f"{'fewer' if few else 'more'} are there: {count}. That would not be a fair draw: "
                f"{'put the others back' if few else 'take out what was added'}"
            )
