"""Compare Accord, cleanlab, AUM and Dataset Cartography at finding wrong labels.

python benchmarks/audit.py [RECORD …]

Each RECORD is of a training split with given and true labels; a run without wrong labels records
both if its spec has noise of rate 0. cleanlab gets three tables of probabilities: the networks'
mean at the last epoch, their mean over all epochs, and the table of `accord audit
--probabilities`. A record without probabilities uses shares of votes instead, and leaves out AUM
and Cartography, which need logits or probabilities.

AUM (Pleiss et al.) is the mean over epochs of the given label's logit minus the largest other;
log probabilities differ from logits by a constant per sample. Cartography's confidence
(Swayamdipta et al.) is the mean over epochs of the given label's probability. Both are averaged
over the networks. Without a RECORD, 5 networks × 100 epochs × 50,000 samples are simulated.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from numpy.typing import NDArray

import accord
from accord.analysis._audit._audit import audit, audit_probabilities
from accord.analysis._audit._result import score_ranking
from accord.store import ArrayReader, RecordReader, SampleInfo

Scores = NDArray[np.float64]
SMALLEST = 2.0**-24  # a probability that is not zero in half precision


@dataclass
class MethodScores:
    """The scores of one method for all samples."""

    method: str
    scores: Scores  # (sample,), higher is more suspicious
    flagged: NDArray[np.bool_] | None  # (sample,)
    seconds: float


def main() -> None:
    paths = sys.argv[1:]
    readers: list[RecordReader] = [accord.open(path).reader for path in paths]
    for rows in readers or [simulate()]:
        given, truth = rows.sample_info.given, rows.truth()
        assert given is not None
        wrong = given != truth
        print(f"\n{rows.name}: {rows.networks} networks × {rows.epochs} epochs × {rows.samples}")
        print(f"samples, {rows.classes} classes, {100 * wrong.mean():.1f} % wrong\n")
        print("| method | AUROC | AP | noise rate | precision | recall | seconds |")
        print("|" + "---|" * 7)
        for found in methods(rows, given):
            print_row(found, wrong)


def print_row(found: MethodScores, wrong: NDArray[np.bool_]) -> None:
    flagged = np.zeros(len(wrong), bool) if found.flagged is None else found.flagged
    rate = "" if found.flagged is None else f"{flagged.mean():.3f}"
    print(f"| {found.method} | {score_cells(found, flagged, wrong, rate)} | {found.seconds:.2f} |")


def score_cells(
    found: MethodScores, flagged: NDArray[np.bool_], wrong: NDArray[np.bool_], rate: str
) -> str:
    if not wrong.any():
        return f"| | {rate} | |"
    score = score_ranking(found.scores, wrong, flagged)
    cut = f"{score.precision:.3f} | {score.recall:.3f}" if rate else "|"
    return f"{score.auroc:.4f} | {score.average_precision:.4f} | {rate} | {cut}"


def methods(rows: RecordReader, given: NDArray[Any]) -> Iterator[MethodScores]:
    in_memory = to_memory(rows)
    result, seconds = timed(lambda: audit(in_memory))
    yield MethodScores("accord audit, in memory", result.suspicion, result.flagged, seconds)
    result, seconds = timed(lambda: audit(rows))
    yield MethodScores(
        "accord audit, read from the record", result.suspicion, result.flagged, seconds
    )
    tables, seconds = timed(lambda: mean_tables(rows))
    yield MethodScores(
        "agreement with the given label", -of_given(tables["votes"], given), None, seconds
    )
    kind = "probabilities" if rows.has_probabilities else "votes"
    yield from run_cleanlab(f"last epoch's {kind}", tables["last"], given)
    yield from run_cleanlab(f"all epochs' {kind}", tables["all"], given)
    yield from run_cleanlab("Accord's table", audit_probabilities(rows), given)
    if rows.has_probabilities:
        yield MethodScores("cartography confidence", -of_given(tables["all"], given), None, seconds)
        margins, seconds = timed(lambda: area_under_margin(rows, given))
        yield MethodScores("AUM", -margins, None, seconds)


def run_cleanlab(kind: str, table: Scores, given: NDArray[Any]) -> Iterator[MethodScores]:
    labels, table = given.astype(int), table / table.sum(axis=1, keepdims=True)
    several, seconds = timed(lambda: find_label_issues(labels, table))
    _, alone = timed(lambda: find_label_issues(labels, table, n_jobs=1))
    for method in ("self_confidence", "normalized_margin"):
        scores = -get_label_quality_scores(labels, table, method=method)
        yield MethodScores(f"cleanlab {method}, {kind}", scores, several, min(seconds, alone))


def timed(work: Callable[[], Any], repeats: int = 3) -> tuple[Any, float]:
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - started)
    return result, best


def to_memory(rows: RecordReader) -> RecordReader:
    labels = rows.read_labels(range(rows.networks), range(rows.epochs), slice(None))
    return ArrayReader(labels, rows.sample_info, name=rows.name)


def of_given(table: Scores, given: NDArray[Any]) -> Scores:
    return np.asarray(table[np.arange(len(given)), given])


def mean_tables(rows: RecordReader) -> dict[str, Scores]:
    """Mean votes of all epochs, and mean probabilities (or votes) of the last and of all."""
    shape = rows.samples, rows.classes
    tables = {name: np.zeros(shape) for name in ("votes", "last", "all")}
    for block in rows.blocks():
        tables["votes"][block.where] = accord.agreement(block.values, classes=rows.classes)
        last = accord.agreement(block.values[:, -1:], classes=rows.classes)
        tables["last"][block.where] = last
    tables["all"] = tables["votes"]
    if rows.has_probabilities:
        tables["all"] = np.zeros(shape)
        for block in rows.probability_blocks():
            tables["last"][block.where] = block.values[:, -1].mean(axis=0, dtype=float)
            tables["all"][block.where] = block.values.mean(axis=(0, 1), dtype=float)
    return tables


def area_under_margin(rows: RecordReader, given: NDArray[Any]) -> Scores:
    margins = np.empty(rows.samples)
    for block in rows.probability_blocks():
        logs = np.log(np.maximum(block.values.astype(float), SMALLEST))
        at = given[block.where].astype(int)[np.newaxis, np.newaxis, :, np.newaxis]
        mine = np.take_along_axis(logs, at, axis=3)[..., 0]
        np.put_along_axis(logs, np.broadcast_to(at, (*logs.shape[:3], 1)), -np.inf, axis=3)
        margins[block.where] = (mine - logs.max(axis=3)).mean(axis=(0, 1))
    return margins


def simulate() -> RecordReader:
    """Simulate networks that learn the true classes first and memorise given labels later."""
    generator = np.random.default_rng(0)
    networks, epochs, samples, classes = 5, 100, 50_000, 10
    truth = generator.integers(0, classes, samples)
    other = (truth + generator.integers(1, classes, samples)) % classes
    given = np.where(generator.random(samples) < 0.4, other, truth)
    memorised_at = generator.beta(3, 3, samples) * epochs  # epoch
    labels = np.empty((networks, epochs, samples), np.uint8)
    for network, epoch in np.ndindex(networks, epochs):
        guess = np.where(
            generator.random(samples) < 0.75, truth, generator.integers(0, 10, samples)
        )
        labels[network, epoch] = np.where(memorised_at < epoch, given, guess)
    return ArrayReader(
        labels, SampleInfo(samples, classes, "train", truth, given), name="simulated"
    )


if __name__ == "__main__":
    main()
