"""Compare rules with epochs that are chosen by noisy labels, on records with true labels.

python benchmarks/early_stopping.py RECORD …

In each of 20 draws, half of the samples get labels with the noise that the record's path names:
`sym40`, `asym20`, `clean`, or `native40` for human labels, for which symmetric noise stands in.
The other half is scored. For a single network, the mean of all, and for the majority:

- `last`: the last epoch.
- `chosen`: the epoch with the best accuracy on the noisy labels.
- `stopped`: the best epoch before ten in a row that are not better.

Rules predict all samples without labels. All accuracies are in percent, on the same halves.
"""

import re
import sys

import numpy as np
from numpy.typing import NDArray

import accord
from accord.data.noise import add_noise
from watch import DRAWS, majority_of

PATIENCE = 10
KINDS = {"sym": "symmetric", "asym": "asymmetric", "native": "symmetric"}
EPOCHS = ("last", "chosen", "stopped")
RULES = ("max-agreement", "recommended")


def main() -> None:
    names = [f"{one}, {epoch}" for one in ("network", "majority") for epoch in EPOCHS] + [*RULES]
    print("| record | noise | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 2) + "|")
    rows = []
    for path in sys.argv[1:]:
        kind, rate = noise_of(path)
        rows.append(accuracies(path, kind, rate))
        print(f"| {path} | {kind} {rate:.0%} | {cells(rows[-1])} |", flush=True)
    print(f"| mean of {len(rows)} | | {cells(np.mean(rows, axis=0))} |")


def cells(values: NDArray[np.float64]) -> str:
    return " | ".join(f"{100 * value:.1f}" for value in values)


def noise_of(path: str) -> tuple[str, float]:
    """Return the kind and rate of the noise that a path names."""
    found = re.search(r"-(asym|sym|native)(\d+)", path)
    if found is None and "-clean" not in path:
        sys.exit(f"{path}: the path must name the noise, for example sym40, asym20 or clean")
    return ("symmetric", 0.0) if found is None else (KINDS[found[1]], int(found[2]) / 100)


def accuracies(path: str, kind: str, rate: float) -> NDArray[np.float64]:  # (column,)
    record = accord.open(path, common=True)
    majority = majority_of(record.reader)
    # The majority comes last, as if it were one more network.
    voters = np.concatenate([record.labels[:], majority.labels[None]])
    right = voters == majority.truth
    by_rule = np.stack([record.predict(rule).labels == majority.truth for rule in RULES])
    found = []
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(record.samples)
        held_out, scored = np.array_split(order, 2)
        true = majority.truth[held_out]
        given = add_noise(kind, true, rate=rate, classes=record.classes, seed=seed)
        agreed = (voters[:, :, held_out] == given).mean(axis=2)
        accuracy = right[:, :, scored].mean(axis=2)
        every = np.stack([one[epochs_of(held)] for one, held in zip(accuracy, agreed, strict=True)])
        found.append([*every[:-1].mean(axis=0), *every[-1], *by_rule[:, scored].mean(axis=1)])
    return np.asarray(np.mean(found, axis=0))


def epochs_of(held_out: NDArray[np.float64]) -> list[int]:
    """Return the last, the chosen and the stopped epoch of a curve of held-out accuracy.

    >>> epochs_of(np.array([0.1, 0.3] + [0.2] * 11 + [0.4, 0.2]))
    [14, 13, 1]
    """
    best = 0
    for epoch, accuracy in enumerate(held_out):
        if accuracy > held_out[best]:
            best = epoch
        elif epoch - best >= PATIENCE:
            break
    return [len(held_out) - 1, int(held_out.argmax()), best]


if __name__ == "__main__":
    main()
