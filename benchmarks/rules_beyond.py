"""Compare rules and the recommended rule on records with true labels.

python benchmarks/rules_beyond.py [RECORD …]

`agreement^8` weights each epoch by the eighth power of the networks' mean pairwise agreement;
`plain` is Dawid and Skene's original method with 20 rounds, for fewer than 50 classes. `gain` is
that of the recommended rule over max agreement, in points, with the standard error of a paired
difference.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import accord
from accord.analysis import network_agreement
from accord.rules import find_rule, recommend
from accord.rules.weighted_agreement import WeightedAgreement
from accord.store import RecordReader
from dawid_skene import plain_dawid_skene

RULES = (
    "majority",
    "max-agreement",
    "weighted-agreement",
    "dawid-skene",
    "before-overfit",
    "oracle-best-epoch",
)
Predict = Callable[[RecordReader], NDArray[np.intp]]


def main() -> None:
    records = sys.argv[1:] or ["example://cifar10-sym40"]
    names = [*RULES, *OTHERS]
    print("| record | classes | " + " | ".join(names) + " | recommended | gain | seconds |")
    print("|" + "---|" * (len(names) + 5))
    gains = [print_row(path) for path in records]
    print(f"\nmean gain over max-agreement {np.mean(gains):+.2f}, least {min(gains):+.2f}")


def print_row(path: str) -> float:
    record = accord.open(path)
    rows, truth = record.reader, record.reader.truth()
    found = {name: find_rule(name)(rows) for name in RULES}
    right = {name: 100 * float(np.mean(one.labels == truth)) for name, one in found.items()}
    others = {name: score(predict, rows) for name, predict in OTHERS.items()}
    started = time.perf_counter()
    chosen = recommend(rows).rule
    seconds = time.perf_counter() - started
    gain = right[chosen] - right["max-agreement"]
    differ = (found[chosen].labels == truth) != (found["max-agreement"].labels == truth)
    error = 100 * np.sqrt(np.count_nonzero(differ)) / rows.samples
    cells = " | ".join(f"{value:.2f}" for value in (right | others).values())
    cells_of_rule = f"{chosen} | {gain:+.2f} ± {error:.2f} | {seconds:.1f}"
    print(f"| {path} | {rows.classes} | {cells} | {cells_of_rule} |")
    for name, one in found.items():
        if one.note:
            print(f"{path}: {name}: {one.note}", file=sys.stderr)
    return gain


def score(predict: Predict, rows: RecordReader) -> float:
    try:
        return 100 * float(np.mean(predict(rows) == rows.truth()))
    except NotImplementedError:
        return float("nan")


def agreement_to_the_eighth(rows: RecordReader) -> NDArray[np.intp]:
    if rows.networks == 1:
        raise NotImplementedError
    weights = network_agreement(rows) ** 8
    return WeightedAgreement(weights / weights.sum())(rows).labels


def plain(rows: RecordReader) -> NDArray[np.intp]:
    if rows.classes >= 50:
        raise NotImplementedError
    labels = rows.read_labels(range(rows.networks), range(rows.epochs), slice(None))
    flat = labels.reshape(-1, rows.samples)
    return np.asarray(plain_dawid_skene(flat, classes=rows.classes, rounds=20).argmax(axis=1))


OTHERS: dict[str, Predict] = {"agreement^8": agreement_to_the_eighth, "plain": plain}


if __name__ == "__main__":
    main()
