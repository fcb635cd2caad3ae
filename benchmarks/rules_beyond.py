"""Compare rules and the recommended rule on records with true labels.

python benchmarks/rules_beyond.py [RECORD …]

`agreement^8` weights each epoch by the eighth power of the networks' mean pairwise agreement;
`plain` is Dawid and Skene's original method with 20 rounds, for fewer than 50 classes. `gain` is
that of the recommended rule over max agreement, in points, with the standard error of a paired
difference; `regret` is what it lacks to the best rule that needs no labels.
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
    "leave-one-out",
    "probability-average",
    "oracle-best-epoch",
)
Predict = Callable[[RecordReader], NDArray[np.intp]]


def main() -> None:
    records = sys.argv[1:] or ["example://cifar10-sym40"]
    names = [*RULES, *OTHERS]
    print(
        "| record | classes | " + " | ".join(names) + " | recommended | gain | regret | seconds |"
    )
    print("|" + "---|" * (len(names) + 6))
    found = np.array([print_row(path) for path in records])
    for name, values in zip(("gain", "gain over majority, too", "regret"), found.T, strict=True):
        print(f"{name}: mean {values.mean():+.2f}, {values.min():+.2f} to {values.max():+.2f}")


def print_row(path: str) -> tuple[float, float, float]:
    record = accord.open(path)
    rows, truth = record.reader, record.reader.truth()
    found = {name: find_rule(name)(rows) for name in RULES if find_rule(name).allowed(rows)}
    right = {name: 100 * float(np.mean(one.labels == truth)) for name, one in found.items()}
    others = {name: score(predict, rows) for name, predict in OTHERS.items()}
    started = time.perf_counter()
    chosen = recommend(rows).rule
    seconds = time.perf_counter() - started
    gain = right[chosen] - right["max-agreement"]
    differ = (found[chosen].labels == truth) != (found["max-agreement"].labels == truth)
    error = 100 * np.sqrt(np.count_nonzero(differ)) / rows.samples
    regret = max(right[name] for name in right if name != "oracle-best-epoch") - right[chosen]
    shown = dict.fromkeys(RULES, float("nan")) | right | others
    cells = " | ".join(f"{value:.2f}" for value in shown.values())
    cells_of_rule = f"{chosen} | {gain:+.2f} ± {error:.2f} | {regret:.2f} | {seconds:.1f}"
    print(f"| {path} | {rows.classes} | {cells} | {cells_of_rule} |")
    for name, one in found.items():
        if one.note:
            print(f"{path}: {name}: {one.note}", file=sys.stderr)
    return gain, right[chosen] - max(right["majority"], right["max-agreement"]), regret


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
