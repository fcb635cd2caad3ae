"""Accuracy estimates from verified samples."""

import csv
import math
import os
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._files import csv_text, unreadable, write_file
from accord.analysis._audit._review_files import DECIDED, Header, check_no_decisions, read_decisions
from accord.analysis._trust._confidence_intervals import mean_interval
from accord.analysis._trust._noisy_accuracy import Estimate, smooth_moments
from accord.errors import ChoiceError, PredictionError, RecordMismatch, SourceError
from accord.rules import Prediction
from accord.store import SampleInfo

STRATA: Final = 5
LEAST_PER_STRATUM: Final = 2  # samples, so that each stratum has a variance
STRATUM, SIZE = "stratum", "stratum_samples"  # columns of the file
DRAWN: Final = "drawn"  # column: samples drawn from the stratum, so that a lost row is noticed

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Sampling:
    """Stratified random sample for verification."""

    samples: NDArray[np.intp]  # (verified,), which to verify, in order
    strata: NDArray[np.intp]  # (verified,), the stratum of each
    sizes: NDArray[np.intp]  # (stratum,), all samples of the stratum


@dataclass(frozen=True)
class Verified:
    """Verified samples with their classes."""

    sampling: Sampling
    labels: NDArray[np.intp]  # (verified,)

    def accuracy(self, prediction: Prediction, *, confidence: float = 0.95) -> Estimate:
        """Estimate the accuracy of a prediction."""
        right = prediction.labels[self.sampling.samples] == self.labels
        return verified_accuracy(right, self.sampling, confidence=confidence)


def choose_to_verify(
    scores: NDArray[Any], budget: int, *, strata: int = STRATA, seed: int = 0
) -> Sampling:
    """Draw samples for estimating the accuracy with few labels.

    Splits the samples by score into strata of equal size. More are drawn from strata of medium
    scores, where right and wrong labels mix: in proportion to share × √(s · (1 - s)), s being the
    mean score of the stratum, and at least two from each.

    Args:
        scores: (sample,), in 0..1: the share of votes, or calibrated confidence.
        budget: number of samples to verify.
        strata: number of strata.
        seed: of the draw.

    Raises:
        ChoiceError: the budget is too small, or larger than the number of samples.
        PredictionError: there is not one score per sample, or some lie outside 0..1.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():  # nan fails, too
        limits = f" and {values.min():g}..{values.max():g}" if values.size else ""
        raise PredictionError(
            "expected one score in 0..1 per sample, such as the share of votes; got shape "
            f"{values.shape}{limits}"
        )
    if len(values) < LEAST_PER_STRATUM * strata:
        raise ChoiceError(
            f"{len(values)} samples are too few for {strata} strata of at least "
            f"{LEAST_PER_STRATUM}: verify all of them, and count how many are right"
        )
    if not LEAST_PER_STRATUM * strata <= budget <= len(values) or strata < 1:
        raise ChoiceError(
            f"to verify {budget} samples of {len(values)} in {strata} strata, the budget must lie "
            f"in {LEAST_PER_STRATUM * strata}..{len(values)}"
        )
    parts = np.array_split(np.argsort(values, kind="stable"), strata)
    sizes = np.array([len(part) for part in parts])
    # Scores may be too confident.
    means = np.clip([values[part].mean() for part in parts], 0.02, 0.98)
    shares = _allot(np.sqrt(means * (1 - means)) * sizes, sizes, budget)
    generator = np.random.default_rng(seed)
    drawn = zip(parts, shares, strict=True)
    samples = np.concatenate([generator.choice(part, n, replace=False) for part, n in drawn])
    stratum = np.repeat(np.arange(strata), shares)
    order = np.argsort(samples)
    return Sampling(samples[order], stratum[order], sizes)


def _allot(
    weights: NDArray[np.float64], sizes: NDArray[np.intp], budget: int
) -> NDArray[np.intp]:  # (stratum,) each
    allotted = np.full(len(sizes), LEAST_PER_STRATUM)
    for _ in range(budget - int(allotted.sum())):
        # One at a time, to the stratum that is furthest below its weight.
        need = np.where(allotted < sizes, weights / allotted, -1.0)
        allotted[int(need.argmax())] += 1
    return allotted


def verified_accuracy(
    right: NDArray[Any],
    sampling: Sampling,
    *,
    confidence: float = 0.95,
    difference: bool | None = None,
) -> Estimate:
    """Estimate the accuracy from verified samples.

    Unbiased for any scores; better scores narrow the interval. For the difference between two
    rules, pass `(second == truth) - (first == truth)`, of -1, 0 and 1, with `difference=True`. The
    interval holds for few samples and where all are right, too: half a right and half a wrong
    sample are added to each stratum.

    Args:
        right: (verified,), whether each of `sampling.samples` was predicted right.
        sampling: from `choose_to_verify`.
        confidence: of the interval.
        difference: whether the values are differences; by default, if one is below 0.

    Raises:
        PredictionError: there is not one value per sample, or some lie outside 0..1 (-1..1 for
            differences).
    """
    values = np.asarray(right, np.float64)
    if values.shape != sampling.samples.shape:
        raise PredictionError(
            f"expected one value for each of the {len(sampling.samples)} samples to verify; got "
            f"shape {values.shape}"
        )
    least = -1.0 if (bool((values < 0).any()) if difference is None else difference) else 0.0
    if not (values.min() >= least and values.max() <= 1):  # nan fails, too
        raise PredictionError(
            f"right or wrong must be 1 or 0, and a difference of two -1, 0 or 1; got "
            f"{values.min():g}..{values.max():g}"
        )
    mean, smoothed, variance = _stratified((values - least) / (1 - least), sampling)
    low, high = mean_interval(mean, smoothed, variance, confidence=confidence)
    value, low, high = (least + (1 - least) * share for share in (mean, low, high))
    return Estimate(value, low, high, confidence, (1 - least) * math.sqrt(variance))


def _stratified(values: NDArray[np.float64], sampling: Sampling) -> tuple[float, float, float]:
    shares = sampling.sizes / sampling.sizes.sum()
    mean = smoothed = variance = 0.0
    for stratum, share in enumerate(shares.tolist()):
        found = values[sampling.strata == stratum]
        unverified = 1 - len(found) / int(sampling.sizes[stratum])  # the others are certain
        middle, spread = smooth_moments(found)
        mean += share * float(found.mean())
        smoothed += share * middle
        variance += share**2 * unverified * spread / len(found)
    return mean, smoothed, variance


def write_verification(sampling: Sampling, path: PathLike, *, sample_info: SampleInfo) -> None:
    """Write samples for verification to a .csv file.

    The predictions are left out, so that they do not bias the decisions.

    Raises:
        ChoiceError: the file does not end in .csv.
        RecordExists: the file exists and holds decisions, or is not a queue.
    """
    target = Path(path)
    if target.suffix != ".csv":
        raise ChoiceError(f"{target}: a queue is written as .csv; got {target.suffix!r}")
    check_rewritable(target, "a queue")
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


def check_rewritable(path: Path, kind: str, *, header: Header | None = None) -> None:
    """Check that a file can be overwritten without losing decisions."""
    use = f"accord trust RECORD --verified {shlex.quote(str(path))}"
    check_no_decisions(path, kind, header=header, use=use)


def read_verification(path: PathLike, *, sample_info: SampleInfo) -> Verified:
    """Read verified samples from a .csv file.

    Raises:
        SourceError: the file is not readable, some sample is not decided, or a stratum is
            missing or does not fit.
        RecordMismatch: the file belongs to another record.
    """
    target = Path(path)
    if target.suffix != ".csv":
        raise ChoiceError(f"{target}: verified samples are read from .csv; got {target.suffix!r}")
    decided = read_decisions(target, sample_info=sample_info)
    rows = list(_read(target))
    missing = [name for name in ("sample", STRATUM, SIZE, DRAWN) if name not in rows[0]]
    if missing:
        raise SourceError(
            f"{target}: it has no {', '.join(missing)}. Decide in the file that "
            "`accord trust RECORD --verify N --out FILE` wrote"
        )
    undecided = sum(not (row[DECIDED] or "").strip() for row in rows)
    if undecided:
        raise SourceError(
            f"{target}: {undecided} of {len(rows)} samples are not decided, and the others alone "
            "are not a random draw. Decide them, too"
        )
    strata = _strata(target, rows)
    sizes = dict(strata.values())
    if sum(sizes.values()) != sample_info.samples:
        raise RecordMismatch(
            f"{target}: its strata have {sum(sizes.values())} samples; the record has "
            f"{sample_info.samples}. Does it belong to another record?"
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
            for row in rows:
                # A cell is text, None where the row ends early, or a list of the cells beyond the
                # last column. Spreadsheets add blank rows.
                if any("".join(cell or ()).strip() for cell in row.values()):
                    yield row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise unreadable(path, error) from error


def _strata(path: Path, rows: list[dict[str, Any]]) -> dict[int, tuple[int, int]]:
    """Read the stratum and the stratum size of each sample."""
    try:
        found = {int(row["sample"]): (int(row[STRATUM]), int(row[SIZE])) for row in rows}
        expected = {int(row[STRATUM]): int(row[DRAWN]) for row in rows}
    except (TypeError, ValueError) as error:
        raise SourceError(f"{path}: samples and strata must be whole numbers: {error}") from error
    drawn = Counter(found.values())
    numbers = sorted(stratum for stratum, _ in drawn)
    if numbers != list(range(len(drawn))) or min(drawn.values()) < LEAST_PER_STRATUM:
        raise SourceError(
            f"{path}: strata must be 0, 1 … with one size each and {LEAST_PER_STRATUM} samples or "
            "more. Were rows changed or removed?"
        )
    for (stratum, _), count in sorted(drawn.items()):
        if count != expected[stratum]:
            few = count < expected[stratum]
            raise SourceError(
                f"{path}: {expected[stratum]} samples of stratum {stratum} were drawn, and "
                f"{'only ' if few else ''}{count} are listed, so they are not a random draw: "
                f"{'restore the removed rows' if few else 'remove the added rows'}"
            )
    return found
